"""What can go wrong with the manifests that a deployment enforces."""

from __future__ import annotations

from collections.abc import Sequence

from reversi_sdk.errors import Conflict, InvalidInput, NotFound


class InvalidManifests(InvalidInput):
    """The manifest files cannot be enforced as they are; `problems` lists everything that is wrong with them."""

    code = "invalid_manifests"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class DocumentNotFound(NotFound):
    """A step names a manifest document that the store does not hold."""

    code = "manifest_document_not_found"

    def __init__(self, checksum: str) -> None:
        super().__init__(f"no manifest document {checksum}")
        self.checksum = checksum


class DocumentAltered(Conflict):
    """A stored manifest document is not what its checksum says: nothing in it is believed."""

    code = "manifest_document_altered"

    def __init__(self, checksum: str) -> None:
        super().__init__(f"manifest document {checksum} was changed after it was stored")
        self.checksum = checksum
