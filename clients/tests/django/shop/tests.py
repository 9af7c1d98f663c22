from django.test import TestCase

from .models import BulkRow, Ticket


class Keys(TestCase):
    """manage.py test: its database is made by the migrations alone."""

    def test_rows_get_snowflake_ids(self):
        self.assertGreater(BulkRow.objects.create(note="a row").pk, 1 << 40)
        self.assertGreater(Ticket.objects.create(note="a row").pk, 1 << 40)
