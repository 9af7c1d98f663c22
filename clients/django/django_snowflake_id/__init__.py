"""Primary keys of the PostgreSQL extension snowflake in Django.

    class Order(models.Model):
        id = SnowflakeField(primary_key=True)

or, for all models of an application without a key of their own,
``default_auto_field = "django_snowflake_id.SnowflakeField"`` in its apps.py.
"""

import copy
from functools import wraps

from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.db.models.fields import NOT_PROVIDED

__all__ = ["SnowflakeField"]


class SnowflakeField(models.BigAutoField):
    """A BigAutoField whose values are those of ``snowflake_nextval()``.

    In PostgreSQL the column is ``bigint DEFAULT snowflake_nextval()``. With
    other database systems, it is a BigAutoField.
    """

    description = "Snowflake ID"

    def db_type_suffix(self, connection):
        if connection.vendor == "postgresql":
            return "DEFAULT snowflake_nextval()"
        return super().db_type_suffix(connection)

    def check(self, **kwargs):
        errors = super().check(**kwargs)
        if self.db_default is not NOT_PROVIDED:
            errors.append(
                checks.Error(
                    "SnowflakeField must not have a db_default.",
                    hint="The field has the default snowflake_nextval().",
                    obj=self,
                    id="django_snowflake_id.E001",
                )
            )
        return errors


def _migrating(alter_field):
    """Has the extension snowflake_migrate migrate a column that becomes a SnowflakeField.

    Django itself sees no difference: both fields are a ``bigint``. Fields have
    no method that an AlterField of a migration calls, so this wraps the method
    of the schema editor.
    """

    @wraps(alter_field)
    def _alter_field(
        self, model, old_field, new_field, old_type, new_type, old_db_params, new_db_params, strict=False
    ):
        after = isinstance(new_field, SnowflakeField)
        if after != isinstance(old_field, SnowflakeField):
            (_migrate if after else _revert)(self, model, old_field, new_field)
            # What else changes, for example the name of the column. The type of
            # a number does not: after a reversal the column stays a bigint, since
            # it contains IDs that an integer cannot hold.
            if isinstance(new_field, models.IntegerField):
                migrated = copy.copy(new_field)
                migrated.column, migrated.db_comment = old_field.column, old_field.db_comment
                migrated.primary_key, migrated._unique = old_field.primary_key, old_field._unique
                old_field, old_type, old_db_params = migrated, new_type, new_db_params
        return alter_field(
            self, model, old_field, new_field, old_type, new_type, old_db_params, new_db_params, strict
        )

    return _alter_field


def _call(editor, routine, model, field):
    table, column = (editor.quote_value(v) for v in (editor.quote_name(model._meta.db_table), field.column))
    editor.execute(f"CALL {routine}({table}, {column})")
    return table, column


def _migrate(editor, model, old_field, new_field):
    table, column = _call(editor, "snowflake_migrate.run", model, old_field)
    # The extension widens each column that has a foreign key. Without a
    # constraint, only the model knows of the reference.
    for relation in model._meta.get_fields(include_hidden=True):
        if not relation.auto_created or relation.concrete or relation.many_to_many:
            continue
        field = relation.field
        # Not each kind of reference has a constraint, or a column: ForeignObject, GenericRelation.
        if not getattr(field, "db_constraint", True) and old_field in field.foreign_related_fields:
            changes = editor.sql_alter_column_type % {
                "column": editor.quote_name(field.column),
                "type": new_field.rel_db_type(editor.connection),
                "collation": "",
            }
            related_table = editor.quote_name(relation.related_model._meta.db_table)
            editor.execute(editor.sql_alter_column % {"table": related_table, "changes": changes})
    # A serial column, of Django before 4.1, still owns its sequence. loaddata
    # and sqlsequencereset would set that sequence to a snowflake ID, which it
    # may not be able to hold. The reversal makes the column its owner again.
    editor.execute(
        f"""DO $$
DECLARE
    owned regclass := pg_catalog.pg_get_serial_sequence({table}, {column});
BEGIN
    IF owned IS NOT NULL THEN
        EXECUTE pg_catalog.format('ALTER SEQUENCE %%s OWNED BY NONE', owned);
    END IF;
END
$$"""
    )


def _revert(editor, model, old_field, new_field):
    _call(editor, "snowflake_migrate.revert", model, old_field)


def _install():
    try:
        from django.db.backends.postgresql.schema import DatabaseSchemaEditor
    except (ImportError, ImproperlyConfigured):
        # psycopg is not installed, so there is no PostgreSQL.
        return
    DatabaseSchemaEditor._alter_field = _migrating(DatabaseSchemaEditor._alter_field)


_install()
