"""The console's addresses, to be included at the root of the site's."""

from importlib import import_module

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

# Here and not when Django starts: commands that serve no page need none of them. By name and not by discovery: what
# the queue offers runs any function that a row names, and users and groups have pages that journal who changed them.
for app in ("ledger", "approvals", "rollback"):
    import_module(f"{app}.admin")

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="root"),
    path("console/", admin.site.urls),
]
