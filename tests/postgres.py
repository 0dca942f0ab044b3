"""One private PostgreSQL server for a test session, gone when the session is.

`python -m tests.postgres FOLDER` is the guard: it makes a server under the session's folder, prints one JSON line
(`{"url": …}` or `{"error": …}`), waits until the session's lock is free, which the kernel sees to even when the test
run is killed, and then stops the server and removes the folder. The server listens on the loopback address only and
trades durability for speed: nothing in it outlives the session.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.session import SERVER_LOCK, SESSION_LOCK, only_one, wait_until_free

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAMS = ("initdb", "pg_ctl", "postgres")
SUPERUSER = "reversi"
START_ATTEMPTS = 3

# PostgreSQL refuses to run as root, so root lends it one of these accounts.
ACCOUNTS = ("postgres", "nobody")

# Autovacuum is off because its workers connect to the template, which then cannot be copied.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "1d",
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",
    "jit": "off",
    # Small on purpose: each copy and each drop of a database walks all of it.
    "shared_buffers": "16MB",
}


# Guards outlive the process that started them; a reference keeps subprocess from complaining about that.
_guards: list[subprocess.Popen[str]] = []


class PostgresUnavailable(Exception):
    """No server can be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server and how to stop it."""

    binaries: Path
    data: Path
    port: int

    @property
    def url(self) -> str:
        """Return the server's address, without a database name."""
        return f"postgres://{SUPERUSER}@127.0.0.1:{self.port}"

    def stop(self) -> None:
        """End the server at once; its data is thrown away."""
        _run(self.binaries / "pg_ctl", "stop", "-D", self.data, "-m", "immediate", "-w", "-t", "20", folder=self.data)


def find_binaries() -> Path | None:
    """Return the folder that holds the server's programs, the newest version first, or None."""
    for folder in _candidates():
        if all((folder / program).exists() for program in PROGRAMS):
            return folder
    return None


def _candidates() -> Sequence[Path]:
    on_path = shutil.which("postgres")
    named = shutil.which("pg_config")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    folders = [Path(on_path).resolve().parent] if on_path else []
    if named:
        answer = subprocess.run([named, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(answer.stdout.strip() or "/nonexistent"))
    return [*folders, *installed]


def _version(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


def start_server(parent: Path) -> Server:
    """Make and start a server whose data stands under `parent`; raises PostgresUnavailable."""
    binaries = find_binaries()
    if binaries is None:
        raise PostgresUnavailable("no PostgreSQL server programs found: install the package postgresql")
    data = _make_data_folder(parent)
    _run(
        *(binaries / "initdb", "-D", data, "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--locale=C"),
        *("--no-sync", "--no-instructions"),
        folder=data,
    )
    for attempt in range(1, START_ATTEMPTS + 1):
        try:
            return _start(binaries, data, _free_port())
        except PostgresUnavailable:
            # Somebody else may have taken the port since it was found free.
            if attempt == START_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def _start(binaries: Path, data: Path, port: int) -> Server:
    settings = {**SETTINGS, "port": str(port)}
    lines = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
    (data / "postgresql.auto.conf").write_text(lines, encoding="ascii")
    _run(binaries / "pg_ctl", "start", "-D", data, "-l", data / "server.log", "-w", "-t", "60", folder=data)
    return Server(binaries, data, port)


def _make_data_folder(parent: Path) -> Path:
    data = parent / "postgres"
    data.mkdir(mode=0o700)
    if account := _account():
        os.chown(data, account["user"], account["group"])
    return data


def _account() -> Mapping[str, Any]:
    """Return who to run as, as arguments for subprocess; nothing when we are not root."""
    if os.geteuid() != 0:
        return {}
    for name in ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise PostgresUnavailable(f"PostgreSQL does not run as root, and there is no account {' or '.join(ACCOUNTS)}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _run(*command: str | Path, folder: Path) -> None:
    """Run one of the server's programs as its account, with nothing of our environment but the path."""
    output = folder.parent / "postgres-programs.log"
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C"}
    # A file, not a pipe: the server inherits the handle, and a pipe would never be read to its end.
    with output.open("w+", encoding="utf-8") as log:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            **_account(),
        )
        log.seek(0)
        said = log.read().strip()
    if done.returncode != 0:
        raise PostgresUnavailable(f"{Path(command[0]).name} failed: {said[-500:]}")


def session_server(folder: Path) -> str:
    """Return the address of the session's server; the first process that asks starts it. Raises PostgresUnavailable."""
    answer = folder / "postgres-answer.json"
    with only_one(folder / "postgres-answer.lock"):
        if not answer.exists():
            answer.write_text(_spawn_guard(folder), encoding="utf-8")
        said: Mapping[str, str] = json.loads(answer.read_text(encoding="utf-8"))
    if "url" not in said:
        raise PostgresUnavailable(said["error"])
    return said["url"]


def _spawn_guard(folder: Path) -> str:
    """Start the guard for this session and return the line it says."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", str(folder)],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt from the terminal must not kill the one who cleans up
    )
    _guards.append(guard)
    assert guard.stdout is not None
    with guard.stdout as stdout:
        line = stdout.readline()
    return line or json.dumps({"error": "the guard of the server died before it had one"})


def guard_server(folder: Path) -> None:
    """Run a server for as long as the session lives, then remove the session's folder."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with only_one(folder / SERVER_LOCK):
        try:
            server = start_server(folder)
        except PostgresUnavailable as error:
            _say({"error": str(error)})
            return
        try:
            _say({"url": server.url})
            wait_until_free(folder / SESSION_LOCK)
        finally:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _say(answer: Mapping[str, str]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    guard_server(Path(sys.argv[1]))
