# Django, its long-term release, with psycopg 3, Django REST framework, and the
# package of clients/django.
# shellcheck shell=bash
# shellcheck source=clients/tests/orm.sh
. ../orm.sh

install() { python_env && python_package django; }

# manage ARGUMENT...: manage.py of the project.
manage() { "$VENV/bin/python" -B manage.py "$@"; }

# first_operation FILE EXTENSION: makes CreateExtension the first operation of a migration.
first_operation() {
    sed -i -e 's/^from django.db import migrations/from django.contrib.postgres.operations import CreateExtension\n&/' \
        -e "s/^    operations = \[/&\n        CreateExtension(\"$2\"),/" "$1"
}

run() {
    local here=$PWD database=$PGDATABASE
    python_env
    # These make a database of their own.
    PGUSER=postgres python_package_tests django

    # A reader begins with an empty database, and with what Django's generators write.
    PGDATABASE=postgres superuser "DROP DATABASE \"$database\"" "CREATE DATABASE \"$database\" OWNER app TEMPLATE template0"
    superuser 'CREATE EXTENSION pg_stat_statements'
    mkdir "$OUT/project"
    cd "$OUT/project" || return
    "$VENV/bin/django-admin" startproject project .
    manage startapp shop
    cat "$here/settings.py" >>project/settings.py
    cp "$here"/shop/{admin,serializers,tests}.py shop/
    cp "$here/program.py" "$here/everywhere.py" .

    # The application before: tickets have an AutoField.
    cp "$here/shop/models_before.py" shop/models.py
    manage makemigrations shop --settings=everywhere
    expect 1 "$(grep -c SnowflakeField shop/migrations/0001_initial.py)" 'with the apps.py of startapp, only the model that names the field has it, in spite of DEFAULT_AUTO_FIELD'
    rm shop/migrations/0001_initial.py
    sed -i 's/default_auto_field = .*/default_auto_field = "django_snowflake_id.SnowflakeField"/' shop/apps.py
    manage makemigrations shop
    expect 2 "$(grep -c SnowflakeField shop/migrations/0001_initial.py)" 'with the line in apps.py, so has a model without a key of its own'
    first_operation shop/migrations/0001_initial.py snowflake
    # And after.
    manage makemigrations shop --empty --name tool
    first_operation shop/migrations/0002_tool.py snowflake_migrate
    cp "$here/shop/models.py" shop/
    manage makemigrations shop --name snowflake
    if PGUSER=postgres manage test; then check ok 'manage.py test'; else check failed 'manage.py test'; fi
    "$VENV/bin/python" -B program.py
}
