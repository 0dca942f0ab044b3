"""A report as a page shows it: what is left to do first, and the words for how each step stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.core.statuses import ReadBack
from reversi_site.console.words import BUCKET_WORDS, READ_BACK_WORDS, TONES, residue_of, step_numbers
from rollback.core.report import SETTLED_DURING, Bucket, Entry, Report

STILL_STANDING = "still standing"
_ORDER = (
    Bucket.FAILED,
    Bucket.UNRESOLVED,
    Bucket.UNRECOVERABLE,
    Bucket.UNMANIFESTED,
    Bucket.DEFERRED,
    Bucket.AWAITING_APPROVAL,
    Bucket.COMPENSATED,
    Bucket.SKIPPED,
)
_FOR_PEOPLE = frozenset({Bucket.FAILED, Bucket.UNRESOLVED, Bucket.UNRECOVERABLE, Bucket.UNMANIFESTED})


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A step in a report with its words; `is_for_people` tells that a person may be needed to settle it."""

    entry: Entry
    words: str
    tone: str
    how: str
    is_for_people: bool


@dataclass(frozen=True, slots=True)
class ShownReport:
    """A report, sorted so that what is left to do stands first."""

    report: Report
    lines: Sequence[ReportLine]
    counts: Sequence[tuple[str, str, int]]
    residue: Sequence[tuple[str, Sequence[int]]]
    failed: str
    is_verifiable: bool


def show_report(report: Report, *, is_of_a_job: bool) -> ShownReport:
    """Put a report into words: of a job as it ended, or of how the steps stand whatever was done to them."""
    entries = [entry for bucket in _ORDER for entry in reversed(report.among(bucket))]
    lines = [_line(entry, is_of_a_job=is_of_a_job) for entry in entries]
    counted = Counter((line.words, line.tone) for line in lines)
    return ShownReport(
        report=report,
        lines=lines,
        counts=[(*found, count) for found, count in counted.items()],
        residue=residue_of((entry.step, entry.residue) for entry in report.among(Bucket.COMPENSATED)),
        failed=",".join(str(entry.step) for entry in report.among(Bucket.FAILED)),
        is_verifiable=bool(report.unverified),
    )


def _line(entry: Entry, *, is_of_a_job: bool) -> ReportLine:
    bucket = entry.bucket
    # Where no rollback has just ended, a step that waits to be undone is not one that escaped it.
    if entry.reason == SETTLED_DURING and not is_of_a_job:
        return ReportLine(entry, STILL_STANDING, "plain", "it can be undone", is_for_people=False)
    return ReportLine(entry, BUCKET_WORDS[bucket], TONES[bucket], _how(entry), is_for_people=bucket in _FOR_PEOPLE)


def _how(entry: Entry) -> str:
    match entry.bucket:
        case Bucket.COMPENSATED:
            by = "by hand, " if entry.is_by_hand else "by its fallback, " if entry.is_fallback else ""
            return f"{by}{READ_BACK_WORDS[entry.read_back or ReadBack.NOT_DECLARED]}"
        case Bucket.DEFERRED:
            return f"later steps stand on it: {step_numbers(entry.blocked_by)}"
        case _:
            return entry.reason or ""
