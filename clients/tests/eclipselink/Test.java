import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.Persistence;
import org.eclipse.persistence.Version;

/** EclipseLink, as the section on it in docs/clients.md says. */
public class Test {
    static PrintWriter ids;
    static PrintWriter checks;

    static void report(String relation, String note, long id) {
        ids.println(relation + "\t" + note + "\t" + id);
    }

    static void check(boolean ok, String what) {
        checks.println((ok ? "ok" : "failed") + "\t" + what.replaceAll("\\s+", " "));
    }

    static void persist(EntityManagerFactory factory, List<?> entities) {
        EntityManager manager = factory.createEntityManager();
        manager.getTransaction().begin();
        entities.forEach(manager::persist);
        manager.getTransaction().commit();
        manager.close();
    }

    static EntityManagerFactory factory(String url) {
        return Persistence.createEntityManagerFactory("shop", Map.of(
            "javax.persistence.jdbc.url", url,
            "javax.persistence.jdbc.user", System.getenv("PGUSER"),
            "javax.persistence.jdbc.password", System.getenv("PGPASSWORD")));
    }

    static Ticket ticket(EntityManagerFactory factory, String note) {
        Ticket ticket = new Ticket();
        ticket.note = note;
        persist(factory, List.of(ticket));
        return ticket;
    }

    public static void main(String[] arguments) throws Exception {
        String out = System.getenv("OUT");
        String url = "jdbc:postgresql://%s:%s/%s?reWriteBatchedInserts=true".formatted(
            System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE"));
        try (PrintWriter i = new PrintWriter(out + "/ids"); PrintWriter c = new PrintWriter(out + "/checks");
                Connection connection = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"));
                Statement statement = connection.createStatement()) {
            ids = i;
            checks = c;
            try (PrintWriter version = new PrintWriter(out + "/version")) {
                version.println("EclipseLink " + Version.getVersion());
            }
            for (String table : new String[] {"orders", "bulk_rows", "trapped"}) {
                statement.execute("CREATE TABLE " + table + " (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)");
            }
            statement.execute("CREATE TABLE tickets (id bigserial PRIMARY KEY, note text)");
            statement.execute("INSERT INTO tickets (note) VALUES ('old')");

            EntityManagerFactory factory = factory(url);
            Order order = new Order();
            order.note = "first";
            persist(factory, List.of(order));
            report("orders", "first", order.id);

            List<BulkRow> rows = new ArrayList<>();
            for (int n = 0; n < 2000; n++) {
                BulkRow row = new BulkRow();
                row.note = "row " + n;
                rows.add(row);
            }
            persist(factory, rows);
            rows.forEach(row -> report("bulk_rows", row.note, row.id));

            // GenerationType.IDENTITY.
            String refused = "no error";
            try {
                persist(factory, List.of(new Trapped()));
            } catch (RuntimeException e) {
                refused = e.getMessage();
            }
            check(refused.contains("lastval is not yet defined in this session"), "GenerationType.IDENTITY: " + refused);

            // A table that is migrated.
            statement.execute("CALL snowflake_migrate.run('tickets')");
            report("tickets", "new", ticket(factory, "new").id);

            // A range of time.
            EntityManager manager = factory.createEntityManager();
            Number found = (Number) manager.createNativeQuery(
                "SELECT count(*) FROM bulk_rows WHERE snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour')").getSingleResult();
            check(found.longValue() == 2000, found + " of 2000 rows are found by time");
            Order read = manager.find(Order.class, order.id);
            check(read != null && read.note.equals("first"), "find() by " + order.id);
            manager.close();
            factory.close();
        }
    }
}
