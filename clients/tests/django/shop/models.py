from django.db import models
from django_snowflake_id import SnowflakeField


class Order(models.Model):
    id = SnowflakeField(primary_key=True)
    note = models.TextField(unique=True)

    class Meta:
        db_table = "orders"


class BulkRow(models.Model):
    # The key is that of default_auto_field in apps.py.
    note = models.TextField(unique=True)

    class Meta:
        db_table = "bulk_rows"


class Ticket(models.Model):
    """Has an AutoField in models_before.py."""

    id = SnowflakeField(primary_key=True)
    note = models.TextField(unique=True)

    class Meta:
        db_table = "tickets"


class Comment(models.Model):
    ticket = models.ForeignKey(Ticket, models.CASCADE)

    class Meta:
        db_table = "comments"


class NaiveField(models.BigAutoField):
    """What does not do: the field without the rest of the package."""

    def db_type_suffix(self, connection):
        return "DEFAULT snowflake_nextval()"


class Naive(models.Model):
    id = NaiveField(primary_key=True)

    class Meta:
        db_table = "naive"
