from alembic import context
from snowflake_id_sqlalchemy.alembic import PLUGIN, include_name, rewriter
from sqlalchemy import create_engine, pool

target_metadata = context.config.attributes["metadata"]


def run_migrations_online():
    engine = create_engine("postgresql+psycopg://", poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(
            connection=connection,
            target_metadata=target_metadata,
            compare_server_default=True,
            autogenerate_plugins=["alembic.autogenerate.*", PLUGIN],
            include_schemas=True,
            include_name=include_name,
            process_revision_directives=rewriter,
        )
        with context.begin_transaction():
            context.run_migrations()


run_migrations_online()
