# Active Record, as the section on it in docs/clients.md says.
require "active_record"
require "active_record/fixtures"
require "json"
require "stringio"

OUT = ENV.fetch("OUT")
SEEN = {}
CHECKS = File.open("#{OUT}/checks", "w")

def report(relation, note, id)
  SEEN[[relation, note]] = id
end

def check(ok, what)
  CHECKS.puts "#{ok ? 'ok' : 'failed'}\t#{what.to_s.tr("\n\t", "  ")}"
end

# The message of an error, or nil.
def refusal
  yield
  nil
rescue ActiveRecord::StatementInvalid => e
  e.message.lines.first.strip
end

ActiveRecord::Base.establish_connection(
  adapter: "postgresql", host: ENV["PGHOST"], port: ENV["PGPORT"], database: ENV["PGDATABASE"],
  username: ENV["PGUSER"], password: ENV["PGPASSWORD"]
)
ActiveRecord::Migration.verbose = false
connection = ActiveRecord::Base.connection
File.write("#{OUT}/version", "Active Record #{ActiveRecord.version}\n")

class CreateOrders < ActiveRecord::Migration[6.1]
  def change
    create_table :orders, id: :bigint, default: -> { "snowflake_id()" } do |t|
      t.string :note, index: { unique: true }
    end
  end
end

class CreateOthers < ActiveRecord::Migration[6.1]
  def change
    create_table(:bulk_rows, id: :bigint, default: -> { "snowflake_id()" }) { |t| t.string :note, index: { unique: true } }
    create_table(:trapped, id: :bigint, default: -> { "snowflake_nextval()" }) { |t| t.string :note }
    create_table(:tickets, id: :serial) { |t| t.string :note, index: { unique: true } }
  end
end

class SnowflakeTickets < ActiveRecord::Migration[6.1]
  def up
    execute "CALL snowflake_migrate.run('tickets')"
    execute "ALTER TABLE tickets ALTER COLUMN id SET DEFAULT snowflake_id()"
    execute "ALTER SEQUENCE tickets_id_seq OWNED BY NONE" # Rails would reset it.
  end

  def down
    execute "CALL snowflake_migrate.revert('tickets')"
    execute "ALTER SEQUENCE tickets_id_seq OWNED BY tickets.id"
  end
end

class Order < ActiveRecord::Base
  def as_json(options = nil)
    super.merge("id" => id.to_s)
  end
end

class BulkRow < ActiveRecord::Base; end

class Ticket < ActiveRecord::Base; end

CreateOrders.migrate(:up)
CreateOthers.migrate(:up)

# A new table.
order = Order.create!(note: "first")
report "orders", "first", order.id

# Many rows.
result = BulkRow.insert_all!((1..2000).map { |n| { note: "row #{n}" } }, returning: %w[id note])
result.each { |row| report "bulk_rows", row["note"], row["id"] }

# Fixtures and sequences: with "nextval" in the default's text, and without.
with_nextval = refusal { ActiveRecord::FixtureSet.create_fixtures("fixtures", "trapped") }
check(with_nextval&.include?('relation "public" does not exist'), "fixtures with snowflake_nextval(): #{with_nextval}")
with_nextval = refusal { connection.reset_pk_sequence!("trapped") }
check(with_nextval&.include?('relation "public" does not exist'), "reset_pk_sequence! with snowflake_nextval(): #{with_nextval}")
with_nextval = refusal { connection.set_pk_sequence!("trapped", 5) }
check(!with_nextval.nil?, "set_pk_sequence! with snowflake_nextval(): #{with_nextval}")
Order.delete_all
with_id = refusal { ActiveRecord::FixtureSet.create_fixtures("fixtures", "orders") }
check(with_id.nil? && Order.find(5).note == "from a fixture with an ID" && Order.count == 2, "fixtures with snowflake_id(): #{with_id || '2 rows'}")
with_id = refusal { connection.reset_pk_sequence!("orders") }
check(with_id.nil?, "reset_pk_sequence! with snowflake_id(): #{with_id || 'nothing to do'}")
with_id = refusal { connection.set_pk_sequence!("orders", 5) }
check(with_id.nil?, "set_pk_sequence! with snowflake_id(): #{with_id || 'nothing to do'}")

# A table that is migrated.
report "tickets", "old", Ticket.create!(note: "old").id
SnowflakeTickets.migrate(:up)
cached = begin
  Ticket.create!(note: "refused")
  nil
rescue ActiveModel::RangeError, ActiveRecord::StatementInvalid => e
  e.class.name
end
check(!cached.nil?, "the schema cache from before the migration: #{cached}")
Ticket.reset_column_information
connection.schema_cache.clear!
report "tickets", "new", Ticket.create!(note: "new").id
connection.execute "ALTER SEQUENCE tickets_id_seq OWNED BY tickets.id"
owned = refusal { connection.reset_pk_sequence!("tickets") }
check(owned&.include?("out of bounds"), "reset_pk_sequence! while the table owns its former sequence: #{owned}")
connection.execute "ALTER SEQUENCE tickets_id_seq OWNED BY NONE"
not_owned = refusal { connection.reset_pk_sequence!("tickets") }
check(not_owned.nil?, "reset_pk_sequence! of a migrated table: #{not_owned || 'nothing to do'}")
SnowflakeTickets.migrate(:down)
Ticket.reset_column_information
reverted = Ticket.create!(note: "reverted").id
check(reverted < 1_000, "the migration is reverted: #{reverted}")

# The schema file creates the same default again.
schema = StringIO.new
ActiveRecord::SchemaDumper.dump(connection, schema)
line = schema.string.lines.grep(/create_table "orders"/).first.to_s.strip
check(line.include?('default: -> { "snowflake_id()" }'), "schema.rb: #{line}")
orders_only = schema.string[/  create_table "orders".*?^  end\n/m]
connection.drop_table :orders
ActiveRecord::Schema.define { instance_eval orders_only }
Order.reset_column_information
order = Order.create!(note: "first")
check(order.id > 1 << 40, "a table from schema.rb: #{order.id}")
report "orders", "first", order.id

# A range of time.
recent = BulkRow.where("id >= snowflake_min_id(?)", 1.hour.ago)
check(recent.count == 2000, "#{recent.count} of 2000 rows are found by time")

# As text.
sent = order.to_json
check(JSON.parse(sent)["id"] == order.id.to_s, "JSON has the ID as text: #{sent}")

SEEN.each { |(relation, note), id| File.write("#{OUT}/ids", "#{relation}\t#{note}\t#{id}\n", mode: "a") }
