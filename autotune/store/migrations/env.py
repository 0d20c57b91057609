"""Run by alembic: applies the migrations on the connection, and in the transaction, that it is handed."""

from alembic import context

from autotune.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    transactional_ddl=True,  # true of SQLite too, once transactions are begun by hand
)
with context.begin_transaction():
    context.run_migrations()
