"""One line that tells a person what a call does, rendered when it is announced (D14).

The manifest's template speaks first. The default names the tool and its short plain arguments; long texts are only
measured, since arguments are not stored, and what is named like a credential is hidden. Redacted paths are hidden in
both. The line shows no control or bidirectional character as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from approvals.core.redaction import REDACTED, is_credential, is_redacted
from ledger.core.text import make_visible
from reversi_sdk.canonical import scalar_text
from reversi_sdk.model import Manifest
from reversi_sdk.references import Reference, Root, Spelling
from reversi_sdk.templates import Template, TemplateUnavailable, parse_template, render_template

LIMIT = 200
LONGEST_TEXT = 40
_PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)
_BREAKS = str.maketrans({"\n": "\\n", "\t": "\\t"})


def summarise(tool: str, manifest: Manifest | None, args: Mapping[str, Any], redacted: Iterable[Reference]) -> str:
    """Return the summary of a call."""
    paths = tuple(redacted)
    text = _rendered(manifest, args, paths) or _default(tool, args, paths)
    return make_visible(text.translate(_BREAKS), limit=LIMIT)


def _rendered(manifest: Manifest | None, args: Mapping[str, Any], paths: tuple[Reference, ...]) -> str | None:
    if manifest is None or manifest.summary is None:
        return None
    template = parse_template(manifest.summary)
    shown = (REDACTED if isinstance(part, Reference) and is_redacted(part, paths) else part for part in template.parts)
    try:
        return render_template(Template(tuple(shown)), {Root.ARGS: args})
    except TemplateUnavailable:
        return None


def _default(tool: str, args: Mapping[str, Any], paths: tuple[Reference, ...]) -> str:
    return " ".join([tool, *(f"{name}={value}" for name, value in _shown(args, paths))])


def _shown(args: Mapping[str, Any], paths: tuple[Reference, ...]) -> Iterator[tuple[str, str]]:
    for name, value in args.items():
        place = Reference(Root.ARGS, (name,), is_optional=False, spelling=Spelling.FLAT)
        if isinstance(value, (dict, list)):
            continue
        hidden = is_credential(name) or is_redacted(place, paths)
        yield name, REDACTED if hidden else _scalar(value)


def _scalar(value: Any) -> str:
    if not isinstance(value, str):
        return scalar_text(value)
    if len(value) > LONGEST_TEXT:
        return f"({len(value)} characters)"
    return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
