# Sequel, as the section on it in docs/clients.md says.
require "json"
require "sequel"

OUT = ENV.fetch("OUT")
CHECKS = File.open("#{OUT}/checks", "w")
IDS = File.open("#{OUT}/ids", "w")

def report(relation, note, id)
  IDS.puts "#{relation}\t#{note}\t#{id}"
end

def check(ok, what)
  CHECKS.puts "#{ok ? 'ok' : 'failed'}\t#{what.to_s.tr("\n\t", "  ")}"
end

# The message of an error, or nil.
def refusal
  yield
  nil
rescue Sequel::DatabaseError => e
  e.message.lines.first.strip
end

def connect
  Sequel.connect(
    adapter: "postgres", host: ENV["PGHOST"], port: ENV["PGPORT"], database: ENV["PGDATABASE"],
    user: ENV["PGUSER"], password: ENV["PGPASSWORD"]
  )
end

DB = connect
File.write("#{OUT}/version", "Sequel #{Sequel.version}\n")

DB.create_table(:orders) do
  column :id, :bigint, primary_key: true, default: Sequel.function(:snowflake_id)
  column :note, :text, unique: true
end
DB.create_table(:bulk_rows) do
  column :id, :bigint, primary_key: true, default: Sequel.function(:snowflake_id)
  column :note, :text, unique: true
end
DB.create_table(:trapped) do
  column :id, :bigint, primary_key: true, default: Sequel.function(:snowflake_nextval)
  column :note, :text, unique: true
end
DB.create_table(:tickets) do
  primary_key :id, serial: true
  column :note, :text, unique: true
end

class Order < Sequel::Model(:orders); end

# A new table.
order = Order.create(note: "first")
check(order.id.is_a?(Integer) && order.id > 1 << 53, "an ID above 2^53 is an #{order.id.class}: #{order.id}")
report "orders", "first", order.id
check(Order[order.id]&.note == "first", "a row is found by its ID")
changed = DB[:orders].where(id: order.id).update(note: "first")
check(changed == 1, "an update by ID changes #{changed} rows")

# Many rows.
notes = (1..2000).map { |n| [n.to_s] }
rows = DB[:bulk_rows].returning(:id, :note).import([:note], notes)
rows.each { |row| report "bulk_rows", row[:note], row[:id] }

# Sequences: with "nextval" in the default's text, and without.
report "trapped", "trapped", DB[:trapped].insert(note: "trapped")
sequence = DB.primary_key_sequence(:trapped)
check(!sequence.nil?, "the sequence that Sequel finds in snowflake_nextval(): #{sequence}")
with_nextval = refusal { DB.reset_primary_key_sequence(:trapped) }
check(with_nextval&.include?("invalid name syntax"), "reset_primary_key_sequence with snowflake_nextval(): #{with_nextval}")
check(DB.primary_key_sequence(:orders).nil?, "with snowflake_id() it finds #{DB.primary_key_sequence(:orders) || 'none'}")
with_id = refusal { DB.reset_primary_key_sequence(:orders) }
check(with_id.nil?, "reset_primary_key_sequence with snowflake_id(): #{with_id || 'nothing to do'}")

# A table that is migrated.
report "tickets", "old", DB[:tickets].insert(note: "old")
DB.run "CALL snowflake_migrate.run('tickets')"
DB.run "ALTER TABLE tickets ALTER COLUMN id SET DEFAULT snowflake_id()"
report "tickets", "new", DB[:tickets].insert(note: "new")
# A Database remembers a table's sequence: each of the two has to look for it.
owned = refusal { connect.reset_primary_key_sequence(:tickets) }
check(owned&.include?("out of bounds"), "reset_primary_key_sequence while the table owns its former sequence: #{owned}")
DB.run "ALTER SEQUENCE tickets_id_seq OWNED BY NONE" # Sequel would reset it.
not_owned = refusal { connect.reset_primary_key_sequence(:tickets) }
check(not_owned.nil?, "reset_primary_key_sequence of a migrated table: #{not_owned || 'nothing to do'}")
later = DB[:tickets].insert(note: "later")
check(later > 1 << 53, "and the next row gets a snowflake ID: #{later}")
report "tickets", "later", later

# A range of time.
recent = DB[:bulk_rows].where { id >= snowflake_min_id(Time.now - 3600) }
check(recent.count == 2000, "#{recent.count} of 2000 rows are found by time")

# As text.
sent = JSON.generate(order.values.merge(id: order.id.to_s))
check(JSON.parse(sent)["id"] == order.id.to_s, "JSON has the ID as text: #{sent}")

[CHECKS, IDS].each(&:close)
