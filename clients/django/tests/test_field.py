"""Tests with a server, which the variables PGHOST, PGPORT and so on name.

The role that PGUSER names must be able to create databases.
"""

import io
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import django
from django.conf import settings

sys.path.insert(0, str(Path(__file__).parent))
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ.get("PGDATABASE", "postgres"),
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "PASSWORD": os.environ.get("PGPASSWORD", ""),
        }
    },
    DEFAULT_AUTO_FIELD="django_snowflake_id.SnowflakeField",
    INSTALLED_APPS=["field_app"],
    USE_TZ=True,
)
django.setup()

from django.core import serializers  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, migrations, models  # noqa: E402
from django.db.migrations.state import ModelState, ProjectState  # noqa: E402
from django.db.utils import DataError  # noqa: E402
from django.test import TestCase, TransactionTestCase  # noqa: E402
from django.test.runner import DiscoverRunner  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django_snowflake_id import SnowflakeField  # noqa: E402
from field_app.models import Author, Book, Novel  # noqa: E402

SNOWFLAKE = 1 << 40
runner = DiscoverRunner(verbosity=0, interactive=False)


def setUpModule():
    runner.setup_test_environment()
    setUpModule.databases = runner.setup_databases()


def tearDownModule():
    runner.teardown_databases(setUpModule.databases)
    runner.teardown_test_environment()


def columns(table):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name, data_type, CASE WHEN is_identity = 'YES' THEN 'identity' ELSE column_default END"
            " FROM information_schema.columns WHERE table_name = %s",
            [table],
        )
        return {name: (data_type, default) for name, data_type, default in cursor.fetchall()}


class Models(TestCase):
    def test_columns_have_the_default(self):
        self.assertEqual(columns("field_app_author")["id"], ("bigint", "snowflake_nextval()"))

    def test_it_can_be_the_default_auto_field(self):
        self.assertEqual(columns("field_app_book")["id"], ("bigint", "snowflake_nextval()"))
        self.assertEqual(columns("field_app_book_readers")["id"], ("bigint", "snowflake_nextval()"))

    def test_references_are_bigint_without_a_default(self):
        self.assertEqual(columns("field_app_book")["author_id"], ("bigint", None))
        self.assertEqual(columns("field_app_book_readers")["author_id"], ("bigint", None))
        self.assertEqual(columns("field_app_novel")["book_ptr_id"], ("bigint", None))

    def test_save_returns_the_id(self):
        author = Author.objects.create(name="Ada")
        self.assertGreater(author.pk, SNOWFLAKE)
        self.assertEqual(Author.objects.get(pk=author.pk), author)

    def test_a_child_model_gets_the_id_of_its_parent(self):
        novel = Novel.objects.create(author=Author.objects.create(name="Ada"), title="Notes")
        self.assertGreater(novel.pk, SNOWFLAKE)
        self.assertEqual(novel.pk, novel.book_ptr_id)

    def test_bulk_create_returns_ids_with_one_statement(self):
        authors = [Author(name=str(i)) for i in range(2000)]
        with CaptureQueriesContext(connection) as queries:
            Author.objects.bulk_create(authors)
        self.assertEqual(sum("INSERT" in q["sql"] for q in queries), 1)
        self.assertEqual(dict(Author.objects.values_list("name", "pk")), {a.name: a.pk for a in authors})

    def test_an_id_that_is_passed_is_kept(self):
        self.assertEqual(Author.objects.create(pk=5, name="five").pk, 5)
        Author.objects.bulk_create([Author(pk=6, name="six"), Author(name="none")])
        self.assertEqual(Author.objects.get(name="six").pk, 6)
        self.assertGreater(Author.objects.get(name="none").pk, SNOWFLAKE)

    def test_many_to_many_rows_get_ids(self):
        author = Author.objects.create(name="Ada")
        book = Book.objects.create(author=author)
        book.readers.add(author)
        self.assertGreater(Book.readers.through.objects.get().pk, SNOWFLAKE)

    def test_a_db_default_is_an_error(self):
        class Wrong(models.Model):
            id = SnowflakeField(primary_key=True, db_default=1)

            class Meta:
                app_label = "wrong"

        self.assertEqual([e.id for e in Wrong._meta.pk.check()], ["django_snowflake_id.E001"])

    def test_a_migration_names_the_field(self):
        path = Author._meta.pk.deconstruct()[1]
        self.assertEqual(path, "django_snowflake_id.SnowflakeField")


