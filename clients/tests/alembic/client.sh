# Alembic with SQLAlchemy 2.1 and psycopg 3, and the package of clients/sqlalchemy.
# shellcheck shell=bash
# shellcheck source=clients/tests/orm.sh
. ../orm.sh

# The ORM inserts 1,000 rows with a statement.
# shellcheck disable=SC2034
STATEMENTS=2

install() { python_env && python_package sqlalchemy; }

run() {
    python_env
    python_package_tests sqlalchemy
    "$VENV/bin/python" -B program.py
}
