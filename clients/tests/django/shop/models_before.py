"""The models before tickets are migrated."""

from django.db import models
from django_snowflake_id import SnowflakeField


class Order(models.Model):
    id = SnowflakeField(primary_key=True)
    note = models.TextField(unique=True)

    class Meta:
        db_table = "orders"


class BulkRow(models.Model):
    note = models.TextField(unique=True)

    class Meta:
        db_table = "bulk_rows"


class Ticket(models.Model):
    id = models.AutoField(primary_key=True)
    note = models.TextField(unique=True)

    class Meta:
        db_table = "tickets"


class Comment(models.Model):
    id = models.AutoField(primary_key=True)
    ticket = models.ForeignKey(Ticket, models.CASCADE)

    class Meta:
        db_table = "comments"


class Naive(models.Model):
    id = models.BigAutoField(primary_key=True)

    class Meta:
        db_table = "naive"
