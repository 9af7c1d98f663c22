import django.db.models.deletion
import django_snowflake_id
from django.contrib.postgres.operations import CreateExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        CreateExtension("snowflake"),
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", django_snowflake_id.SnowflakeField(primary_key=True, serialize=False)),
                ("note", models.TextField(unique=True)),
            ],
            options={"db_table": "orders"},
        ),
        migrations.CreateModel(
            name="BulkRow",
            fields=[
                (
                    "id",
                    django_snowflake_id.SnowflakeField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("note", models.TextField(unique=True)),
            ],
            options={"db_table": "bulk_rows"},
        ),
        migrations.CreateModel(
            name="Ticket",
            fields=[
                ("id", models.AutoField(primary_key=True, serialize=False)),
                ("note", models.TextField(unique=True)),
            ],
            options={"db_table": "tickets"},
        ),
        migrations.CreateModel(
            name="Comment",
            fields=[
                ("id", models.AutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ticket", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="shop.ticket")),
            ],
            options={"db_table": "comments"},
        ),
        migrations.CreateModel(
            name="Naive",
            fields=[("id", models.BigAutoField(primary_key=True, serialize=False))],
            options={"db_table": "naive"},
        ),
    ]
