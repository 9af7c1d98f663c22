<?php
// PDO, as the section on it in docs/clients.md says.
declare(strict_types=1);

$out = getenv('OUT');
$ids = fopen("$out/ids", 'w');
$report = fn (string $relation, string $note, $id) => fwrite($ids, "$relation\t$note\t$id\n");
$check = fn (bool $ok, string $what) => file_put_contents("$out/checks", ($ok ? 'ok' : 'failed') . "\t$what\n", FILE_APPEND);
$connect = fn () => new PDO(
    sprintf('pgsql:host=%s;port=%s;dbname=%s', getenv('PGHOST'), getenv('PGPORT'), getenv('PGDATABASE')),
    getenv('PGUSER'),
    getenv('PGPASSWORD')
);
$pdo = $connect();
file_put_contents("$out/version", 'PDO of PHP ' . PHP_VERSION . "\n");

// A new table.
foreach (['orders', 'bulk_rows'] as $table) {
    $pdo->exec("CREATE TABLE $table (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)");
}
$statement = $pdo->prepare('INSERT INTO orders (note) VALUES (?) RETURNING id');
$statement->execute(['first']);
$id = $statement->fetchColumn();
$report('orders', 'first', $id);

// Many rows in one statement.
$notes = array_map(fn (int $number) => "row $number", range(1, 2000));
$values = implode(', ', array_fill(0, count($notes), '(?)'));
$statement = $pdo->prepare("INSERT INTO bulk_rows (note) VALUES $values RETURNING id, note");
$statement->execute($notes);
foreach ($statement as $row) {
    $report('bulk_rows', $row['note'], $row['id']);
}

// A table that is migrated, and a session from before the migration.
$pdo->exec('CREATE TABLE tickets (id bigserial PRIMARY KEY, note text UNIQUE)');
$pdo->exec("INSERT INTO tickets (note) VALUES ('old')");
$old = $pdo->lastInsertId();
$report('tickets', 'old', $old);
$newSession = $connect();
$newSession->exec("CALL snowflake_migrate.run('tickets')");
$pdo->exec("INSERT INTO tickets (note) VALUES ('new')");
$wrong = $pdo->lastInsertId();
$right = $pdo->query("SELECT id FROM tickets WHERE note = 'new'")->fetchColumn();
$check($wrong === $old && (string) $right !== $wrong, "lastInsertId() after the migration is the old number ($wrong), without an error");
$statement = $pdo->prepare('INSERT INTO tickets (note) VALUES (?) RETURNING id');
$statement->execute(['newer']);
$report('tickets', 'newer', $statement->fetchColumn());
$state = 'none';
try {
    $newSession->exec("INSERT INTO tickets (note) VALUES ('newest')");
    $newSession->lastInsertId();
} catch (PDOException $e) {
    $state = $e->getCode();
}
$check($state === '55000', "lastInsertId() in a new session is refused with $state");

// A range of time.
$statement = $pdo->prepare('SELECT count(*) FROM bulk_rows WHERE id >= snowflake_min_id(?)');
$statement->execute([(new DateTimeImmutable('-1 hour'))->format(DATE_ATOM)]);
$found = $statement->fetchColumn();
$check($found === 2000, "$found of 2000 rows are found by time");

// As text.
$sent = json_encode(['id' => (string) $id]);
$check($sent === "{\"id\":\"$id\"}", "JSON has the ID as text: $sent");
$check(is_int($id), 'PHP has the ID as an integer of 64 bits');
