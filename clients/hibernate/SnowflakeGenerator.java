// Keys of Hibernate 6.2 and later that it requests from snowflake_nextval() before the INSERT, so that it can batch:
//
//     @Id @SnowflakeGenerator.SnowflakeId private Long id;
//
// Only Hibernate's source and manual were read for it; see docs/clients.md.

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.util.EnumSet;

import org.hibernate.annotations.IdGeneratorType;
import org.hibernate.engine.spi.SharedSessionContractImplementor;
import org.hibernate.generator.BeforeExecutionGenerator;
import org.hibernate.generator.EventType;
import org.hibernate.generator.EventTypeSets;

public class SnowflakeGenerator implements BeforeExecutionGenerator {
    @IdGeneratorType(SnowflakeGenerator.class)
    @Retention(RetentionPolicy.RUNTIME)
    @Target({ElementType.FIELD, ElementType.METHOD})
    public @interface SnowflakeId {}

    @Override public EnumSet<EventType> getEventTypes() { return EventTypeSets.INSERT_ONLY; }

    @Override public Object generate(SharedSessionContractImplementor session, Object owner, Object currentValue, EventType eventType) {
        return session.doReturningWork(connection -> {
            try (var statement = connection.createStatement();
                 var result = statement.executeQuery("SELECT snowflake_nextval()")) {
                result.next();
                return result.getLong(1);
            }
        });
    }
}
