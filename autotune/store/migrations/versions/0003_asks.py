"""What a strategy knew when it was asked, so that its proposals can be derived again."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "asks",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("study_id", KEY, sa.ForeignKey("studies.id"), nullable=False),
        sa.Column("session_id", KEY, sa.ForeignKey("sessions.id"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("wanted", sa.Integer, nullable=False),
        sa.Column("trials_known", sa.Integer, nullable=False),
        sa.Column("results_known", sa.Integer, nullable=False),
        sa.Column("trials", sa.Text, nullable=False),
    )
    op.create_index("asks_by_study", "asks", ["study_id"])
