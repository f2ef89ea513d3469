"""The dialogue with one process of Claude Code, as a pure state machine."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send, StartFailed, TurnDone, Unreadable
from ostler.agents.claude_code import asks, frames, remarks
from ostler.agents.claude_code.talk import Talk
from ostler.agents.claude_code.usage import Meter
from ostler.wire.agents import Model
from ostler.wire.events import ErrorData, SessionInfoData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt

ERROR_CODES = {
    "authentication_failed": "auth",
    "oauth_org_not_allowed": "auth",
    "cloud_credential_error": "auth",
    "billing_error": "billing",
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "invalid_request": "invalid_request",
    "model_not_found": "model_not_found",
    "max_output_tokens": "max_output_tokens",
}
"""Claude Code's words for errors -> ours; all others are the provider's fault."""
IGNORED = {
    "keep_alive": "a sign of life",
    "tool_progress": "only says that a tool still runs",
    "tool_use_summary": "for collapsed views",
    "prompt_suggestion": "nobody asked",
    "auth_status": "a login in a terminal",
    "conversation_reset": "the next init has the new session id",
    "control_request_progress": "we wait for the response",
    "transcript_mirror": "our log is the transcript",
    "system/api_error": "the turn's result tells it",
    "system/api_metrics": "timings",
    "system/background_tasks_changed": "the items of the tasks tell it",
    "system/commands_changed": "those of the beginning are shown",
    "system/control_request_progress": "we wait for the response",
    "system/elicitation_complete": "we decline elicitations",
    "system/file_snapshot": "for its own rewind",
    "system/files_persisted": "of its cloud",
    "system/hook_progress": "hooks are the workspace's own",
    "system/hook_response": "hooks are the workspace's own",
    "system/hook_started": "hooks are the workspace's own",
    "system/instruction_size_warning": "for the author of CLAUDE.md",
    "system/memory_recall": "its own memory",
    "system/memory_saved": "its own memory",
    "system/notification": "hints for a terminal",
    "system/per_turn_effort_changed": "a detail of the model call",
    "system/permission_denied": "the tool's result says it",
    "system/plugin_install": "of its own plugins",
    "system/post_turn_summary": "the turn's events say it",
    "system/session_metadata": "for its own list of sessions",
    "system/session_state_changed": "the turn's events say it",
    "system/stop_hook_summary": "hooks are the workspace's own",
    "system/task_notification": "the result of the task's call tells it",
    "system/task_progress": "the items of the task tell it",
    "system/task_started": "the task's call tells it",
    "system/task_summary": "the result of the task's call tells it",
    "system/task_updated": "the result of the task's call tells it",
    "system/thinking_tokens": "the thoughts themselves come",
    "system/turn_duration": "the log has times",
    "system/vcs_state_changed": "the workspace is ours to watch",
}
"""Frames that we know and leave out of the log, each with the reason."""


class ClaudeCodeTranslator:
    """One process; feeding it the same frames again gives the same outputs."""

    def __init__(self, spec: AgentSpec, ready: Ready) -> None:
        self._spec = spec
        self._ready = ready
        self._talk = Talk(spec.start)
        self._meter = Meter()
        self._asks: dict[str, asks.Ask] = {}
        self._requests: dict[str, str] = {}
        self._error: ErrorData | None = None
        self._limit: frames.RateLimitInfo | None = None
        """The limit of the account that is reached."""
        self._sent = 0
        self._waiting: set[str] = set()
        self._steered: dict[str, str] = {}
        """Name -> text of what was steered and not taken in yet."""
        self._withdrawn: dict[str, str] = {}
        """Request that takes something steered back -> its name."""
        self._tells_lifecycle = False
        self._interrupting = False
        self._planning = False

    # What we say

    def open(self) -> Sequence[Output]:
        """The handshake; Ready comes with its response."""
        return (self._request("initialize", {"hooks": None}),)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        self._interrupting = False
        self._steered.clear()
        self._error = None
        self._talk.last_words = ""
        self._meter.begin_turn()
        return (self._say(prompt, self._name()),)

    def steer(self, prompt: Prompt) -> Sequence[Output]:
        """Add to the running turn: it is taken in at the next model call, or runs right after."""
        name = self._name()
        self._steered[name] = say.text_of(prompt)
        return (self._say(prompt, name),)

    def interrupt(self) -> Sequence[Output]:
        """Take back what was steered, which it would go on with, and ask it to end its turn."""
        self._interrupting = True
        return (*map(self._withdraw, self._steered), self._request("interrupt", {}))

    def _withdraw(self, name: str) -> Send:
        request = self._request("cancel_async_message", {"message_uuid": name})
        self._withdrawn[f"req_{len(self._requests)}"] = name
        return request

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        ask = self._asks.pop(answer.ask_id, None)
        return () if ask is None else (asks.reply(ask, answer),)

    def _name(self) -> str:
        """A name for words of the user, by which we hear whether they were taken in."""
        self._sent += 1
        return str(uuid5(NAMESPACE_OID, f"{self._spec.session_id}/{self._spec.start}/{self._sent}"))

    def _say(self, prompt: Prompt, name: str) -> Send:
        self._waiting.add(name)
        message = {"role": "user", "content": say.blocks(prompt)}
        frame = {"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "", "uuid": name}
        return Send(msgspec.json.encode(frame))

    def _request(self, subtype: str, fields: dict[str, Any]) -> Send:
        request_id = f"req_{len(self._requests) + 1}"
        self._requests[request_id] = subtype
        request = {"subtype": subtype, **fields}
        return Send(msgspec.json.encode({"type": "control_request", "request_id": request_id, "request": request}))

    # What it says

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one frame."""
        try:
            head = _head.decode(frame)
            name = f"system/{head.subtype}" if head.type == "system" else head.type
            if name in IGNORED:
                return ()
            if name not in HANDLERS:
                raise Unreadable(f"Unknown frame '{name}'", "$.type")
            decoder, handler = HANDLERS[name]
            return handler(self, decoder.decode(frame))
        except msgspec.DecodeError as error:
            raise say.unreadable(error) from error

    def on_init(self, frame: frames.Init) -> Sequence[Output]:
        """A turn begins: now the session has an id. An interrupt that came too early is repeated."""
        self._planning = frame.permission_mode == "plan"
        known = msgspec.structs.replace(
            self._ready,
            native_session_id=frame.session_id,
            agent_version=frame.claude_code_version or self._ready.agent_version,
            model=frame.model,
            mode=_mode(frame.permission_mode),
        )
        news = () if known == self._ready else (known,)
        self._ready = known
        return (*news, self._request("interrupt", {})) if self._interrupting else news

    def on_status(self, frame: frames.Status) -> Sequence[Output]:
        """The permission mode changed, or nothing of interest."""
        if frame.permission_mode is None:
            return ()
        self._planning = frame.permission_mode == "plan"
        mode = _mode(frame.permission_mode)
        if mode == self._ready.mode:
            return ()
        self._ready = msgspec.structs.replace(self._ready, mode=mode)
        return (Draft("session.info", SessionInfoData(mode=mode)),)

    def on_stream(self, frame: frames.StreamEvent) -> Sequence[Output]:
        """The model speaks; tokens of the main conversation are counted."""
        spoken = self._talk.on_stream(frame)
        return spoken if frame.parent_tool_use_id is not None else (*spoken, *self._meter.on_event(frame.event))

    def on_assistant(self, frame: frames.Assistant) -> Sequence[Output]:
        """A finished block; an error in a message's clothes is kept for the turn's end."""
        if frame.error is None or frame.parent_tool_use_id is not None:
            return self._talk.on_assistant(frame)
        content = frame.message.content
        text = content if isinstance(content, str) else "\n".join(block.text for block in content)
        # its command to log in is for its own terminal
        text = text.removesuffix(" · Please run /login")
        code = ERROR_CODES.get(frame.error, "provider_error")
        ends = self._limit_ends(frame) if code == "rate_limit" else None
        self._error = ErrorData(message=text, code=code, resets_at=say.time_of(ends))
        return ()

    def _limit_ends(self, frame: frames.Assistant) -> float | None:
        """When the limit ends that made an error: as the error itself says, else as was told before."""
        try:
            info = msgspec.json.decode(frame.api_error_params, type=frames.LimitReached | None)
        except msgspec.DecodeError:
            info = None
        known = info.rate_limit_info if info is not None and info.rate_limit_info is not None else self._limit
        return known.resets_at if known is not None else None

    def on_rate_limit(self, frame: frames.RateLimit) -> Sequence[Output]:
        """News about a limit of the account; one that is reached may end the turn."""
        info = frame.rate_limit_info
        self._limit = info if info.status == "rejected" else None
        return remarks.rate_limit(info)

    def on_user(self, frame: frames.User) -> Sequence[Output]:
        """Results of tools."""
        return self._talk.on_user(frame)

    def on_lifecycle(self, frame: frames.Lifecycle) -> Sequence[Output]:
        """Words of the user were taken in, or never will be."""
        self._tells_lifecycle = True
        if frame.state != "queued":
            self._waiting.discard(frame.command_uuid)
        if frame.state not in {"queued", "cancelled"}:
            self._steered.pop(frame.command_uuid, None)
        return ()

    def on_result(self, frame: frames.Result) -> Sequence[Output]:
        """It rests; with words of the user that still wait for it, it goes on at once, and so does the turn."""
        usage = self._meter.on_result(frame, self._ready.model)
        if self._waiting and self._tells_lifecycle:
            return (*usage, *self._complaint(frame))
        self._waiting.clear()
        if _was_aborted(frame) or (self._interrupting and frame.subtype == "error_during_execution"):
            return (*usage, TurnDone(outcome="interrupted", stop_reason=frame.terminal_reason))
        complaint = self._complaint(frame)
        if complaint:
            return (*usage, *complaint, TurnDone(outcome="failed", stop_reason=frame.terminal_reason or frame.subtype))
        return (*usage, TurnDone(outcome="completed", stop_reason=frame.stop_reason))

    def _complaint(self, frame: frames.Result) -> Sequence[Output]:
        error, self._error = self._error, None
        if error is None and (not frame.is_error or _was_aborted(frame)):
            return ()
        if error is None:
            message = frame.result or "\n".join(frame.errors) or f"Claude Code stopped: {frame.subtype}."
            error = ErrorData(message=message, code="agent_error")
        details = None if frame.api_error_status is None else {"status": frame.api_error_status}
        return (Draft("error", msgspec.structs.replace(error, details=details)),)

    def on_command_output(self, frame: frames.Remark) -> Sequence[Output]:
        """The output of a slash command is shown like words of the assistant."""
        words = (TextPart(text=frame.content),) if frame.content else ()
        item = say.message(self._talk.item_id(frame.uuid), frame.uuid, None, words)
        return (say.closed(item, "completed"),)

    # What it wants

    def on_request(self, frame: frames.ControlRequest) -> Sequence[Output]:
        """Something to decide; what we have no way to do is refused, so that nothing hangs."""
        subtype = msgspec.json.decode(frame.request, type=frames.Outlined).subtype
        if subtype == "can_use_tool":
            return self._ask(frame.request_id, msgspec.json.decode(frame.request, type=frames.CanUseTool))
        if subtype == "elicitation":
            return (asks.respond(frame.request_id, {"action": "decline"}),)
        return (asks.refuse(frame.request_id, f"Not supported: {subtype}"),)

    def _ask(self, request_id: str, wanted: frames.CanUseTool) -> Sequence[Output]:
        item_id = self._talk.item_id(wanted.tool_use_id)
        names = (f"que_{self._spec.start}_{request_id}", item_id, request_id)
        if wanted.tool_name == "AskUserQuestion":
            ask = asks.question(*names, wanted)
        elif wanted.tool_name == "ExitPlanMode":
            ask = asks.plan_approval(*names, wanted, self._talk.last_words)
        elif self._spec.permission_mode == "bypass" and not self._planning:
            return (asks.allow(request_id, wanted.input),)  # it left plan mode, to which it was started, by approval
        else:
            ask = asks.permission(f"per_{self._spec.start}_{request_id}", item_id, request_id, wanted)
        self._asks[ask.ask_id] = ask
        return (ask.requested,)

    def on_cancel(self, frame: frames.ControlCancel) -> Sequence[Output]:
        """An ask is withdrawn."""
        found = [ask for ask in self._asks.values() if ask.request_id == frame.request_id]
        for ask in found:
            del self._asks[ask.ask_id]
        return tuple(ask.withdrawn for ask in found)

    def on_response(self, frame: frames.ControlResponse) -> Sequence[Output]:
        """The answer to a request of ours."""
        outcome = frame.response
        asked = self._requests.get(outcome.request_id)
        if asked is None:
            raise Unreadable(f"No request {outcome.request_id} is open", "$.response.request_id")
        if asked == "cancel_async_message":
            return self._taken_back(outcome)
        if outcome.subtype == "error" and asked == "initialize":
            return (StartFailed(outcome.error or "It refused to begin."),)
        if outcome.subtype == "error":
            return (say.failure(f"Claude Code refused to {asked}: {outcome.error}", "agent_error"),)
        return self._greet(outcome) if asked == "initialize" else ()

    def _taken_back(self, outcome: frames.Outcome) -> Sequence[Output]:
        """What it had not begun to read is gone; older versions cannot do that."""
        name = self._withdrawn.pop(outcome.request_id, "")
        if outcome.subtype == "error" or not say.read(outcome.response, frames.Withdrawal).cancelled:
            return ()
        self._waiting.discard(name)
        return (say.unheard(self._steered.pop(name, "")),)

    def _greet(self, outcome: frames.Outcome) -> Sequence[Output]:
        hello = msgspec.json.decode(outcome.response, type=frames.Handshake)
        models = tuple(Model(id=one.value, name=one.name or one.value, variants=one.efforts) for one in hello.models)
        version = hello.claude_code_version or self._ready.agent_version
        self._ready = msgspec.structs.replace(self._ready, agent_version=version, models=models or self._ready.models)
        return (remarks.offer(hello.commands), self._ready)


