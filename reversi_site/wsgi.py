"""The web application as servers load it: `reversi_site.wsgi:application`."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from reversi_site.body_limit import BodyLimit
from reversi_site.store import SETTINGS

os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)

application = BodyLimit(get_wsgi_application())
