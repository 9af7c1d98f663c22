# Django, its long-term release, with psycopg 3, Django REST framework, and the
# package of clients/django.
# shellcheck shell=bash
# shellcheck source=clients/tests/orm.sh
. ../orm.sh

install() { python_env && python_package django; }

run() {
    python_env
    # These make a database of their own.
    PGUSER=postgres python_package_tests django
    "$VENV/bin/python" -B program.py
}