_head = msgspec.json.Decoder(frames.Head)
_Handler = tuple[msgspec.json.Decoder[Any], Callable[[ClaudeCodeTranslator, Any], Sequence[Output]]]


def _reads(frame: type[frames.Frame], handler: Callable[[ClaudeCodeTranslator, Any], Sequence[Output]]) -> _Handler:
    return msgspec.json.Decoder(frame), handler


HANDLERS: dict[str, _Handler] = {
    "system/init": _reads(frames.Init, ClaudeCodeTranslator.on_init),
    "system/status": _reads(frames.Status, ClaudeCodeTranslator.on_status),
    "system/api_retry": _reads(frames.ApiRetry, remarks.retry),
    "system/compact_boundary": _reads(frames.CompactBoundary, remarks.compaction),
    "system/informational": _reads(frames.Remark, remarks.remark),
    "system/model_fallback": _reads(frames.Fallback, remarks.remark),
    "system/local_command_output": _reads(frames.Remark, ClaudeCodeTranslator.on_command_output),
    "system/session_title_changed": _reads(frames.TitleChanged, remarks.title),
    "rate_limit_event": _reads(frames.RateLimit, ClaudeCodeTranslator.on_rate_limit),
    "stream_event": _reads(frames.StreamEvent, ClaudeCodeTranslator.on_stream),
    "assistant": _reads(frames.Assistant, ClaudeCodeTranslator.on_assistant),
    "user": _reads(frames.User, ClaudeCodeTranslator.on_user),
    "command_lifecycle": _reads(frames.Lifecycle, ClaudeCodeTranslator.on_lifecycle),
    "result": _reads(frames.Result, ClaudeCodeTranslator.on_result),
    "control_request": _reads(frames.ControlRequest, ClaudeCodeTranslator.on_request),
    "control_cancel_request": _reads(frames.ControlCancel, ClaudeCodeTranslator.on_cancel),
    "control_response": _reads(frames.ControlResponse, ClaudeCodeTranslator.on_response),
}


def _mode(permission_mode: str | None) -> str:
    return "plan" if permission_mode == "plan" else "build"


def _was_aborted(frame: frames.Result) -> bool:
    return (frame.terminal_reason or "").startswith("aborted")