class Fixtures(TransactionTestCase):
    reset_sequences = True

    def test_reset_sequences_does_no_harm(self):
        self.assertGreater(Author.objects.create(name="Ada").pk, SNOWFLAKE)

    def test_sqlsequencereset_does_no_harm(self):
        Author.objects.create(name="Ada")
        out = io.StringIO()
        call_command("sqlsequencereset", "field_app", stdout=out)
        with connection.cursor() as cursor:
            cursor.execute(out.getvalue())
        self.assertGreater(Author.objects.create(name="Grace").pk, SNOWFLAKE)

    def test_fixtures_are_dumped_and_loaded(self):
        authors = Author.objects.bulk_create([Author(name=str(i)) for i in range(100)])
        dump = serializers.serialize("json", Author.objects.all())
        Author.objects.all().delete()
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(dump)
            file.flush()
            call_command("loaddata", file.name, verbosity=0)
        self.assertEqual(set(Author.objects.values_list("pk", flat=True)), {a.pk for a in authors})
        self.assertEqual({row["pk"] for row in json.loads(dump)}, {a.pk for a in authors})
        self.assertGreater(Author.objects.create(name="new").pk, max(a.pk for a in authors))


class Migrations(TransactionTestCase):
    """AlterField between Django's fields and SnowflakeField, as a migration does it."""

    def setUp(self):
        self.tables = []

    def tearDown(self):
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS live_note, live_loose, live_ticket CASCADE")

    def state(self, key):
        state = ProjectState()
        name = ("name", models.CharField(max_length=100, null=True))
        state.add_model(ModelState("live", "Ticket", [("id", key), name]))
        for model, arguments in (("Note", {}), ("Loose", {"db_constraint": False})):
            reference = models.ForeignKey("live.Ticket", models.CASCADE, related_name="+", **arguments)
            auto = models.BigAutoField(primary_key=True)
            state.add_model(ModelState("live", model, [("id", auto), ("ticket", reference)]))
        return state

    def create(self, key):
        state = self.state(key)
        with connection.schema_editor() as editor:
            for name in ("Ticket", "Note", "Loose"):
                editor.create_model(state.apps.get_model("live", name))
        return state

    def alter(self, state, field, backwards=False, collect=False):
        operation = migrations.AlterField("Ticket", "id", field)
        after = state.clone()
        operation.state_forwards("live", after)
        with connection.schema_editor(collect_sql=collect) as editor:
            if backwards:
                operation.database_backwards("live", editor, after, state)
            else:
                operation.database_forwards("live", editor, state, after)
        self.sql = "\n".join(editor.collected_sql) if collect else ""
        return state if backwards else after

    def insert(self, state):
        ticket = state.apps.get_model("live", "Ticket").objects.create()
        for name in ("Note", "Loose"):
            state.apps.get_model("live", name).objects.create(ticket=ticket)
        return ticket.pk

    def go_both_ways(self, key):
        before = self.create(key)
        self.assertEqual(self.insert(before), 1)
        default = columns("live_ticket")["id"][1]

        after = self.alter(before, SnowflakeField(primary_key=True))
        self.assertEqual(columns("live_ticket")["id"], ("bigint", "snowflake_nextval()"))
        self.assertEqual(columns("live_note")["ticket_id"][0], "bigint")
        self.assertEqual(columns("live_loose")["ticket_id"][0], "bigint")
        self.assertGreater(self.insert(after), SNOWFLAKE)

        self.alter(before, SnowflakeField(primary_key=True), backwards=True)
        self.assertEqual(columns("live_ticket")["id"], ("bigint", default))
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO live_ticket DEFAULT VALUES RETURNING id")
            self.assertEqual(cursor.fetchone()[0], 2)

        self.alter(before, SnowflakeField(primary_key=True))
        self.assertGreater(self.insert(after), SNOWFLAKE)

    def test_auto_field_is_migrated_and_back(self):
        self.go_both_ways(models.AutoField(primary_key=True))

    def test_big_auto_field_is_migrated_and_back(self):
        self.go_both_ways(models.BigAutoField(primary_key=True))

    def test_small_auto_field_is_migrated_and_back(self):
        self.go_both_ways(models.SmallAutoField(primary_key=True))

    def make_serial(self):
        """As Django before 4.1 made them."""
        before = self.create(models.AutoField(primary_key=True))
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE live_ticket ALTER id DROP IDENTITY;"
                "CREATE SEQUENCE live_ticket_id_seq AS integer OWNED BY live_ticket.id;"
                "ALTER TABLE live_ticket ALTER id SET DEFAULT nextval('live_ticket_id_seq')"
            )
        return before

    def reset_sequence(self, state):
        from django.core.management.color import no_style

        with connection.cursor() as cursor:
            for sql in connection.ops.sequence_reset_sql(no_style(), [state.apps.get_model("live", "Ticket")]):
                cursor.execute(sql)

    def test_sequences_of_serial_columns_can_be_reset_after_the_migration(self):
        before = self.make_serial()
        self.insert(before)
        after = self.alter(before, SnowflakeField(primary_key=True))
        self.insert(after)
        self.reset_sequence(after)
        self.alter(before, SnowflakeField(primary_key=True), backwards=True)
        self.assertIn("nextval('live_ticket_id_seq'", columns("live_ticket")["id"][1])
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_get_serial_sequence('live_ticket', 'id')")
            self.assertEqual(cursor.fetchone()[0], "public.live_ticket_id_seq")

    def test_sequences_of_serial_columns_cannot_be_reset_after_the_call_alone(self):
        before = self.make_serial()
        with connection.cursor() as cursor:
            cursor.execute("CALL snowflake_migrate.run('live_ticket')")
            cursor.execute("INSERT INTO live_ticket DEFAULT VALUES")
        with self.assertRaises(DataError):
            self.reset_sequence(before)

    def test_a_column_that_is_migrated_already_is_left_alone(self):
        before = self.create(models.BigAutoField(primary_key=True))
        with connection.cursor() as cursor:
            cursor.execute("CALL snowflake_migrate.run('live_ticket')")
        after = self.alter(before, SnowflakeField(primary_key=True))
        self.assertGreater(self.insert(after), SNOWFLAKE)

    def test_a_column_is_renamed_in_the_same_step(self):
        before = self.create(models.AutoField(primary_key=True))
        after = self.alter(before, SnowflakeField(primary_key=True, db_column="ticket_no"))
        self.assertEqual(columns("live_ticket")["ticket_no"], ("bigint", "snowflake_nextval()"))
        self.assertGreater(self.insert(after), SNOWFLAKE)

    def test_a_key_becomes_text(self):
        before = self.create(models.AutoField(primary_key=True))
        after = self.alter(before, SnowflakeField(primary_key=True))
        self.alter(after, models.CharField(max_length=40, primary_key=True))
        self.assertEqual(columns("live_ticket")["id"][0], "character varying")
        self.assertEqual(columns("live_note")["ticket_id"][0], "character varying")

    def test_sqlmigrate_shows_the_call(self):
        before = self.create(models.AutoField(primary_key=True))
        self.alter(before, SnowflakeField(primary_key=True), collect=True)
        self.assertIn("""CALL snowflake_migrate.run('"live_ticket"', 'id')""", self.sql)
        self.assertEqual(columns("live_ticket")["id"], ("integer", "identity"))

    def test_other_changes_do_not_migrate(self):
        before = self.create(SnowflakeField(primary_key=True))
        self.alter(before, SnowflakeField(primary_key=True, verbose_name="number"), collect=True)
        self.assertNotIn("snowflake_migrate", self.sql)

    def test_new_tables_and_key_columns_have_the_default(self):
        self.create(SnowflakeField(primary_key=True))
        self.assertEqual(columns("live_ticket")["id"], ("bigint", "snowflake_nextval()"))


if __name__ == "__main__":
    unittest.main()
