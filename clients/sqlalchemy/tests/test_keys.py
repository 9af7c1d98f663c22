"""Tests with a server, which the variables PGHOST, PGPORT and so on name."""

import unittest
from typing import Annotated, Optional

import sqlalchemy as sa
from snowflake_id_sqlalchemy import SnowflakeDefault, snowflake_column, snowflake_key
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Plain(Base):
    __tablename__ = "key_plain"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str]


class Mixin:
    id: Mapped[int] = snowflake_key()


class FromMixin(Mixin, Base):
    __tablename__ = "key_mixin"
    note: Mapped[str]


key = Annotated[int, snowflake_key(function="snowflake_id")]


class FromAnnotation(Base):
    __tablename__ = "key_annotation"
    id: Mapped[key]
    note: Mapped[str]


class Composite(Base):
    __tablename__ = "key_composite"
    tenant: Mapped[int] = mapped_column(primary_key=True, default=7)
    id: Mapped[int] = snowflake_key(function_schema="public")
    note: Mapped[str]
    plain_id: Mapped[Optional[int]] = mapped_column(sa.ForeignKey("key_plain.id"))


core = sa.Table(
    "key_core",
    Base.metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, server_default=SnowflakeDefault()),
    sa.Column("note", sa.Text),
)


short = sa.Table("key_short", Base.metadata, snowflake_column("id"), sa.Column("note", sa.Text))


class Keys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.engine = sa.create_engine("postgresql+psycopg://")
        cls.inserts = []

        @sa.event.listens_for(cls.engine, "before_cursor_execute")
        def remember(connection, cursor, statement, parameters, context, executemany):
            if statement.startswith("INSERT"):
                cls.inserts.append(statement)

        Base.metadata.drop_all(cls.engine)
        Base.metadata.create_all(cls.engine)

    @classmethod
    def tearDownClass(cls):
        Base.metadata.drop_all(cls.engine)
        cls.engine.dispose()

    def setUp(self):
        self.inserts.clear()

    def default_of(self, table):
        columns = sa.inspect(self.engine).get_columns(table)
        return next(c["default"] for c in columns if c["name"] == "id")

    def insert_many(self, model):
        with Session(self.engine) as session:
            session.execute(sa.delete(model))
            objects = [model(note=str(i)) for i in range(2000)]
            session.add_all(objects)
            session.commit()
            stored = dict(session.execute(sa.select(model.note, model.id)).all())
            self.assertEqual({o.note: o.id for o in objects}, stored)
        self.assertEqual(len(self.inserts), 2)

    def test_two_statements_insert_2000_objects(self):
        self.insert_many(Plain)

    def test_a_key_from_a_mixin_is_inserted_in_pages(self):
        self.insert_many(FromMixin)

    def test_a_key_from_an_annotation_is_inserted_in_pages(self):
        self.insert_many(FromAnnotation)

    def test_a_composite_key_is_inserted_in_pages(self):
        self.insert_many(Composite)

    def test_core_returns_ids_in_the_order_of_rows(self):
        notes = [{"note": str(i)} for i in range(2000)]
        with self.engine.begin() as connection:
            insert = sa.insert(core).returning(core.c.id, core.c.note, sort_by_parameter_order=True)
            rows = connection.execute(insert, notes).all()
        self.assertEqual([row.note for row in rows], [note["note"] for note in notes])
        self.assertEqual(len(self.inserts), 2)

    def test_a_core_table_of_snowflake_column_is_inserted_in_pages(self):
        with self.engine.begin() as connection:
            insert = sa.insert(short).returning(short.c.id, short.c.note, sort_by_parameter_order=True)
            rows = connection.execute(insert, [{"note": str(i)} for i in range(2000)]).all()
        self.assertEqual([row.note for row in rows], [str(i) for i in range(2000)])
        self.assertEqual(len(self.inserts), 2)

    def test_an_id_that_the_application_passes_is_kept(self):
        with Session(self.engine) as session:
            passed = [Plain(id=i, note=f"passed {i}") for i in range(1, 11)]
            left_out = [Plain(note=f"left out {i}") for i in range(10)]
            session.add_all(passed + left_out)
            session.commit()
            self.assertEqual([o.id for o in passed], list(range(1, 11)))
            self.assertTrue(all(o.id > 1 << 40 for o in left_out))

    def test_create_all_writes_the_default(self):
        self.assertEqual(self.default_of("key_plain"), "snowflake_nextval()")
        self.assertEqual(self.default_of("key_annotation"), "snowflake_id()")
        self.assertEqual(self.default_of("key_core"), "snowflake_nextval()")

    def test_a_referencing_column_is_bigint(self):
        self.assertIsInstance(Composite.__table__.c.plain_id.type, sa.BigInteger)

    def test_a_copied_table_is_inserted_in_pages(self):
        copy = core.to_metadata(sa.MetaData())
        with self.engine.begin() as connection:
            insert = sa.insert(copy).returning(copy.c.id, sort_by_parameter_order=True)
            connection.execute(insert, [{"note": "copy"}] * 2000)
        self.assertEqual(len(self.inserts), 2)

    def test_autoincrement_is_refused(self):
        with self.assertRaisesRegex(sa.exc.ArgumentError, "autoincrement=True"):
            sa.Table("refused", sa.MetaData(), sa.Column(
                "id", sa.BigInteger, primary_key=True, autoincrement=True,
                server_default=SnowflakeDefault(),
            ))

    def test_ids_in_sql_alone_are_refused(self):
        with self.assertRaisesRegex(sa.exc.ArgumentError, "do not increase"):
            SnowflakeDefault(schema="snowflake_sql")

    def test_a_narrow_type_is_refused(self):
        with self.assertRaisesRegex(sa.exc.ArgumentError, "BigInteger"):
            sa.Table("refused", sa.MetaData(), sa.Column(
                "id", sa.Integer, primary_key=True, server_default=SnowflakeDefault()
            ))


if __name__ == "__main__":
    unittest.main()
