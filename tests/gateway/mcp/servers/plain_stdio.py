"""The plain server over standard input and output."""

import argparse
import json
import sys
import threading

from tests.gateway.mcp.servers.pids import note_pid
from tests.gateway.mcp.servers.plain_server import Message, PlainServer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--revision", default="2025-06-18")
    parser.add_argument("--tool", action="append", default=[])
    parser.add_argument("--page", type=int, default=0)
    parser.add_argument("--oddity", default="", choices=("twice", "marked", "endless"))
    parser.add_argument("--pid-file")
    options = parser.parse_args()
    note_pid(options.pid_file)
    speaking = threading.Lock()

    def say(message: Message) -> None:
        with speaking:
            sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
            sys.stdout.flush()

    server = PlainServer(
        revision=options.revision, say=say, tools=options.tool, page=options.page, oddity=options.oddity
    )
    for line in sys.stdin:
        server.take(json.loads(line))


main()
