<?php
// Doctrine ORM, as the section on it in docs/clients.md says.
require_once 'Doctrine/ORM/autoload.php';
require_once __DIR__ . '/SnowflakeGenerator.php';
require_once __DIR__ . '/entities.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\ORM\Configuration;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping\Driver\AttributeDriver;
use Doctrine\ORM\Mapping\UnderscoreNamingStrategy;
use Doctrine\ORM\Tools\SchemaTool;

$out = getenv('OUT');
$ids = fopen("$out/ids", 'w');
$report = fn (string $relation, string $note, $id) => fwrite($ids, "$relation\t$note\t$id\n");
$check = fn (bool $ok, string $what) => file_put_contents("$out/checks", ($ok ? 'ok' : 'failed') . "\t" . strtr($what, "\n\t", '  ') . "\n", FILE_APPEND);
file_put_contents("$out/version", 'Doctrine ORM ' . preg_replace('/\+.*/s', '', shell_exec("dpkg-query -W -f '\${source:Upstream-Version}' php-doctrine-orm")) . "\n");

function manager(): EntityManager
{
    $configuration = new Configuration();
    $configuration->setMetadataDriverImpl(new AttributeDriver([__DIR__]));
    $configuration->setNamingStrategy(new UnderscoreNamingStrategy());
    $configuration->setProxyDir(sys_get_temp_dir());
    $configuration->setProxyNamespace('Proxies');
    $connection = DriverManager::getConnection([
        'driver' => 'pdo_pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
        'dbname' => getenv('PGDATABASE'), 'user' => getenv('PGUSER'), 'password' => getenv('PGPASSWORD'),
    ], $configuration);
    return new EntityManager($connection, $configuration);
}

$insert = function (EntityManager $em, object $entity) {
    $em->persist($entity);
    $em->flush();
    return $entity;
};

$em = manager();
$connection = $em->getConnection();
foreach (['orders', 'bulk_rows'] as $table) {
    $connection->executeStatement("CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)");
}
$connection->executeStatement('CREATE TABLE tickets (id bigserial PRIMARY KEY, note text UNIQUE)');

// A new table, and many rows.
$order = $insert($em, new Order('first'));
$report('orders', 'first', $order->id);
$rows = [];
for ($n = 0; $n < 2000; $n++) {
    $em->persist($rows[] = new BulkRow("row $n"));
}
$em->flush();
foreach ($rows as $row) {
    $report('bulk_rows', $row->note, $row->id);
}

// A table that is migrated, with the declaration from before, then with the other.
$old = $insert($em, new Ticket('old'));
$report('tickets', 'old', $old->id);
$newSession = manager();
$newSession->getConnection()->executeStatement("CALL snowflake_migrate.run('tickets')");
foreach (['a session from before the migration' => $em, 'a new session' => $newSession] as $name => $session) {
    $error = 'no error';
    try {
        $insert($session, new Ticket($name));
    } catch (Exception $e) {
        $error = $e->getMessage();
    }
    $count = $connection->fetchOne('SELECT count(*) FROM tickets WHERE note = ?', [$name]);
    $check(str_contains($error, '55000') && $count == 0, "IDENTITY in $name: $count rows, $error");
}
$em = manager();
$report('tickets', 'newer', $insert($em, new MigratedTicket('newer'))->id);

// What `orm:schema-tool:update` would do to a table: the declarations from before, with the default, and without it.
$changes = function (string $class) {
    $em = manager();
    $table = $em->getClassMetadata($class)->getTableName();
    $statements = (new SchemaTool($em))->getUpdateSchemaSql([$em->getClassMetadata($class)], true);
    return implode('; ', preg_grep("/\\b$table(_id_seq)?\\b/", preg_grep('/INDEX|CONSTRAINT|note/', $statements, PREG_GREP_INVERT)));
};
$sql = $changes(Ticket::class);
$check(str_contains($sql, "SET DEFAULT nextval('tickets_id_seq')"), "the schema tool gives a table with IDENTITY its sequence again: $sql");
$sql = $changes(BulkRow::class);
$check($sql === 'ALTER TABLE bulk_rows ALTER id DROP DEFAULT', "the schema tool drops a default that is not declared: $sql");
foreach ([Order::class, MigratedTicket::class] as $class) {
    $sql = $changes($class);
    $check($sql === '', "the schema tool leaves a declared default alone: $class: $sql");
}
$sql = implode('; ', (new SchemaTool($em))->getCreateSchemaSql([$em->getClassMetadata(Order::class)]));
$check(str_contains($sql, 'id BIGINT DEFAULT snowflake_nextval() NOT NULL'), "the schema tool creates a table with the default: $sql");

// A range of time.
$found = $em->getConnection()->fetchOne(
    'SELECT count(*) FROM bulk_rows WHERE snowflake_between(id, ?, now() + interval \'1 hour\')',
    [(new DateTimeImmutable('-1 hour'))->format(DATE_ATOM)]
);
$check($found === 2000, "$found of 2000 rows are found by time");

// As text.
$sent = json_encode($order);
$check(json_decode($sent, true)['id'] === (string) $order->id, "JSON has the ID as text: $sent");
