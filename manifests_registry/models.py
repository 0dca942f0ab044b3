"""The registry's table of manifest documents: content-addressed, immutable, held so by triggers."""

from __future__ import annotations

from django.db import models


class ManifestDocument(models.Model):
    """The canonical bytes of one normalised manifest, under their own SHA-256.

    A step points to the documents it ran under, so what its undo is can never change afterwards.
    """

    checksum = models.CharField(primary_key=True, max_length=64)
    payload = models.BinaryField()

    def __str__(self) -> str:
        return self.checksum
