"""The faults: each is one small edit that a hurried hand could make, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: `before` stands exactly once in `path` and becomes `after`; `tests` must fail then."""

    name: str
    path: str
    before: str
    after: str
    tests: Sequence[str]


JOURNAL = ("tests/ledger",)
DOORS = ("tests/gateway/mcp/test_server.py", "tests/gateway/mcp/test_own_tools.py")
HTTP_DOOR = ("tests/gateway/mcp/test_http.py",)
CALLS = ("tests/gateway", "tests/approvals")
UNDOING = ("tests/rollback",)
TREES = ("tests/system/test_tree_property.py",)
DRAFTS = ("tests/manifests_registry/core/test_drafting.py",)
SERVED = ("tests/connectors/test_serve.py",)
LOOKING = ("tests/approvals/core/test_before.py", "tests/rollback/core/test_read_back.py", "tests/reversi_sdk")
OTHERS_FILES = ("tests/connectors/fs/test_other_programs.py",)
FILE_EXAMPLE = ("tests/examples/test_filesystem.py",)
MEMORY_EXAMPLE = ("tests/examples/test_memory.py",)

STREAMS = ("tests/gateway/mcp/test_stdio_transport.py", "tests/gateway/mcp/test_hostile_upstreams.py")
SESSIONS = ("tests/gateway/mcp/test_session.py", "tests/gateway/mcp/test_upstream.py")
ROUTES = ("tests/gateway/mcp/test_upstreams.py",)
WIRING = ("tests/reversi_site/test_wiring.py",)

