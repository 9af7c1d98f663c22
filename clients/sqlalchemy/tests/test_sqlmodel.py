"""Tests with a server, which the variables PGHOST, PGPORT and so on name."""

import unittest
from typing import Optional

import sqlalchemy as sa
from snowflake_id_sqlalchemy import snowflake_column, snowflake_key

try:
    from sqlmodel import Field, Session, SQLModel, select
except ImportError:
    raise unittest.SkipTest("SQLModel is not installed") from None


class Order(SQLModel, table=True):
    __tablename__ = "sqlmodel_orders"
    id: Optional[int] = Field(default=None, sa_column=snowflake_column())
    note: str = Field(unique=True)


class OrderLine(SQLModel, table=True):
    __tablename__ = "sqlmodel_order_lines"
    id: Optional[int] = Field(default=None, sa_column=snowflake_column(function="snowflake_id"))
    order_id: int = Field(foreign_key="sqlmodel_orders.id", sa_type=sa.BigInteger)


class Narrow(SQLModel, table=True):
    """What does not do: the column is an INTEGER."""

    __tablename__ = "sqlmodel_narrow"
    id: Optional[int] = Field(default=None, primary_key=True)
    order_id: int = Field(foreign_key="sqlmodel_orders.id")


class Models(unittest.TestCase):
    TABLES = [Order.__table__, OrderLine.__table__]

    @classmethod
    def setUpClass(cls):
        cls.engine = sa.create_engine("postgresql+psycopg://")
        cls.inserts = []

        @sa.event.listens_for(cls.engine, "before_cursor_execute")
        def remember(connection, cursor, statement, parameters, context, executemany):
            if statement.startswith("INSERT"):
                cls.inserts.append(statement)

        SQLModel.metadata.drop_all(cls.engine, tables=cls.TABLES)
        SQLModel.metadata.create_all(cls.engine, tables=cls.TABLES)

    @classmethod
    def tearDownClass(cls):
        SQLModel.metadata.drop_all(cls.engine, tables=cls.TABLES)
        cls.engine.dispose()

    def setUp(self):
        self.inserts.clear()

    def columns_of(self, table):
        return {column["name"]: column for column in sa.inspect(self.engine).get_columns(table)}

    def test_two_statements_insert_2000_sqlmodel_objects(self):
        with Session(self.engine) as session:
            rows = [Order(note=str(i)) for i in range(2000)]
            session.add_all(rows)
            session.commit()
            self.assertEqual(len(self.inserts), 2)
            stored = dict(session.exec(select(Order.note, sa.cast(Order.id, sa.Text))).all())
            self.assertEqual({row.note: str(row.id) for row in rows}, {row.note: stored[row.note] for row in rows})

    def test_a_sqlmodel_object_is_found_and_updated_by_its_id(self):
        with Session(self.engine) as session:
            order = Order(note="first")
            session.add(order)
            session.commit()
            order_id = order.id
            self.assertGreater(order_id, 1 << 53)
            updated = session.exec(sa.update(Order).where(Order.id == order_id).values(note="changed"))
            self.assertEqual(updated.rowcount, 1)
            session.add(OrderLine(order_id=order_id))
            session.commit()
            session.expunge_all()
            self.assertEqual(session.get(Order, order_id).note, "changed")
            line = session.exec(select(OrderLine).where(OrderLine.order_id == order_id)).one()
            self.assertGreater(line.id, 1 << 53)

    def test_create_all_writes_the_default_of_a_sqlmodel_table(self):
        orders, lines = self.columns_of("sqlmodel_orders"), self.columns_of("sqlmodel_order_lines")
        self.assertEqual(orders["id"]["default"], "snowflake_nextval()")
        self.assertEqual(lines["id"]["default"], "snowflake_id()")
        self.assertIsInstance(lines["order_id"]["type"], sa.BigInteger)

    def test_a_sqlmodel_foreign_key_without_a_type_is_an_integer(self):
        column = Narrow.__table__.c.order_id
        self.assertIsInstance(column.type, sa.Integer)
        self.assertNotIsInstance(column.type, sa.BigInteger)

    def test_sqlmodel_refuses_a_mapped_column(self):
        with self.assertRaisesRegex(sa.exc.ArgumentError, "could not assemble any primary key"):

            class Refused(SQLModel, table=True):
                __tablename__ = "sqlmodel_refused"
                id: Optional[int] = Field(default=None, sa_column=snowflake_key())


if __name__ == "__main__":
    unittest.main()
