"""The base of every model's admin: tables can be looked into, by whom the site lets, and never changed there.

What people may do is a button on a page that calls one operation, not a form over a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Model
from django.forms import Media
from django.http import HttpRequest
from django.urls import URLPattern, path

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Model]
else:
    # The class takes its type in the stubs only.
    _Base = admin.ModelAdmin


class ReadOnlyAdmin(_Base):
    """Lists and shows rows. The site says who may, through `may_read_records(request)`."""

    actions = None
    list_per_page = 50
    show_full_result_count = False

    @property
    def media(self) -> Media:
        """Nothing: a page that changes nothing needs no script."""
        return Media()

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the list and of its rows: what changes nothing has no others."""
        info = f"{self.opts.app_label}_{self.opts.model_name}"
        site = self.admin_site
        return [
            path("", site.admin_view(self.changelist_view), name=f"{info}_changelist"),
            path("<path:object_id>/change/", site.admin_view(self.change_view), name=f"{info}_change"),
        ]

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        may_read: Callable[[HttpRequest], bool] = getattr(self.admin_site, "may_read_records", lambda _: False)
        return may_read(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
