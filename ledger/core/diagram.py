"""The diagram of a step's states, drawn from the transition table: it cannot show a move that is not there.

`python -m ledger.core.diagram` prints it; `python -m tests.golden` puts it into the documents.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from ledger.core.statuses import RULES, Move, Rule, StepState


def step_diagram(rules: Mapping[Move, Rule] = RULES) -> str:
    """Return the Mermaid state diagram of the moves, one arrow for each pair of states that any move connects."""
    lines = ["stateDiagram-v2", f"    [*] --> {StepState.INTENDED.value}: record intent", *_arrows(rules)]
    return "".join(f"{line}\n" for line in lines)


def _arrows(rules: Mapping[Move, Rule]) -> Iterator[str]:
    for source in StepState:
        for target in StepState:
            labels = [_label(move, rule, source) for move, rule in rules.items() if _leads(rule, source, target)]
            if labels:
                yield f"    {source.value} --> {target.value}: {', '.join(labels)}"


def _leads(rule: Rule, source: StepState, target: StepState) -> bool:
    return rule.target is target and source in rule.sources | rule.disputed


def _label(move: Move, rule: Rule, source: StepState) -> str:
    words = move.value.replace("_", " ")
    return words if source in rule.sources else f"{words} if disputed"


if __name__ == "__main__":
    sys.stdout.write(step_diagram())
