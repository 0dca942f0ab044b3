"""Draft manifests from what an MCP server says about its tools.

A draft promises nothing: it has the status `draft`, and a comment stands beside everything that was guessed or that
only the server claims. A tool is drafted as reading only where the server's annotations say that it reads, and neither
its name nor another annotation says otherwise; every other tool is irreversible and always approved. No hint ever
makes an effect weaker, and an undo is only proposed, in comments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests_registry.core.drafting.effects import Judgement, judge
from manifests_registry.core.drafting.offers import LeftOut, OfferedTool, read_offers
from manifests_registry.core.drafting.undo_proposals import Proposal, Proposer
from manifests_registry.core.drafting.writing import write_documents, write_entry

__all__ = ["Draft", "Drafting", "Judgement", "LeftOut", "OfferedTool", "Proposal", "draft_manifests"]


@dataclass(frozen=True, slots=True)
class Draft:
    """One drafted manifest: what was judged and proposed, and its entry in YAML."""

    tool: str
    judgement: Judgement
    proposal: Proposal | None
    entry: str


@dataclass(frozen=True, slots=True)
class Drafting:
    """Every draft in the server's order, and the tools that got none."""

    upstream: str
    drafts: tuple[Draft, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def documents(self) -> tuple[str, ...]:
        """The drafts as YAML documents, more than one where one would be too long to be read back."""
        return write_documents(self.upstream, [draft.entry for draft in self.drafts], self.left_out)


def draft_manifests(offered: Sequence[Mapping[str, Any]], *, upstream: str, declared: Collection[str] = ()) -> Drafting:
    """Draft a manifest for each of the tools that `tools/list` offered.

    `upstream` is what the server is called in permissions; `declared` are the tools that have manifests already.
    """
    tools, left_out = read_offers(offered, declared=declared)
    judgements = {tool.name: judge(tool) for tool in tools}
    proposer = Proposer(tools, judgements)
    drafts = tuple(_draft(tool, judgements[tool.name], proposer.propose(tool), upstream) for tool in tools)
    return Drafting(upstream, drafts, left_out)


def _draft(tool: OfferedTool, judgement: Judgement, proposal: Proposal | None, upstream: str) -> Draft:
    return Draft(tool.name, judgement, proposal, write_entry(tool, judgement, proposal, upstream=upstream))
