"""Plain manifest files: every problem at once, and never an old version after a change."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from manifests_registry.core.errors import InvalidManifests
from manifests_registry.core.validation import validate_path
from manifests_registry.queries import current_snapshot
from manifests_registry.sources import AGED_NS, SnapshotCache, look_at

LONG_AGO = 1_700_000_000


def write(path: Path, *manifests: dict[str, Any]) -> Path:
    path.write_text(json.dumps([{"effect": "read_only", "permission": "shop:read", **each} for each in manifests]))
    return path


def test_current_snapshot_reads_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    (folder / "deep").mkdir(parents=True)
    one = write(tmp_path / "one.json", {"tool": "shop.get"})
    write(folder / "deep" / "two.json", {"tool": "shop.list"})
    write(folder / "notes.txt", {"tool": "shop.other"})

    snapshot = current_snapshot([one, folder])

    assert sorted(snapshot.entries) == ["shop.get", "shop.list"]


def test_current_snapshot_without_paths_is_empty() -> None:
    assert current_snapshot([]).entries == {}


def test_current_snapshot_is_the_same_while_nothing_changes(tmp_path: Path) -> None:
    file = write(tmp_path / "one.json", {"tool": "shop.get"})

    assert current_snapshot([file]) is current_snapshot([file])


def test_current_snapshot_sees_a_change_that_looks_like_none(tmp_path: Path) -> None:
    file = write(tmp_path / "one.json", {"tool": "shop.get"})
    status = file.stat()
    assert current_snapshot([file]).get("shop.get") is not None

    write(file, {"tool": "shop.put"})
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert current_snapshot([file]).get("shop.put") is not None


def test_current_snapshot_sees_new_and_removed_files(tmp_path: Path) -> None:
    one = write(tmp_path / "one.json", {"tool": "shop.get"})
    assert sorted(current_snapshot([tmp_path]).entries) == ["shop.get"]

    write(tmp_path / "two.json", {"tool": "shop.put"})
    assert sorted(current_snapshot([tmp_path]).entries) == ["shop.get", "shop.put"]
    one.unlink()

    assert sorted(current_snapshot([tmp_path]).entries) == ["shop.put"]


def test_current_snapshot_keeps_serving_after_a_touch(tmp_path: Path) -> None:
    file = write(tmp_path / "one.json", {"tool": "shop.get"})
    cache = SnapshotCache()
    first = cache.get((file,))

    os.utime(file, (LONG_AGO, LONG_AGO))

    assert cache.get((file,)) is first


def test_current_snapshot_does_not_read_again_what_has_aged(tmp_path: Path) -> None:
    file = write(tmp_path / "one.json", {"tool": "shop.get"})
    much_later = file.stat().st_ctime_ns + 10 * AGED_NS
    cache = SnapshotCache(now_ns=lambda: much_later)
    first = cache.get((file,))

    assert cache.get((file,)) is first
    write(file, {"tool": "shop.other"})
    assert cache.get((file,)).get("shop.other") is not None


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "a\0b.json"])
def test_current_snapshot_refuses_a_path_that_cannot_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidManifests):
        current_snapshot([tmp_path / name])


def test_current_snapshot_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    with pytest.raises(InvalidManifests):
        current_snapshot([tmp_path])


def test_current_snapshot_lists_every_problem(tmp_path: Path) -> None:
    write(tmp_path / "a.json", {"tool": "shop.get", "colour": "red"}, {"tool": "shop.put", "requires": ["shop.gone"]})
    write(tmp_path / "b.json", {"tool": "shop.put"})

    with pytest.raises(InvalidManifests) as caught:
        current_snapshot([tmp_path])

    problems = "\n".join(caught.value.problems)
    assert "colour" in problems
    assert "no manifest for required tool shop.gone" in problems
    assert "duplicate tool name" in problems


def test_current_snapshot_refuses_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(InvalidManifests, match="no such file"):
        current_snapshot([tmp_path / "gone.yaml"])


def test_look_at_ends_where_a_link_leads_back_up(tmp_path: Path) -> None:
    file = write(tmp_path / "one.json", {"tool": "shop.get"})
    (tmp_path / "loop").symlink_to(tmp_path)

    assert [place for place, *_ in look_at([tmp_path])] == [str(file)]


THREE = """
- tool: stripe.get_charge
  effect: read_only
  permission: payments:read
- tool: stripe.create_charge
  effect: compensable
  permission: payments:write
  compensation:
    tool: stripe.refund
    argument_map: { charge_id: $result.id }
    verification: { tool: stripe.get_charge, arguments: { charge_id: $result.id }, expect: { refunded: true } }
- { tool: stripe.refund, effect: idempotent, permission: payments:write }
"""


def test_validate_path_counts_valid_manifests(tmp_path: Path) -> None:
    (tmp_path / "payments.yaml").write_text(THREE)

    validation = validate_path(tmp_path)

    assert (validation.count, validation.problems) == (3, ())


def test_validate_path_names_the_place(tmp_path: Path) -> None:
    file = tmp_path / "payments.yaml"
    file.write_text(THREE.replace("verification: { tool: stripe.get_charge", "verification: { tool: stripe.refund"))

    problem = validate_path(file).problems[0]

    assert (problem.line, problem.tool, problem.path) == (
        5,
        "stripe.create_charge",
        "compensation.verification.tool",
    )
    assert problem.message == "a verification tool must be read_only, and stripe.refund is not"


def test_validate_path_tells_a_missing_tool_once(tmp_path: Path) -> None:
    (tmp_path / "payments.yaml").write_text(
        THREE.replace("{ tool: stripe.refund, effect", "{ tool: stripe.refund, efect")
    )

    problems = validate_path(tmp_path).problems

    assert {problem.tool for problem in problems} == {"stripe.refund"}
