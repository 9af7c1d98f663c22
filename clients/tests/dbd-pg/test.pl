# DBD::Pg, as the section on it in docs/clients.md says.
use strict;
use warnings;
use DBI;
use JSON::PP;

my $dbh = DBI->connect('dbi:Pg:', undef, undef, { RaiseError => 1, PrintError => 0 });
open my $ids, '>', "$ENV{OUT}/ids" or die $!;
open my $checks, '>', "$ENV{OUT}/checks" or die $!;

sub report {
    my ($relation, $note, $id) = @_;
    print $ids join("\t", $relation, $note, $id), "\n";
    return;
}

sub check {
    my ($is_ok, $what) = @_;
    print $checks ($is_ok ? 'ok' : 'failed'), "\t$what\n";
    return;
}

open my $version, '>', "$ENV{OUT}/version" or die $!;
print $version "DBD::Pg $DBD::Pg::VERSION\n";
close $version;

# A new table.
$dbh->do('CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)');
$dbh->do('CREATE TABLE bulk_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)');
my ($id) = $dbh->selectrow_array('INSERT INTO orders (note) VALUES (?) RETURNING id', undef, 'first');
report('orders', 'first', $id);

# Many rows: one statement with an array.
my @notes = map { "row $_" } 1 .. 2000;
my $rows = $dbh->selectall_arrayref(
    'INSERT INTO bulk_rows (note) SELECT unnest(?::text[]) RETURNING id, note', undef, \@notes);
report('bulk_rows', $_->[1], $_->[0]) for @$rows;

# A table that is migrated, and a session from before the migration.
$dbh->do('CREATE TABLE tickets (id bigserial PRIMARY KEY, note text UNIQUE)');
$dbh->do('INSERT INTO tickets (note) VALUES (?)', undef, 'old');
my $old = $dbh->last_insert_id(undef, undef, 'tickets', undef);
report('tickets', 'old', $old);
my $new_session = $dbh->clone;
$new_session->do(q{CALL snowflake_migrate.run('tickets')});
$dbh->do('INSERT INTO tickets (note) VALUES (?)', undef, 'new');
my $refused = !eval { $dbh->last_insert_id(undef, undef, 'tickets', undef); 1; };
check($refused && $dbh->state eq '55000', 'last_insert_id in a session from before is refused with ' . $dbh->state);
my ($ticket) = $dbh->selectrow_array('INSERT INTO tickets (note) VALUES (?) RETURNING id', undef, 'newer');
report('tickets', 'newer', $ticket);
$refused = !eval {
    $new_session->do('INSERT INTO tickets (note) VALUES (?)', undef, 'newest');
    $new_session->last_insert_id(undef, undef, 'tickets', undef);
    1;
};
check($refused && $new_session->state eq '55000', 'last_insert_id in a new session is refused with ' . $new_session->state);

# A range of time.
my ($found) = $dbh->selectrow_array(
    'SELECT count(*) FROM bulk_rows WHERE id >= snowflake_min_id(?)', undef, scalar gmtime(time - 3600) . ' UTC');
check($found == 2000, "$found of 2000 rows are found by time");

# As text.
my $sent = JSON::PP->new->encode({ id => "$id" });
check(decode_json($sent)->{id} eq $id && $sent =~ /"$id"/, "JSON has the ID as text: $sent");
