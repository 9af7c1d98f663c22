import django_snowflake_id
from django.db import migrations

import shop.models


class Migration(migrations.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AlterField(
            model_name="ticket",
            name="id",
            field=django_snowflake_id.SnowflakeField(primary_key=True, serialize=False),
        ),
        migrations.AlterField(
            model_name="comment",
            name="id",
            field=django_snowflake_id.SnowflakeField(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
            ),
        ),
        migrations.AlterField(
            model_name="naive",
            name="id",
            field=shop.models.NaiveField(primary_key=True, serialize=False),
        ),
    ]
