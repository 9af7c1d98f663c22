<?php

use Doctrine\ORM\EntityManagerInterface;
use Doctrine\ORM\Id\AbstractIdGenerator;

/** Fetches IDs in blocks, before the rows are inserted. */
final class SnowflakeGenerator extends AbstractIdGenerator
{
    private static array $ids = [];

    public function generateId(EntityManagerInterface $em, $entity): mixed
    {
        if (self::$ids === []) {
            self::$ids = $em->getConnection()->fetchFirstColumn('SELECT snowflake_nextvals(100)');
        }

        return (string) array_shift(self::$ids);
    }
}
