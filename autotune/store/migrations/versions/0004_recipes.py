"""Recipes that were imported: winners of studies in other stores."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "recipes",
        sa.Column("id", KEY, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("device", sa.Text, nullable=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("imported_at", sa.Double, nullable=False),
    )
    op.create_index("recipes_by_name", "recipes", ["name"])
