import java.util.Vector;
import org.eclipse.persistence.internal.databaseaccess.Accessor;
import org.eclipse.persistence.internal.sessions.AbstractSession;
import org.eclipse.persistence.queries.DataReadQuery;
import org.eclipse.persistence.sequencing.Sequence;
import org.eclipse.persistence.sessions.Record;

public class SnowflakeSequence extends Sequence {
    public SnowflakeSequence(String name, int size) {
        super(name, size);
    }

    @Override
    public Vector<Long> getGeneratedVector(Accessor accessor, AbstractSession session, String name, int size) {
        DataReadQuery query = new DataReadQuery("SELECT snowflake_nextvals(" + size + ") AS id");
        query.setAccessor(accessor);
        Vector<Long> ids = new Vector<>(size);
        for (Object row : (Vector<?>) session.executeQuery(query)) {
            ids.add(((Number) ((Record) row).get("id")).longValue());
        }
        return ids;
    }

    @Override
    public Object getGeneratedValue(Accessor accessor, AbstractSession session, String name) {
        return getGeneratedVector(accessor, session, name, 1).get(0);
    }

    @Override
    public boolean shouldAcquireValueAfterInsert() {
        return false;
    }

    @Override
    public boolean shouldUseTransaction() {
        return false;
    }

    @Override
    public void onConnect() {}

    @Override
    public void onDisconnect() {}
}
