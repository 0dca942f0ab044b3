"""A pydantic model of a manifest, for programs that already speak pydantic.

The one validator runs first, so the model cannot disagree with it; the model then offers the normal form's fields.
Import this module only where pydantic is wanted: the rest of the manifest language does without it.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from reversi_sdk.manifests import manifest_checksum, manifest_from_normal, validate_manifest
from reversi_sdk.model import Manifest


class RequiredTool(BaseModel):
    """A tool that must have succeeded earlier in the run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    status: Literal["succeeded"]


class ToolManifest(BaseModel):
    """The manifest of one tool in normal form; the parts of its effect stay plain objects."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str
    effect: str | dict[str, Any]
    permission: str
    version: int
    status: Literal["draft", "approved", "deprecated"]
    approval: Literal["never", "always"] | dict[str, Any]
    description: str | None = None
    compensation: dict[str, Any] | None = None
    requires: tuple[RequiredTool, ...] = ()
    replaced_by: str | None = None
    owner: str | None = None
    oncall: str | None = None
    risk: dict[str, str] | None = None
    timeout_ms: int | None = None
    retry: dict[str, int] | None = None
    idempotency: dict[str, str] | None = None
    key_carrier: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
    schema_hash: str | None = None
    before: dict[str, Any] | None = None
    touches: tuple[str, ...] | None = None
    lookup: dict[str, Any] | None = None
    draft: dict[str, Any] | None = None
    summary: str | None = None
    observed_by: Literal["gateway"] | None = None
    compensation_only: bool = False

    @model_validator(mode="before")
    @classmethod
    def _validate_as_manifest(cls, data: Any) -> Any:
        normalized, errors = validate_manifest(data)
        if normalized is None:
            listing = "; ".join(f"{error['path']}: {error['message']}" for error in errors)
            raise PydanticCustomError("manifest_invalid", "{listing}", {"listing": listing, "errors": errors})
        return normalized

    @property
    def normalized(self) -> dict[str, Any]:
        """The normal form, as `validate_manifest` gives it."""
        data: dict[str, Any] = self.model_dump(mode="json", exclude_unset=True)
        return data

    @property
    def checksum(self) -> str:
        """The checksum of the normal form."""
        return manifest_checksum(self.normalized)

    def to_model(self) -> Manifest:
        """The internal model."""
        return manifest_from_normal(self.normalized)
