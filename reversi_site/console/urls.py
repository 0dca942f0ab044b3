"""The console's addresses, to be included at the root of the site's."""

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

# Here and not when Django starts: commands that serve no page do not load the admin modules.
admin.autodiscover()

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="root"),
    path("console/", admin.site.urls),
]
