import javax.persistence.Entity;
import javax.persistence.GeneratedValue;
import javax.persistence.Id;
import javax.persistence.Table;

@Entity
@Table(name = "bulk_rows")
public class BulkRow {
    @Id
    @GeneratedValue(generator = "snowflake")
    public Long id;
    public String note;
}
