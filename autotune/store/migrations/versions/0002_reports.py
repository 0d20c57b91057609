"""What a trial reports while it runs: its learning curve."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "reports",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("trial_id", KEY, sa.ForeignKey("trials.id"), nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("metrics", sa.Text, nullable=False),
    )
    op.create_index("reports_by_trial", "reports", ["trial_id"])
