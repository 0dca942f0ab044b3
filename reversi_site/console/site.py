"""The operators' site: Django's admin with our pages, our sign-in and our frame (STYLE: the default site)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path, re_path

from approvals.core.people import Act, may
from approvals.queries import get_caller
from reversi_site.kit.admin import ReadOnlyAdmin
from reversi_site.kit.clock import SystemClock


class SignInForm(AdminAuthenticationForm):
    """Lets in whoever has a role or belongs to a group of approvers, and nobody else."""

    def confirm_login_allowed(self, user: AbstractBaseUser) -> None:
        """Refuse people who were switched off and people without any role, in the same words as a wrong password."""
        if not user.is_active or not may(get_caller(user.get_username()), Act.SIGN_IN):
            raise ValidationError(
                self.error_messages["invalid_login"],
                code="invalid_login",
                params={"username": self.username_field.verbose_name},
            )


class ConsoleSite(AdminSite):
    """The console. Its pages are listed in `routes`; the admin's own serve the read-only records."""

    site_header = site_title = "Reversi"
    index_title = "Home"
    site_url = None
    enable_nav_sidebar = False
    login_form = SignInForm
    login_template = "console/sign_in.html"
    logout_template = "console/signed_out.html"
    password_change_template = "console/password.html"
    password_change_done_template = "console/password_done.html"

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Take read-only records, and refuse every admin that could change a row."""
        if admin_class is None or not issubclass(admin_class, ReadOnlyAdmin):
            raise ImproperlyConfigured(f"the console shows read-only records only, not {admin_class}")
        super().register(model_or_iterable, admin_class, **options)

    def has_permission(self, request: HttpRequest) -> bool:
        from reversi_site.console.visit import caller_of

        caller = caller_of(request)
        return caller is not None and may(caller, Act.SIGN_IN)

    def may_read_records(self, request: HttpRequest) -> bool:
        """Tell whether the caller may look into the tables: what the read-only admins ask."""
        from reversi_site.console.visit import caller_of

        caller = caller_of(request)
        return caller is not None and may(caller, Act.EXPORT)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        from reversi_site.console.frame import frame_of
        from reversi_site.console.visit import caller_of

        context = {"has_permission": self.has_permission(request), "site_header": self.site_header, "is_popup": False}
        caller = caller_of(request)
        if caller is None or not context["has_permission"]:
            return context
        return {**context, **frame_of(request, caller, SystemClock().now())}

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Return our pages, and of the admin's those for signing in and out and the read-only records."""
        from reversi_site.console.routes import ROUTES

        pages = [path(route, self.admin_view(view), name=name) for route, name, view in ROUTES]
        return [
            path("", self.admin_view(self.index), name="index"),
            path("login/", self.login, name="login"),
            path("logout/", self.admin_view(self.logout), name="logout"),
            path("password/", self.admin_view(self.password_change, cacheable=True), name="password_change"),
            path("password/done/", self.admin_view(self.password_change_done), name="password_change_done"),
            *pages,
            *(self._records(model, found) for model, found in self._registry.items()),
            re_path(r"(?P<url>.*)$", self.admin_view(self.catch_all_view)),
        ]

    def _records(self, model: type[Model], found: ModelAdmin[Any]) -> URLResolver:
        place = f"records/{model._meta.app_label}/{model._meta.model_name}/"
        return path(place, include(found.get_urls()))

    # Ours is rendered when it is returned, which is all that a server needs.
    def index(  # type: ignore[override]
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        from reversi_site.console.pages.home import home

        return home(request)
