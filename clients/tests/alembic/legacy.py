"""A migration as people write it by hand; the model of the table is not changed."""

from alembic import op

revision = "by_hand"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CALL snowflake_migrate.run('legacy')")


def downgrade() -> None:
    op.execute("CALL snowflake_migrate.revert('legacy')")
