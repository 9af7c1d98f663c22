"""Settings with the field for all applications, Django's own included."""

from project.settings import *  # noqa: F403

DEFAULT_AUTO_FIELD = "django_snowflake_id.SnowflakeField"
