"""Tests with a server, which the variables PGHOST, PGPORT and so on name."""

import unittest
import warnings

import sqlalchemy as sa
from snowflake_id_sqlalchemy import SnowflakeDefault

try:
    from alembic.autogenerate import compare_metadata, produce_migrations, render_python_code
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
except ImportError:
    raise unittest.SkipTest("Alembic is not installed") from None

from snowflake_id_sqlalchemy.alembic import PLUGIN, include_name, rewriter


class Autogenerate(unittest.TestCase):
    def setUp(self):
        engine = sa.create_engine("postgresql+psycopg://")
        self.addCleanup(engine.dispose)
        # SQLAlchemy's own, about each CHECK that is NOT VALID.
        self.enterContext(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Can't validate argument 'dialect_options'")
        # Each test is a transaction that is rolled back.
        self.connection = engine.connect()
        self.addCleanup(self.connection.close)
        self.metadata = sa.MetaData()

    def run_sql(self, sql):
        return self.connection.execute(sa.text(sql))

    def table(self, name, *columns, default=None, **kw):
        key = sa.Column("id", sa.BigInteger, primary_key=True, server_default=default or SnowflakeDefault())
        sa.Table(name, self.metadata, key, *columns, **kw)

    def context(self, **options):
        options = {"autogenerate_plugins": ["alembic.autogenerate.*", PLUGIN], **options}

        def only_of_the_test(name, type_, parent_names):
            if type_ == "table":
                return name.startswith("autogenerate_")
            return include_name(name, type_, parent_names)

        return MigrationContext.configure(
            self.connection,
            opts={
                "target_metadata": self.metadata,
                "compare_server_default": True,
                "include_name": only_of_the_test,
                **options,
            },
        )

    def migration(self, **options):
        context = self.context(**options)
        migration = produce_migrations(context, self.metadata)
        rewriter(context, "head", [migration])
        return context, migration

    def run_code(self, context, operations):
        code = render_python_code(operations)
        exec(f"def run():\n{code}\n", scope := {"op": Operations(context), "sa": sa})
        scope["run"]()
        return code

    def column(self, table, column="id"):
        columns = sa.inspect(self.connection).get_columns(table)
        found = next(c for c in columns if c["name"] == column)
        return str(found["type"]), "identity" if found.get("identity") else found["default"]

    def test_both_names_of_the_function_are_the_same(self):
        self.table("autogenerate_a")
        self.table("autogenerate_b", default=SnowflakeDefault("snowflake_id"))
        self.table("autogenerate_c", default=SnowflakeDefault(schema="public"))
        for name, default in (("a", "snowflake_id()"), ("b", "snowflake_nextval()"), ("c", "snowflake_nextval()")):
            self.run_sql(f"CREATE TABLE autogenerate_{name} (id bigint PRIMARY KEY DEFAULT {default})")
        self.assertEqual(compare_metadata(self.context(), self.metadata), [])
        # Without the plugin, Alembic finds a difference for each of them.
        differences = compare_metadata(self.context(autogenerate_plugins=["alembic.autogenerate.*"]), self.metadata)
        self.assertEqual(len(differences), 3)

    def test_a_new_table_needs_no_package(self):
        self.table("autogenerate_new")
        context, migration = self.migration()
        code = self.run_code(context, migration.upgrade_ops)
        self.assertIn("server_default=sa.text('snowflake_nextval()')", code)
        self.assertEqual(self.column("autogenerate_new"), ("BIGINT", "snowflake_nextval()"))
        self.assertEqual(compare_metadata(self.context(), self.metadata), [])

    def both_ways(self, name, definition, before):
        self.run_sql(f'CREATE TABLE "{name}" (id {definition} PRIMARY KEY)')
        self.run_sql(f'CREATE TABLE autogenerate_reference (id integer REFERENCES "{name}")')
        self.table(name)
        reference = sa.ForeignKey(self.metadata.tables[name].c.id)
        sa.Table("autogenerate_reference", self.metadata, sa.Column("id", reference))
        context, migration = self.migration()
        code = self.run_code(context, migration.upgrade_ops)
        self.assertEqual(code.count("CALL snowflake_migrate.run("), 1)
        self.assertEqual(self.column(name), ("BIGINT", "snowflake_nextval()"))
        self.assertEqual(self.column("autogenerate_reference")[0], "BIGINT")
        self.assertEqual(compare_metadata(self.context(), self.metadata), [])
        code = self.run_code(context, migration.downgrade_ops)
        self.assertEqual(code.count("CALL snowflake_migrate.revert("), 1)
        self.assertEqual(self.column(name)[1], before)

    def test_a_serial_key_is_migrated_and_back(self):
        self.both_ways("autogenerate_serial", "serial", "nextval('autogenerate_serial_id_seq'::regclass)")

    def test_an_identity_key_is_migrated_and_back(self):
        self.both_ways("autogenerate_identity", "integer GENERATED ALWAYS AS IDENTITY", "identity")

    def test_a_migrated_table_is_left_alone_if_its_model_has_an_identity(self):
        self.run_sql("CREATE TABLE autogenerate_model (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)")
        self.run_sql("CALL snowflake_migrate.run('autogenerate_model')")
        sa.Table("autogenerate_model", self.metadata, sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True))
        with self.assertWarnsRegex(UserWarning, "autogenerate_model.id has snowflake IDs"):
            self.assertEqual(compare_metadata(self.context(), self.metadata), [])
        with self.assertRaises(AssertionError):
            compare_metadata(self.context(autogenerate_plugins=["alembic.autogenerate.*"]), self.metadata)

    def test_names_are_quoted(self):
        self.both_ways("autogenerate_It's 100%: a:b", "integer GENERATED ALWAYS AS IDENTITY", "identity")

    def test_a_table_of_a_schema_is_migrated(self):
        self.run_sql("CREATE SCHEMA other")
        self.run_sql("CREATE TABLE other.autogenerate_there (id bigserial PRIMARY KEY)")
        self.table("autogenerate_there", schema="other")
        context, migration = self.migration(include_schemas=True)
        code = self.run_code(context, migration.upgrade_ops)
        self.assertIn("CALL snowflake_migrate.run('other.autogenerate_there', 'id')", code)
        self.assertEqual(compare_metadata(self.context(include_schemas=True), self.metadata), [])

    def test_other_defaults_are_left_to_alembic(self):
        self.run_sql(
            "CREATE TABLE autogenerate_other (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n integer DEFAULT 1)"
        )
        self.table("autogenerate_other", sa.Column("n", sa.Integer, server_default="2"))
        _, migration = self.migration()
        code = render_python_code(migration.upgrade_ops)
        self.assertIn("op.alter_column('autogenerate_other', 'n'", code)
        self.assertNotIn("snowflake", code)


if __name__ == "__main__":
    unittest.main()
