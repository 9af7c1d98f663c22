import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.IntStream;

/** JDBC, as the section on it in docs/clients.md says. */
class Test {
    static final String URL = "jdbc:postgresql://%s:%s/%s".formatted(
        System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"));
    static PrintWriter ids;
    static PrintWriter checks;

    static void report(String relation, String note, long id) {
        ids.println(relation + "\t" + note + "\t" + id);
    }

    static void check(boolean ok, String what) {
        checks.println((ok ? "ok" : "failed") + "\t" + what);
    }

    static Connection connect(String options) throws SQLException {
        return DriverManager.getConnection(URL + options, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
    }

    static long insert(Connection connection, String table, String note) throws SQLException {
        String sql = "INSERT INTO " + table + " (note) VALUES (?)";
        try (PreparedStatement statement = connection.prepareStatement(sql, new String[] {"id"})) {
            statement.setString(1, note);
            statement.executeUpdate();
            try (ResultSet keys = statement.getGeneratedKeys()) {
                keys.next();
                return keys.getLong(1);
            }
        }
    }

    static Map<String, Long> insertMany(Connection connection, String[] notes) throws SQLException {
        Map<String, Long> inserted = new LinkedHashMap<>();
        String sql = "INSERT INTO bulk_rows (note) SELECT unnest(?) RETURNING id, note";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setArray(1, connection.createArrayOf("text", notes));
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    inserted.put(rows.getString("note"), rows.getLong("id"));
                }
            }
        }
        return inserted;
    }

    static long number(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
            rows.next();
            return rows.getLong(1);
        }
    }

    /** Inserts in a JDBC batch, and returns the number of keys that come back. */
    static int batch(Connection connection, String table, boolean wantsKeys) throws SQLException {
        connection.setAutoCommit(false);
        String sql = "INSERT INTO " + table + " (note) VALUES (?)";
        int keys = 0;
        try (PreparedStatement statement = wantsKeys
                ? connection.prepareStatement(sql, new String[] {"id"}) : connection.prepareStatement(sql)) {
            for (int i = 0; i < 2000; i++) {
                statement.setString(1, "row " + i);
                statement.addBatch();
            }
            statement.executeBatch();
            try (ResultSet generated = statement.getGeneratedKeys()) {
                while (wantsKeys && generated.next()) {
                    keys++;
                }
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
        return keys;
    }

    static long statements(Connection connection, String table) throws SQLException {
        return number(connection, "SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE 'INSERT INTO " + table + " %'");
    }

    public static void main(String[] arguments) throws Exception {
        String out = System.getenv("OUT");
        try (PrintWriter i = new PrintWriter(out + "/ids"); PrintWriter c = new PrintWriter(out + "/checks");
                Connection connection = connect("")) {
            ids = i;
            checks = c;
            try (PrintWriter version = new PrintWriter(out + "/version")) {
                version.println("pgjdbc " + connection.getMetaData().getDriverVersion());
            }
            try (Statement statement = connection.createStatement()) {
                for (String table : new String[] {"orders", "bulk_rows", "with_keys", "rewritten"}) {
                    statement.execute("CREATE TABLE " + table
                        + " (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)");
                }
                statement.execute("CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)");
            }

            // A new table, and many rows.
            long id = insert(connection, "orders", "first");
            report("orders", "first", id);
            String[] notes = IntStream.range(0, 2000).mapToObj(n -> "row " + n).toArray(String[]::new);
            insertMany(connection, notes).forEach((note, key) -> report("bulk_rows", note, key));

            // Batches.
            int keys = batch(connection, "with_keys", true);
            long sent = statements(connection, "with_keys");
            check(keys == 2000 && sent == 2000, "a batch with generated keys: " + keys + " keys, " + sent + " statements");
            try (Connection rewriting = connect("?reWriteBatchedInserts=true")) {
                batch(rewriting, "rewritten", false);
            }
            sent = statements(connection, "rewritten");
            long distinct = number(connection, "SELECT count(DISTINCT id) FROM rewritten");
            check(distinct == 2000 && sent < 50, "a batch with reWriteBatchedInserts: " + distinct + " IDs, " + sent + " statements");

            // A table that is migrated.
            report("tickets", "old", insert(connection, "tickets", "old"));
            try (Connection other = connect(""); Statement statement = other.createStatement()) {
                statement.execute("CALL snowflake_migrate.run('tickets')");
            }
            report("tickets", "new", insert(connection, "tickets", "new"));
            String refused = "none";
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT id FROM tickets WHERE note = 'new'")) {
                rows.next();
                rows.getInt(1);
            } catch (SQLException e) {
                refused = e.getSQLState();
            }
            check(refused.equals("22003"), "getInt of a snowflake ID is refused with " + refused);

            // A range of time.
            try (PreparedStatement statement = connection.prepareStatement(
                    "SELECT count(*) FROM bulk_rows WHERE id >= snowflake_min_id(?)")) {
                statement.setObject(1, OffsetDateTime.now().minusHours(1));
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                    check(rows.getInt(1) == 2000, rows.getInt(1) + " of 2000 rows are found by time");
                }
            }
            // As text.
            long back = Long.parseLong(Long.toString(id));
            check(back == id && (long) (double) (id | 1) != (id | 1), "as text the ID comes back, as a double it does not");
        }
    }
}
