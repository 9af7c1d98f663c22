
# What a project adds to the settings that startproject writes.
import os

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["PGDATABASE"],
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"],
        "PASSWORD": os.environ["PGPASSWORD"],
        "TEST": {"TEMPLATE": "template0"},
    }
}
INSTALLED_APPS += ["shop"]  # noqa: F821
ALLOWED_HOSTS = ["testserver"]
