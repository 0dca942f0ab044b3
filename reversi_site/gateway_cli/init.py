"""`reversi-gateway init`: set a gateway up for a server, with drafts of the manifests for its tools."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.core.upstream_specs import DIGITS, UpstreamSpec
from manifests_registry.core.drafting import Drafting, draft_manifests
from reversi_sdk.errors import InvalidInput
from reversi_site.cli.output import emit_json, emit_lines, note_lines
from reversi_site.cli.parameters import json_option
from reversi_site.gateway_cli.new_files import NewConnector, NewGateway, new_files, refuse_to_overwrite, write_files
from reversi_site.gateway_cli.next_steps import Outcome, outcome_document, outcome_lines
from reversi_site.gateway_cli.upstream_flags import spec_of, upstream_options

FOLDER = click.Path(path_type=Path, file_okay=False)


class NoTools(InvalidInput):
    """The server offers nothing that a manifest can be written for."""

    code = "no_tools"


@click.command(short_help="Set a gateway up for a server.")
@upstream_options
@click.option("--connector", metavar="NAME", help="A connector of ours beside it, for undos and reads: fs.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The connector's folder.")
@click.option("-o", "--output", "folder", type=FOLDER, default=Path(), help="Where to write; default here.")
@click.option("--force", "is_forced", is_flag=True, help="Overwrite files that stand there.")
@json_option
def init(
    *,
    upstream_cmd: str | None,
    upstream_args: tuple[str, ...],
    upstream_url: str | None,
    connector: str | None,
    root: Path | None,
    folder: Path,
    is_forced: bool,
    is_json: bool,
) -> int:
    """Start a server once, draft a manifest for each of its tools, and write what a gateway needs. Needs no store.

    Writes reversi.config.yaml and manifests/NAME.yaml. The drafts say beside each line what was guessed. A tool counts
    as irreversible unless the server says that it only reads; nothing is enforced before you review it.

    \b
    Examples:
      reversi-gateway init --upstream-cmd npx --upstream-arg -y --upstream-arg @modelcontextprotocol/server-memory
      reversi-gateway init --upstream-url https://mcp.example.com/mcp -o gateway
      reversi-gateway init --upstream-cmd node --upstream-arg server.js --connector fs --root ./work --force
    """
    spec = spec_of(upstream_cmd, upstream_args, upstream_url)
    if spec is None and connector is None:
        raise click.UsageError("give --upstream-cmd or --upstream-url, or a --connector")
    gateway = NewGateway(folder.absolute(), Path.cwd(), spec, _connector(connector, root))
    outcome = _set_up(gateway, is_forced=is_forced)
    if is_json:
        emit_json(outcome_document(outcome))
    else:
        emit_lines(outcome_lines(outcome))
    return _check(gateway)


def _connector(name: str | None, root: Path | None) -> NewConnector | None:
    if name is None:
        if root is not None:
            raise click.UsageError("--root belongs to --connector")
        return None
    if root is None:
        raise click.UsageError(f"--connector {name} needs --root, the one folder that it may touch")
    from connectors.catalog import connector_spec
    from connectors.core.manifests import manifests_yaml

    return NewConnector(name, root.absolute(), manifests_yaml(connector_spec(name).manifests()))


def _set_up(gateway: NewGateway, *, is_forced: bool) -> Outcome:
    if not is_forced:
        # Before the server is started: asking it and then refusing would be a waste.
        refuse_to_overwrite([gateway.configuration])
    drafting = None if gateway.spec is None else _drafted(gateway.spec, gateway.connector)
    files = new_files(gateway, drafting)
    if not is_forced:
        refuse_to_overwrite(list(files))
    write_files(files)
    return Outcome(gateway, files, drafting)


def _drafted(spec: UpstreamSpec, connector: NewConnector | None) -> Drafting:
    from connectors.catalog import connector_spec
    from reversi_site.gateway_cli.listing import list_tools

    tools = list_tools(spec)
    declared = connector_spec(connector.name).tools if connector else ()
    drafting = draft_manifests(tools, upstream=_stem(spec), declared=declared)
    if not drafting.drafts:
        reasons = "; ".join(f"{left.name!a} {left.reason}" for left in drafting.left_out[:3])
        raise NoTools(f"{spec.place} offers no tool that a manifest can be written for" + (reasons and f": {reasons}"))
    return drafting


def _stem(spec: UpstreamSpec) -> str:
    """Return the readable part of a derived name."""
    return spec.name[: -DIGITS - 1]


def _check(gateway: NewGateway) -> int:
    """Say what is wrong with the manifests as they now stand, which is so only when others stood there before."""
    from manifests_registry.core.validation import problem_line, validate_path

    problems = validate_path(gateway.manifests).problems
    note_lines(problem_line(problem) for problem in problems)
    return 1 if problems else 0
