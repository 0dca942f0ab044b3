"""Whatever an agent does to a tree, undoing each step, newest first, twice each, brings the same tree back."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from connectors.catalog import fs
from connectors.core.outcomes import ToolError
from tests.connectors.trees import reads_back, tree_of, undo_arguments

# Mostly what stands there at first, or has a directory to stand in, so that most steps succeed.
LIKELY = ("a", "d/a", "d/b", "d/d/a", "link/a", "d", "d/d", "b", "d/link", "d/d/b", "e", "e/a", "e/f", "d/e/f")
paths = st.sampled_from(LIKELY) | st.lists(st.sampled_from(("a", "b", "d", "link")), min_size=1, max_size=3).map(
    "/".join
)
spelled = st.builds(lambda dot, path: dot + path, st.sampled_from(("", "./", ".//./")), paths)
contents = st.sampled_from(("", "x", "y" * 300))

writes = st.builds(lambda path, content: ("fs.write_file", {"path": path, "content": content}), spelled, contents)
deletes = st.builds(lambda path: ("fs.delete_file", {"path": path}), spelled)
makes = st.builds(lambda path: ("fs.make_dir", {"path": path}), spelled)
moves = st.builds(lambda old, new: ("fs.move_file", {"source": old, "destination": new}), spelled, spelled)
calls = st.lists(st.one_of(writes, writes, deletes, makes, moves), min_size=4, max_size=16)


def plant(root: Path) -> None:
    """Start from a tree with content, modes, an empty directory, and links inside and out."""
    (root / "d/d").mkdir(parents=True, mode=0o750)
    (root / "d/a").write_text("deep")
    (root / "a").write_text("top")
    (root / "a").chmod(0o600)
    (root / "d/b").write_bytes(b"\xff\x00")
    (root / "d/b").chmod(0o755)
    (root / "link").symlink_to("d")
    (root / "d/link").symlink_to("../..")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls)
def test_undoing_newest_first_restores_the_tree(steps: list[tuple[str, dict[str, Any]]]) -> None:
    root = Path(tempfile.mkdtemp(prefix="reversi-test-"))
    try:
        plant(root)
        connector = fs.build(root)
        before = tree_of(root)
        done = []
        for tool, arguments in steps:
            was = tree_of(root)
            try:
                done.append((tool, connector.call(tool, arguments)))
            except ToolError:
                assert tree_of(root) == was, "a definite failure changed something"
        event(f"{min(len(done), 8)} steps succeeded")

        for tool, result in reversed(done):
            undo = undo_arguments(connector, tool, result)
            connector.call(*undo)
            assert reads_back(connector, tool, result)
            once = tree_of(root)
            connector.call(*undo)
            assert tree_of(root) == once, "a second undo changed something"

        assert tree_of(root) == before
    finally:
        shutil.rmtree(root)
