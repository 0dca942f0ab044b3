"""Django's settings, from the environment with safe defaults; secrets are made on first use.

`REVERSI_DATA` chooses the embedded store's folder, `DATABASE_URL` another database, `REVERSI_CONFIG` the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from reversi_site.configuration import load_configuration, load_worker_count
from reversi_site.database_url import database_settings
from reversi_site.secret_files import load_or_create, new_key_ring, new_text_key, parse_key_ring, prepare_folder

# Read before anything is made: a mistake in it leaves nothing behind.
CONFIGURATION = load_configuration(os.environ, Path())

DATA = Path(os.environ.get("REVERSI_DATA") or "reversi-data")
prepare_folder(DATA)

DEBUG = False
ALLOWED_HOSTS: list[str] = []
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
SECRET_KEY = os.environ.get("REVERSI_SECRET_KEY") or load_or_create(DATA / "secret.key", new_text_key)

REVERSI_LEDGER_KEYS = parse_key_ring(
    os.environ.get("REVERSI_LEDGER_KEYS") or load_or_create(DATA / "ledger.keys", new_key_ring),
    name="the ledger key ring",
)
# Never rotated: it makes the digests that refuse a repeated call comparable over time.
REVERSI_CALL_KEY_SECRET = os.environ.get("REVERSI_CALL_KEY_SECRET") or load_or_create(DATA / "calls.key", new_text_key)

DATABASES = {"default": database_settings(os.environ.get("DATABASE_URL"), DATA)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django_q",
    "ledger",
    "manifests_registry",
    "approvals",
    "rollback",
    "gateway",
    "reversi_site",
]

# Measured settings (see docs/operations.md): the job row is the authority, the queue's task only a hint.
Q_CLUSTER = {
    "name": "reversi",
    "orm": "default",
    "workers": load_worker_count(os.environ),
    "queue_limit": 1,
    "bulk": 1,
    "timeout": 600,
    "retry": 1500,
    "poll": 0.5,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "guard_cycle": 0.5,
    "scheduler": False,
    "save_limit": 250,
    "label": "Queue",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("REVERSI_LOG_LEVEL") or "WARNING"},
}

GATEWAY_TIMEOUT_MS = 60_000
CALLER_TIMEOUT_MS = 15 * 60_000
SWEEP_GRACE_MS = 60_000

# The composition root passes its wiring to the apps below by name: which tools a worker can reach.
REVERSI_TOOLS = os.environ.get("REVERSI_TOOLS") or "reversi_site.wiring.configured_tools"
