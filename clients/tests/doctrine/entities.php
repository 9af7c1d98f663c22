<?php

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity]
#[ORM\Table(name: 'orders')]
class Order
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint', options: ['default' => 'snowflake_nextval()'])]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public ?string $id = null;

    public function __construct(#[ORM\Column(unique: true)] public string $note)
    {
    }
}

#[ORM\Entity]
#[ORM\Table(name: 'bulk_rows')]
class BulkRow
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public ?string $id = null;

    public function __construct(#[ORM\Column(unique: true)] public string $note)
    {
    }
}

// What many applications have: the column's identity or serial.
#[ORM\Entity]
#[ORM\Table(name: 'tickets')]
class Ticket
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint')]
    #[ORM\GeneratedValue(strategy: 'IDENTITY')]
    public ?string $id = null;

    public function __construct(#[ORM\Column(unique: true)] public string $note)
    {
    }
}

// The same table, as it is declared after the migration.
#[ORM\Entity]
#[ORM\Table(name: 'tickets')]
class MigratedTicket
{
    #[ORM\Id]
    #[ORM\Column(type: 'bigint', options: ['default' => 'snowflake_nextval()'])]
    #[ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: SnowflakeGenerator::class)]
    public ?string $id = null;

    public function __construct(#[ORM\Column(unique: true)] public string $note)
    {
    }
}
