from django.db import models
from django_snowflake_id import SnowflakeField


class Author(models.Model):
    id = SnowflakeField(primary_key=True)
    name = models.CharField(max_length=100)


class Book(models.Model):
    """Its key is made by DEFAULT_AUTO_FIELD."""

    author = models.ForeignKey(Author, models.CASCADE)
    readers = models.ManyToManyField(Author, related_name="read")


class Novel(Book):
    title = models.CharField(max_length=100)
