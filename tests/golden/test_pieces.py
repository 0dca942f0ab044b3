"""What is made from the code stands in the documents as the code makes it now."""

from __future__ import annotations

import pytest

from ledger.core.diagram import step_diagram
from ledger.core.statuses import RULES, Move, Rule, StepState
from tests.golden.pieces import PIECES, replaced, standing
from tests.postgres import REPOSITORY


@pytest.mark.parametrize("name", PIECES)
def test_piece_in_the_document_is_what_the_code_makes(name: str) -> None:
    text = (REPOSITORY / PIECES[name].document).read_text(encoding="utf-8")

    assert standing(text, name) == PIECES[name].make(), "run `python -m tests.golden`"


def test_diagram_draws_every_move_of_the_table_and_no_other() -> None:
    drawn = {
        (source, target, move)
        for source, _, arrow in (line.strip().partition(" --> ") for line in step_diagram().splitlines()[2:])
        for target, _, label in [arrow.partition(": ")]
        for move in label.split(", ")
    }

    assert drawn == {
        (source.value, rule.target.value, move.value.replace("_", " ") + condition)
        for move, rule in RULES.items()
        for sources, condition in ((rule.sources, ""), (rule.disputed, " if disputed"))
        for source in sources
    }


def test_diagram_joins_the_moves_between_two_states() -> None:
    rule = Rule(frozenset({StepState.INTENDED}), StepState.FAILED, "failed")

    assert step_diagram({Move.FAIL: rule, Move.RESOLVE_FAILED: rule}).splitlines()[2:] == [
        "    intended --> failed: fail, resolve failed"
    ]


def test_replaced_changes_only_what_stands_between_the_markers() -> None:
    text = "before\n<!-- generated: x -->\n\nold\n\n<!-- end -->\nafter\n"

    assert replaced(text, "x", "new\n") == text.replace("old", "new")
