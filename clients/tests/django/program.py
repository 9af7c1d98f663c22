"""What docs/clients.md says about Django, with a server."""

import io
import json
import os
import subprocess
import sys
from datetime import timedelta

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.migrations.executor import MigrationExecutor  # noqa: E402
from django.db.models import Func  # noqa: E402
from django.db.models.functions import Now  # noqa: E402
from django.test import Client  # noqa: E402
from shop.models import BulkRow, Comment, Naive, Order, Ticket  # noqa: E402
from shop.serializers import CommentSerializer, OrderSerializer  # noqa: E402

OUT = os.environ["OUT"]
ids = open(f"{OUT}/ids", "w")
checks = open(f"{OUT}/checks", "a")


def check(passed, what):
    checks.write(f"{'ok' if passed else 'failed'}\t{what}\n")


def returned(row):
    ids.write(f"{row._meta.db_table}\t{row.note}\t{row.pk}\n")


def default_of(table):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT data_type, CASE WHEN is_identity = 'YES' THEN 'identity' ELSE column_default END"
            " FROM information_schema.columns WHERE table_name = %s AND column_name = 'id'",
            [table],
        )
        return cursor.fetchone()


def migrate(name):
    call_command("migrate", "shop", name, verbosity=0)
    executor = MigrationExecutor(connection)
    return executor.loader.project_state([("shop", name)]).apps


def changes_of_models():
    try:
        call_command("makemigrations", "shop", check=True, dry_run=True, verbosity=0, stdout=io.StringIO())
    except SystemExit:
        return True
    return False


with open(f"{OUT}/version", "w") as file:
    file.write(f"Django {django.__version__}\n")

# For all applications, the field needs the extension before the first migration can create it.
everywhere = [sys.executable, "-B", "manage.py", "migrate", "--settings=everywhere"]
refused = subprocess.run(everywhere, capture_output=True, text=True, timeout=60)
check("Unable to create the django_migrations table" in refused.stderr, "DEFAULT_AUTO_FIELD fails in an empty database")

# The application before: tickets have an AutoField.
old = migrate("0001_initial")
OldTicket = old.get_model("shop", "Ticket")
ticket = OldTicket.objects.create(note="before")
old.get_model("shop", "Comment").objects.create(ticket=ticket)
returned(ticket)
check(default_of("bulk_rows") == ("bigint", "snowflake_nextval()"), "default_auto_field of the application gives a model the key")
check(ticket.pk == 1 and default_of("tickets") == ("integer", "identity"), "an AutoField gives the first ticket 1")

# The application after.
migrate("0003_snowflake")
check(default_of("tickets") == ("bigint", "snowflake_nextval()"), "AlterField to a SnowflakeField migrates the table")
check(
    default_of("naive") == ("bigint", "identity"),
    "AlterField to a field that only has the suffix leaves the sequence, without an error",
)
check(Naive.objects.create().pk == 1, "and new rows get numbers of the sequence")
check(not changes_of_models(), "makemigrations finds no difference")
ticket = Ticket.objects.create(note="after")
returned(ticket)
check(ticket.pk > 1 << 40, "the ticket after the migration has a snowflake ID")
comment = Comment.objects.create(ticket=ticket)
check(Comment.objects.get(ticket=ticket.pk) == comment, "a ForeignKey holds the new ID")
check(Ticket.objects.get(pk=1).note == "before", "the old ticket is found by its number")
check(not OldTicket.objects.filter(pk=ticket.pk).exists(), "a model that still has AutoField does not find the new row")

# One and many.
order = Order.objects.create(note="first")
returned(order)
rows = BulkRow.objects.bulk_create([BulkRow(note=f"row {i}") for i in range(2000)])
for row in rows:
    returned(row)
changed = sum(int(float(row.pk)) != row.pk for row in rows)
check(changed > 1000, "most IDs would change as JSON numbers of a browser")

# A range of time.
last_hour = Order.objects.filter(
    id__gte=Func(Now() - timedelta(hours=1), function="snowflake_min_id")
)
check([o.note for o in last_hour] == ["first"], "a range of the key finds the order of the last hour")
earlier = Order.objects.filter(id__lt=Func(Now() - timedelta(hours=1), function="snowflake_min_id"))
check(not earlier.exists(), "an earlier range finds no order")

# Text for JSON.
message = json.dumps({"id": str(order.pk), "note": order.note})
check(Order.objects.get(pk=json.loads(message)["id"]) == order, "an ID that was sent as text finds its row")
check(OrderSerializer(order).data["id"] == str(order.pk), "Django REST framework sends the key as text")
data = CommentSerializer(comment).data
check(data["ticket"] == str(ticket.pk), "and the key of a related row")
accepted = CommentSerializer(data=json.loads(json.dumps({"ticket": str(ticket.pk)})))
check(accepted.is_valid() and accepted.save().ticket == ticket, "and accepts it as text")

# The admin.
call_command("migrate", verbosity=0)
user = User.objects.create_superuser("admin")
check(user.pk == 1, "the tables of Django's own applications keep their keys")
client = Client()
client.force_login(user)
page = client.get(f"/admin/shop/order/{order.pk}/change/")
check(page.status_code == 200, "the admin shows the page of a row")
client.post(f"/admin/shop/order/{order.pk}/change/", {"note": "changed"})
check(Order.objects.get(pk=order.pk).note == "changed", "the admin changes a row")
Order.objects.update(note="first")
client.post("/admin/shop/comment/add/", {"ticket": str(ticket.pk)})
check(Comment.objects.filter(ticket=ticket).count() == 3, "the admin adds a row with a ForeignKey")

# Back. The rows keep their IDs.
migrate("0002_tool")
check(default_of("tickets") == ("bigint", "identity"), "the migration is reversed, and the column stays a bigint")
check(OldTicket.objects.create(note="reversed").pk == 2, "after that, the next ticket has the next number")
migrate("0003_snowflake")
check(Ticket.objects.create(note="again").pk > ticket.pk, "it can be migrated again")
