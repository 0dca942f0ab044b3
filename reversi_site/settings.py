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
# Whoever is called by another name than these may be somebody else's page that was pointed here.
ALLOWED_HOSTS = [
    *(os.environ.get("REVERSI_ALLOWED_HOSTS") or "").replace(",", " ").split(),
    "localhost",
    "127.0.0.1",
    "[::1]",
]
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
GATEWAY_IDLE_RUN_MS = 30 * 60_000

# The composition root passes its wiring to the apps below by name: which tools a worker can reach.
REVERSI_TOOLS = os.environ.get("REVERSI_TOOLS") or "reversi_site.wiring.configured_tools"
UPSTREAM_OF = "reversi_site.wiring.configured_upstream_of"

# The API. Its bases know no app: who calls, what a caller may and who keeps answers is named here.
API_AUTHENTICATE = "approvals.operations.keys.authenticate"
API_AUTHORIZE = "approvals.api.access.authorize"
API_ANSWERS = "ledger.operations.idempotency"
# How many requests of one process may wait for an approval at once; further ones are answered as it stands.
API_APPROVAL_WAITERS = 8
INSTALLED_APPS += ["rest_framework", "drf_spectacular", "drf_spectacular_sidecar"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["reversi_site.kit.api.authentication.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_SCHEMA_CLASS": "reversi_site.kit.api.schema.OperationSchema",
    "EXCEPTION_HANDLER": "reversi_site.problems.handle_exception",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Reversi",
    "DESCRIPTION": "Announce the calls of an agent before they are made, see how a run is undone, and undo it.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "PREPROCESSING_HOOKS": [],
    "POSTPROCESSING_HOOKS": [
        "reversi_site.kit.api.schema.add_problems",
        "reversi_site.kit.api.schema.open_any_values",
    ],
    "APPEND_COMPONENTS": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    "SECURITY": [{"key": []}],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
# Nothing of a longer body is read.
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
APPEND_SLASH = False

# The console: Django's admin on a site of our own, with its own theme, and nothing that comes from elsewhere.
INSTALLED_APPS += [
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "reversi_site.console.apps.ConsoleConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "reversi_site.console.security.ContentSecurityPolicy",
    "reversi_site.console.security.CookiesKeptToHttps",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Innermost: what is counted and sent is what it made of the page.
    "reversi_site.console.security.SteeringMadeVisible",
]
ROOT_URLCONF = "reversi_site.urls"
ROOT = Path(__file__).resolve().parent
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Before the admin's own: its pages are shown inside ours.
        "DIRS": [ROOT.parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["reversi_site.console.tags"],
        },
    }
]
DATETIME_FORMAT = "Y-m-d H:i:s"
STATIC_URL = "/static/"
# Served from where the packages keep them: no step before the first start collects anything.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
STATICFILES_DIRS = [ROOT / "console" / "static"]
LOGIN_URL = "admin:login"
# Messages may repeat what agents wrote: kept here, not in a cookie.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_NAME = "reversi_session"
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "reversi_csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "reversi_site.console.refusals.csrf_failed"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# What people read at the top of every page, so that nobody mistakes one deployment for another.
REVERSI_ENVIRONMENT = os.environ.get("REVERSI_ENVIRONMENT") or "local"
# Where people reach the console; agents that must wait for them are told.
REVERSI_CONSOLE_URL = os.environ.get("REVERSI_CONSOLE_URL") or None
