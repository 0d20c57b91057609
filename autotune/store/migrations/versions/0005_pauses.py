"""What was known of trials when they were paused, so that strategies can be told of it, and told it again."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "pauses",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("study_id", KEY, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("trial_id", KEY, sa.ForeignKey("trials.id"), nullable=False),
        sa.Column("told", sa.Integer, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("phases", sa.Text, nullable=False),
        sa.Column("metrics", sa.Text, nullable=False),
        sa.Column("peak_memory", sa.BigInteger),
        sa.Column("facts", sa.Text, nullable=False),
    )
    op.create_index("pauses_by_told", "pauses", ["study_id", "told"], unique=True)
    op.create_index("pauses_by_trial", "pauses", ["trial_id", "step"], unique=True)
