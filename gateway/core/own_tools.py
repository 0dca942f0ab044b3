"""The tools that the gateway offers besides its upstreams': what agents and operators are told of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PREFIX = "reversi."
RUN = "reversi.run"
PLAN = "reversi.plan_rollback"
EXECUTE = "reversi.execute_rollback"
HALT = "reversi.halt"
RESUME = "reversi.resume"

Tool = Mapping[str, Any]

_RUN_ID = {"type": "string", "minLength": 1, "maxLength": 128, "description": "The id of a run."}
_WHICH_RUN = {**_RUN_ID, "description": "The run; without it, the one that calls of this connection belong to."}
_SELECTION = {
    "steps": {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        "minItems": 1,
        "maxItems": 1000,
        "description": "Only these steps, and what must be undone with them.",
    },
    "to_step": {
        "type": "integer",
        "minimum": 0,
        "maximum": 999_999_999,
        "description": "Only what came after this step, which itself stays. Not together with steps.",
    },
}
_GLOB = {"type": "string", "minLength": 1, "maxLength": 200}


def _input(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


AGENT_TOOLS: tuple[Tool, ...] = (
    {
        "name": RUN,
        "title": "The run that calls are journaled in",
        "description": (
            "Say in which run the calls of this connection are journaled; a run is what is undone together. Without "
            "arguments it answers the present one. Open a fresh one for a task of its own with new: true, go on with a "
            "known one by its id, and end one with close: true; a closed run takes no calls and can still be undone."
        ),
        "inputSchema": _input(
            {
                "id": {**_RUN_ID, "description": "Continue the run of this id, or open it."},
                "new": {"type": "boolean", "description": "Open a fresh run."},
                "close": {"type": "boolean", "description": "Close the run, this connection's own without an id."},
                "reason": {"type": "string", "maxLength": 2000, "description": "What the run is for."},
            }
        ),
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
    {
        "name": PLAN,
        "title": "What a rollback would do",
        "description": (
            "Show what undoing a run would do, newest step first, and what could not be undone. It changes nothing. "
            "An operator executes it."
        ),
        "inputSchema": _input({"run": _WHICH_RUN, **_SELECTION}),
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
)

OPERATOR_TOOLS: tuple[Tool, ...] = (
    {
        "name": EXECUTE,
        "title": "Undo a run",
        "description": (
            "Undo a run, newest step first. Without confirm: true it only shows the plan. It answers with the report, "
            "or after 40 seconds with how far it is; a repeat then waits on, and answers the report."
        ),
        "inputSchema": _input(
            {
                "run": _WHICH_RUN,
                "confirm": {"type": "boolean", "description": "Do it; anything else shows the plan."},
                "digest": {
                    "type": "string",
                    "pattern": "^[0-9a-f]{64}$",
                    "description": "Execute the plan of this digest, or nothing.",
                },
                "approve_compensations": {"type": "boolean", "description": "Approve the undos that need it."},
                **_SELECTION,
                "overwrite": {"type": "boolean", "description": "Undo also where newer work would be lost."},
                "retries": {"type": "integer", "minimum": 1, "maximum": 10, "description": "Attempts per undo; 3."},
                "close": {"type": "boolean", "description": "Close the run afterwards."},
            }
        ),
        "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
    },
    {
        "name": HALT,
        "title": "Stop new calls",
        "description": (
            "Stop new calls from now on, in every process; rollbacks go on. Without a scope it stops all of them. It "
            "answers the halt, and how many matching calls are in flight."
        ),
        "inputSchema": _input(
            {
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 500,
                    "description": "Told to who is stopped.",
                },
                "tool": {**_GLOB, "description": "Only calls of tools that match this glob."},
                "actor": {**_GLOB, "description": "Only calls of actors that match this glob."},
                "tenant": {**_GLOB, "description": "Only calls for tenants that match this glob."},
                "environment": {**_GLOB, "description": "Only calls in environments that match this glob."},
                "run": {**_GLOB, "description": "Only calls in runs whose id matches this glob."},
            },
            "reason",
        ),
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
    {
        "name": RESUME,
        "title": "Let calls pass again",
        "description": "Lift one halt by its id, or all that stand.",
        "inputSchema": _input({"id": {"type": "string", "minLength": 1, "maxLength": 64}}),
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
)

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    tool["name"]: tool["inputSchema"] for tool in (*AGENT_TOOLS, *OPERATOR_TOOLS)
}
