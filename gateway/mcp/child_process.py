"""The process of an upstream: a group of its own, our ends of its pipes, its last words, and its end.

It is started and ended under a shield, so that no cancellation leaves it, or a child of it, behind.
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import signal
import sys
import termios
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import Process

from gateway.core.upstream_specs import UpstreamSpec

CHUNK = 64 * 1024
LAST_WORDS = 4096
GRACE_S = 2.0
OUR_SECRETS = ("REVERSI_", "DATABASE_URL")

logger = logging.getLogger(__name__)


class Pipe:
    """Our end of a pipe; reading and writing wait for the loop, never for the process."""

    def __init__(self, number: int) -> None:
        os.set_blocking(number, False)
        self._number: int | None = number

    async def read(self) -> bytes:
        """Return what is there, nothing at the end."""
        while True:
            await anyio.wait_readable(self._open())
            with suppress(BlockingIOError):
                return os.read(self._open(), CHUNK)

    def write(self, data: memoryview) -> int:
        """Write as much as goes at once, and return how much; raises OSError when nobody reads any more."""
        try:
            return os.write(self._open(), data)
        except BlockingIOError:
            return 0

    async def has_room(self) -> None:
        """Wait until something can be written, or nobody reads any more."""
        await anyio.wait_writable(self._open())

    def never_read(self) -> int:
        """Return how much of what was written nobody has read, and nobody can any more."""
        if self._number is None:
            return 0
        poll = select.poll()
        poll.register(self._number, 0)
        if not any(events & select.POLLERR for _, events in poll.poll(0)):
            # Somebody has the other end: what is in the pipe may still be read.
            return 0
        held = bytearray(4)
        with suppress(OSError):
            fcntl.ioctl(self._number, termios.FIONREAD, held)
        return int.from_bytes(held, sys.byteorder)

    def close(self) -> None:
        """Close it, also under somebody who waits."""
        number, self._number = self._number, None
        if number is not None:
            anyio.notify_closing(number)
            os.close(number)

    def _open(self) -> int:
        if self._number is None:
            raise anyio.ClosedResourceError
        return self._number


@dataclass(slots=True)
class Child:
    """A started process."""

    process: Process
    input: Pipe
    output: Pipe
    errors: Pipe
    _said: bytearray = field(default_factory=bytearray)
    _is_ended: bool = False

    @property
    def last_line(self) -> str:
        """The last line that the process said on standard error."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    @property
    def death(self) -> str | None:
        """How it died, if it did."""
        code = self.process.returncode
        if code is None:
            return None
        return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"

    async def hear(self, name: str) -> None:
        """Read away what it says on standard error, and keep the end of it."""
        with suppress(anyio.ClosedResourceError, OSError):
            while chunk := await self.errors.read():
                self._said += chunk
                del self._said[:-LAST_WORDS]
                logger.debug("upstream %s: %s", name, chunk[:LAST_WORDS].decode(errors="replace").rstrip())

    async def has_exited(self, *, within_s: float) -> bool:
        """Wait a while for its exit."""
        with anyio.move_on_after(within_s):
            await self.process.wait()
        return self.process.returncode is not None

    async def end(self, *, is_hopeless: bool = False) -> None:
        """Close its input, and make it and its children end; its output must be read away meanwhile.

        One that is hopeless gets no time to end by itself.
        """
        if self._is_ended:
            return
        with anyio.CancelScope(shield=True):
            self.input.close()
            for number in (signal.SIGTERM, signal.SIGKILL):
                if await self.has_exited(within_s=0.0 if is_hopeless else GRACE_S):
                    break
                self._signal(number)
                is_hopeless = False
            else:
                await self.has_exited(within_s=GRACE_S)
            # What the process left behind in its group ends too.
            self._signal(signal.SIGKILL)
            self.output.close()
            self.errors.close()
        self._is_ended = True

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


async def start_child(spec: UpstreamSpec) -> Child:
    """Start the process of an upstream; raises OSError when that cannot be done. Whoever gets it ends it."""
    pipes = [os.pipe() for _ in range(3)]
    (their_input, our_input), (our_output, their_output), (our_errors, their_errors) = pipes
    ours = Pipe(our_input), Pipe(our_output), Pipe(our_errors)
    try:
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(spec.command or ()),
                stdin=their_input,
                stdout=their_output,
                stderr=their_errors,
                env=child_environment(os.environ, dict(spec.env)),
                cwd=spec.cwd or Path.cwd(),
                start_new_session=True,
            )
    except BaseException:
        for pipe in ours:
            pipe.close()
        raise
    finally:
        for number in (their_input, their_output, their_errors):
            os.close(number)
    return Child(process, *ours)


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return what an upstream's process gets: everything but our own settings and secrets, and what its entry adds."""
    kept = {name: value for name, value in environ.items() if not name.startswith(OUR_SECRETS)}
    return {**kept, **extra}