MUTANTS: Sequence[Mutant] = (
    Mutant(
        "the outcome is written before the call",
        "gateway/operations/conversation.py",
        "    answer = yield from attempts.made()\n",
        '    yield from _recorded(Complete(begun, StepState.FAILED, error="too early"))\n'
        "    answer = yield from attempts.made()\n",
        CALLS,
    ),
    Mutant(
        "whoever gives up a call takes its record along",
        "gateway/mcp/calls.py",
        "with anyio.CancelScope(shield=True):",
        "with anyio.CancelScope():",
        CALLS,
    ),
    Mutant(
        "a call that is given up after its announcement is sent all the same",
        "gateway/mcp/calls.py",
        "            await checkpoint_if_cancelled()\n        except",
        "            await anyio.lowlevel.cancel_shielded_checkpoint()\n        except",
        CALLS,
    ),
    Mutant(
        "two processes open a current run each",
        "gateway/operations/runs.py",
        "        # Another process may have opened it since we looked.\n"
        "        found = _continued(caller, fields, labels, active_after=now - limit, now=now)\n",
        "",
        CALLS,
    ),
    Mutant(
        "the undo is sent before `compensating` is committed",
        "rollback/operations/undoing.py",
        "        self._begin()\n"
        "        require_no_transaction()\n"
        "        answer = self._tools.executor.compensate(self._call())\n",
        "        answer = self._tools.executor.compensate(self._call())\n        self._begin()\n",
        UNDOING,
    ),
    Mutant(
        "a new key for every retry",
        "rollback/core/keys.py",
        "return known.get(pair, len(known))",
        "return len(attempts)",
        UNDOING,
    ),
    Mutant(
        "a lost answer of a call is taken for a failure",
        "reversi_sdk/lost_answers.py",
        "    return not TRANSPORT_ERRORS.isdisjoint(names)",
        "    return False",
        CALLS,
    ),
    Mutant(
        "an uncertain effect (a 5xx on a write) of an undo is taken for a failure",
        "rollback/executors/connector.py",
        "            return UndoUnknown(str(error) or type(error).__name__)",
        "            return UndoFailed(str(error) or type(error).__name__)",
        UNDOING,
    ),
    Mutant(
        "the fence is ignored",
        "ledger/operations/journal.py",
        "if fence is not None and row.fence != fence:",
        "if fence is not None and row.fence > fence + 1_000:",
        JOURNAL,
    ),
    Mutant(
        "oldest first",
        "rollback/core/plan.py",
        "    for step in reversed(steps):\n        found = assessed[step.number]\n        is_wanted",
        "    for step in steps:\n        found = assessed[step.number]\n        is_wanted",
        UNDOING,
    ),
    Mutant(
        "the read-back is skipped",
        "rollback/operations/undoing.py",
        "        verdict = self._read_back()\n"
        "        match verdict:\n"
        "            case Matched():\n"
        "                return self._complete(ReadBack.VERIFIED, verdict)\n"
        "            case Mismatched(tool=tool, mismatch=mismatch):\n"
        '                error = f"verification failed',
        '        verdict: Verdict = Matched("")\n'
        "        match verdict:\n"
        "            case Matched():\n"
        "                return self._complete(ReadBack.VERIFIED, verdict)\n"
        "            case Mismatched(tool=tool, mismatch=mismatch):\n"
        '                error = f"verification failed',
        UNDOING,
    ),
    Mutant(
        "a row is believed against its events",
        "rollback/core/assessment.py",
        "if step.contradiction is not None:",
        "if step.contradiction is not None and step.is_reading:",
        ("tests/rollback/operations/test_changed_rows.py",),
    ),
    Mutant(
        "a queued rollback lets calls through",
        "ledger/operations/runs.py",
        'run.row.is_rolling_back = True\n    append(run, [EventDraft("rollback_queued"',
        'append(run, [EventDraft("rollback_queued"',
        ("tests/rollback/operations/test_jobs.py",),
    ),
    Mutant(
        "unverified counts as complete",
        "rollback/core/report.py",
        "return is_answered and not self.unverified and not self.rowless",
        "return is_answered and not self.rowless",
        UNDOING,
    ),
    Mutant(
        "touches are ignored",
        "rollback/core/dependencies.py",
        "        if _restores(step):\n            found |=",
        "        if _restores(step) and step.number < 0:\n            found |=",
        UNDOING,
    ),
    Mutant(
        "null is handled as missing",
        "ledger/core/handles.py",
        "if reference.key in self.values:",
        "if self.values.get(reference.key) is not None:",
        JOURNAL,
    ),
    Mutant(
        "halts are remembered instead of read",
        "approvals/queries.py",
        "def list_halts(",
        "import functools\n\n\n@functools.lru_cache\ndef list_halts(",
        CALLS,
    ),
    Mutant(
        "a duplicate is looked for before the insert only",
        "ledger/migrations/0003_keys_and_events_of_a_step.py",
        'fields=("call_key",),\n                name="step_call_key_stands_once"',
        'fields=("call_key", "run", "number"),\n                name="step_call_key_stands_once"',
        ("tests/ledger/operations/test_steps.py", "tests/gateway/operations/test_races.py"),
    ),
    Mutant(
        "a handle is not bound to its step",
        "ledger/core/sealing.py",
        "return canonical_bytes([binding.run_id, binding.number, binding.manifest_checksum, key_id])",
        "return canonical_bytes([binding.run_id, binding.manifest_checksum, key_id])",
        JOURNAL,
    ),
    Mutant(
        "an older handle of the same step is believed",
        "ledger/core/sealing.py",
        "if digest is None or not hmac.compare_digest(self._digest(plain, sealed.key_id), digest):",
        "if digest is None:",
        JOURNAL,
    ),
    Mutant(
        "the sweep says failed",
        "ledger/operations/steps.py",
        'outcome = Outcome(StepState.UNCERTAIN, error="no outcome',
        'outcome = Outcome(StepState.FAILED, error="no outcome',
        JOURNAL,
    ),
    Mutant(
        "the chain does not cover the event before",
        "ledger/core/chain.py",
        'return hashlib.sha256(canonical_bytes({**fields, "prev": prev})).hexdigest()',
        "return hashlib.sha256(canonical_bytes(dict(fields))).hexdigest()",
        JOURNAL,
    ),
    Mutant(
        "a sent undo that was never answered is sent again",
        "rollback/core/doubt.py",
        "    if tail[-1].outcome is not AttemptOutcome.SUCCEEDED:\n        return Doubt.LOST",
        "    if tail[-1].outcome is not AttemptOutcome.SUCCEEDED:\n        return Doubt.NONE",
        UNDOING,
    ),
    Mutant(
        "a queued rollback gives way to one that is allowed less",
        "rollback/core/jobs.py",
        "all(has or not had for has, had in grants)",
        "any(has or not had for has, had in grants)",
        ("tests/rollback/operations/test_jobs.py",),
    ),
    Mutant(
        "a job that waits for a gateway gives way to a process that does not reach its session",
        "rollback/operations/execution.py",
        "reaches_all=waits_for is None",
        "reaches_all=True",
        ("tests/rollback/operations/test_waiting_jobs.py",),
    ),
    Mutant(
        "a repeat that reached nothing ends the doubt about the undo before it",
        "gateway/executors.py",
        "            return UndoNotRun(str(error))",
        "            return UndoFailed(str(error))",
        ("tests/gateway/test_executors.py",),
    ),
    Mutant(
        "a send that reached nothing counts as one that may have worked",
        "rollback/core/doubt.py",
        "if sent.outcome is not AttemptOutcome.NOT_RUN):",
        "if sent is not None):",
        UNDOING,
    ),
    Mutant(
        "a selection does not take along what must go first",
        "rollback/core/dependencies.py",
        "if is_built_on or number in included or sharing.find(touch_of(step)):",
        "if number in included:",
        UNDOING,
    ),
    Mutant(
        "a step that somebody settled meanwhile is undone all the same",
        "rollback/operations/undoing.py",
        "            raise _MovedError\n",
        "            return\n",
        UNDOING,
    ),
    Mutant(
        "a late read-back is judged by a state that was undone since",
        "rollback/operations/verification.py",
        "    if undone.have_overtaken(step):",
        "    if undone.have_overtaken(step) and step.number < 0:",
        UNDOING,
    ),
    Mutant(
        "an undo is sent over an earlier one's",
        "rollback/core/assessment.py",
        "undone.have_overtaken(step)\n",
        "undone.have_overtaken(step) and step.number < 0\n",
        UNDOING,
    ),
    Mutant(
        "a restored file gets another mode",
        "connectors/core/files/placing.py",
        "os.fchmod(descriptor, attributes.mode)",
        "os.fchmod(descriptor, attributes.mode | 0o111)",
        TREES,
    ),
    Mutant(
        "a declared read-back that nobody can run is passed over",
        "rollback/operations/undoing.py",
        "            return self._complete(ReadBack.UNVERIFIED, None)",
        "            return self._complete(ReadBack.NOT_DECLARED, None)",
        UNDOING,
    ),
    Mutant(
        "a hint that contradicts another is believed",
        "manifests_registry/core/drafting/effects.py",
        "case Hints(read_only=True, destructive=True):",
        "case Hints(read_only=True, destructive=True, idempotent=True):",
        DRAFTS,
    ),
    Mutant(
        "a tool without annotations is drafted by its name",
        "manifests_registry/core/drafting/effects.py",
        "        case Hints(read_only=True):\n",
        "        case Hints(read_only=hint) if hint or (hint is None and verb is None):\n",
        DRAFTS,
    ),
    Mutant(
        "a text of a server ends the line it stands on",
        "manifests_registry/core/drafting/writing.py",
        "c if c.isprintable() else",
        "c if ord(c) > 31 else",
        DRAFTS,
    ),
    Mutant(
        "a served connector tells a lost outcome as a failure",
        "connectors/serving.py",
        'return {**_failed(error), "_meta": {OUTCOME_META: "uncertain"}}',
        "return _failed(error)",
        SERVED,
    ),
    Mutant(
        "the end of the input cuts off what was asked",
        "connectors/wire.py",
        "            while self.waiting:\n",
        "            while self.waiting and self.is_peer_gone:\n",
        SERVED,
    ),
    Mutant(
        "where an item stands counts though order means nothing",
        "approvals/core/before.py",
        '"items": unordered([inner for head, inner in below.items() if isinstance(head, int)]),',
        '"items": [inner for head, inner in below.items() if isinstance(head, int)],',
        LOOKING,
    ),
    Mutant(
        "what cannot be restored from is restored from",
        "approvals/core/before.py",
        "else _unusable(before.unusable_when, state) or _gap(manifest, state)",
        "else _gap(manifest, state)",
        LOOKING,
    ),
    Mutant(
        "a member that the tool dropped hides the thing",
        "reversi_sdk/answers.py",
        "lenient_bytes({name: item[name] for name in names})",
        "lenient_bytes(item)",
        LOOKING,
    ),
    Mutant(
        "an emptied object stays in its list",
        "reversi_sdk/references.py",
        "    return MISSING if is_emptied else found\n",
        "    return found\n",
        LOOKING,
    ),
    Mutant(
        "a relative path is looked up below the root",
        "connectors/core/files/absolute_path.py",
        '    if not path.startswith("/"):',
        '    if path.startswith("~"):',
        OTHERS_FILES,
    ),
    Mutant(
        "every failed read is taken for absence",
        "examples/filesystem/manifests.yaml",
        'absent_when: {error: "ENOENT: no such file or directory, open *"}',
        'absent_when: {error: "*"}',
        FILE_EXAMPLE,
    ),
    Mutant(
        "a seventeenth entity is forgotten",
        "examples/memory/manifests.yaml",
        '        {at most 16 in one call: "$args.entities[16].name?"},\n',
        "",
        MEMORY_EXAMPLE,
    ),
    Mutant(
        "what the library leaves of a result wins over the result",
        "gateway/mcp/lossless.py",
        "merged = {**sieved, **authored}",
        "merged = {**authored, **sieved}",
        ("tests/gateway/mcp/test_lossless.py",),
    ),
    Mutant(
        "a call that was given up counts as not sent",
        "gateway/mcp/tool_calls.py",
        "            if self._is_unsent:\n",
        "            if not self._is_unsent:\n",
        DOORS,
    ),
    Mutant(
        "agents reach the tools that are only there for undos",
        "gateway/mcp/catalog.py",
        "if upstream not in self._upstreams.offered:",
        "if upstream not in self._upstreams.all:",
        DOORS,
    ),
    Mutant(
        "an agent plans the run of somebody else",
        "gateway/mcp/own_tools.py",
        "others, selection = Act.READ_ANY_RUN if visit.is_operator else None, _selection(arguments)",
        "others, selection = Act.READ_ANY_RUN, _selection(arguments)",
        DOORS,
    ),
    Mutant(
        "any key opens every door",
        "gateway/mcp/http.py",
        "if not may(caller, ENTERED_BY[self._door]):",
        "if not may(caller, Act.SIGN_IN):",
        HTTP_DOOR,
    ),
    Mutant(
        "a session serves whoever knows its number",
        "gateway/mcp/http.py",
        'client_id=caller.key_prefix or "", scopes=[], subject=caller.username',
        'client_id="", scopes=[], subject=""',
        HTTP_DOOR,
    ),
    Mutant(
        "a client that reads no more is served for ever",
        "gateway/mcp/stdio.py",
        '        logger.info("the client reads no more: %s", error)\n        reading.cancel()\n',
        '        logger.info("the client reads no more: %s", error)\n',
        ("tests/gateway/mcp/test_stdio.py",),
    ),
    Mutant(
        "a gateway that ends goes on with its rollbacks",
        "gateway/mcp/rollbacks.py",
        "        self._tell(rollback, Standing(progress.done, progress.total, last))\n        if self._is_ending:\n",
        "        self._tell(rollback, Standing(progress.done, progress.total, last))\n        if not self._loop:\n",
        DOORS,
    ),
    Mutant(
        "what somebody can still read counts as never arrived",
        "gateway/mcp/child_process.py",
        "if not any(events & select.POLLERR for _, events in poll.poll(0)):",
        "if False:",
        STREAMS,
    ),
    Mutant(
        "a request that was given up in the box is written all the same",
        "gateway/mcp/outbox.py",
        "        while rest and number in self._letters:\n",
        "        while rest:\n",
        STREAMS,
    ),
    Mutant(
        "what began to be read counts as never arrived",
        "gateway/mcp/outbox.py",
        "began >= self._read)",
        "began + 1 >= self._read)",
        STREAMS,
    ),
    Mutant(
        "a line without end is kept",
        "gateway/mcp/stdio_transport.py",
        "        if len(self._rest) > LINE_LIMIT:\n",
        "        if len(self._rest) > LINE_LIMIT * 1024:\n",
        ("tests/gateway/mcp/test_stdio_transport.py",),
    ),
    Mutant(
        "what the library cannot read over HTTP counts as refused",
        "gateway/mcp/http_transport.py",
        "return Trouble.ANSWER_INVALID if httpx2.codes.is_success(status) else Trouble.BROKE",
        "return Trouble.REFUSED",
        SESSIONS,
    ),
    Mutant(
        "an error of a server that uses our words passes for our own",
        "gateway/mcp/own_errors.py",
        'if not isinstance(data, dict) or data.get("mark") != _MARK:',
        'if not isinstance(data, dict) or "mark" not in data:',
        SESSIONS,
    ),
    Mutant(
        "a call that timed out upstream is sent again",
        "gateway/mcp/server_upstream.py",
        "            except UpstreamTimeout:\n                self._note_timeout()\n                raise\n",
        "            except UpstreamTimeout:\n                self._note_timeout()\n",
        SESSIONS,
    ),
    Mutant(
        "a call goes to whoever is up",
        "gateway/mcp/upstreams.py",
        "upstream.name != first, upstream.name != owner, upstream not in self.offered, not is_ready",
        "upstream.name != first, not is_ready, upstream not in self.offered, upstream.name != owner",
        ROUTES,
    ),
    Mutant(
        "a rollback without a run undoes one that is opened for it",
        "gateway/mcp/own_tools.py",
        "run_id = await self._runs.present(visit)",
        "run_id = (await self._runs.of(visit)).id",
        DOORS,
    ),
    Mutant(
        "the report of a rollback is told after the run went on",
        "gateway/mcp/rollbacks.py",
        "return job.report == report.to_json() and job.ended_at == get_run(report.run_id).active_at",
        "return job.report == report.to_json()",
        DOORS,
    ),
    Mutant(
        "a rollback joins one of other steps",
        "gateway/mcp/rollbacks.py",
        "if found is not None and found.options != options:",
        "if found is None and options is None:",
        DOORS,
    ),
    Mutant(
        "an agent closes the run of somebody else",
        "gateway/mcp/client_runs.py",
        "        if not visit.is_operator:\n",
        "        if visit.is_operator:\n",
        DOORS,
    ),
    Mutant(
        "a named run leads out of the gateway's scope",
        "gateway/operations/runs.py",
        "caller=_bounded(caller, terms),",
        "caller=caller,",
        CALLS,
    ),
    Mutant(
        "a run is idle while a call waits for people",
        "gateway/operations/runs.py",
        "return found or _awaited(caller, fields, labels, now)",
        "return found",
        CALLS,
    ),
    Mutant(
        "a session's name is enough to reach its handle",
        "gateway/mcp/http.py",
        "return (caller.username, caller.key_prefix, *place)",
        "return place",
        HTTP_DOOR,
    ),
    Mutant(
        "a name of another configuration is asked for undos",
        "reversi_site/wiring.py",
        "server = None if is_elsewhere else self.servers.get(name)",
        "server = self.servers.get(name)",
        WIRING,
    ),
    Mutant(
        "a connector of another root undoes",
        "reversi_site/gateway_cli/options.py",
        "own_name = derived_connector_name(name, root=folder, backup_dir=backups)",
        "own_name = derived_connector_name(name, root=None, backup_dir=None)",
        ("tests/reversi_site/test_gateway_cli.py",),
    ),
    Mutant(
        "a live session is undone in the next one",
        "gateway/mcp/server_upstream.py",
        "if self.is_live and session_id != self._session_id:",
        "if session_id is None:",
        ROUTES,
    ),
    Mutant(
        "a live session keeps its name when another begins",
        "gateway/mcp/server_upstream.py",
        "            self._session_id = _new_session_id()\n        self._session, self._timeouts = session, 0\n",
        "            pass\n        self._session, self._timeouts = session, 0\n",
        ROUTES,
    ),
    Mutant(
        "a session that an HTTP server forgot is used for ever",
        "gateway/mcp/http_transport.py",
        "if is_in_session and is_of_session and number not in NOT_OF_SESSION:",
        "if is_in_session and status == 0:",
        SESSIONS,
    ),
)
