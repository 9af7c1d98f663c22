import org.eclipse.persistence.config.SessionCustomizer;
import org.eclipse.persistence.sessions.Session;

/** Makes the sequence known to the session, with 500 IDs a request. */
public class SnowflakeCustomizer implements SessionCustomizer {
    @Override
    public void customize(Session session) {
        session.getLogin().addSequence(new SnowflakeSequence("snowflake", 500));
    }
}
