"""Ostler's own agent as drafts; its lines are those of `wire/own_agent.py`."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, assert_never

import msgspec
from msgspec.structs import replace

from ostler import __version__
from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send, TurnDone, Unreadable
from ostler.agents.asks import approves, asked, is_plan, permission_asked, plan_asked, wishes
from ostler.wire.events import (
    ClientCall,
    ErrorData,
    PermissionData,
    Question,
    QuestionData,
    QuestionOption,
    SessionInfoData,
    UsageUpdatedData,
)
from ostler.wire.items import Item, PlanEntry
from ostler.wire.own_agent import (
    AgentReady,
    Answered,
    AnyFromAgent,
    AnyToAgent,
    Api,
    ClientCalled,
    Done,
    Failed,
    FileChange,
    FromAgent,
    Grown,
    Image,
    Interrupted,
    MessageBegun,
    MessageEnded,
    ModeChanged,
    ModelChosen,
    Noted,
    PermissionAsk,
    PlanAsk,
    Planned,
    Prompted,
    ProposalAsk,
    QuestionAsk,
    Reply,
    Start,
    Steered,
    ToolBegun,
    ToolEnded,
    ToolPrinted,
    Used,
)
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, TextPart
from ostler.wire.providers import ProviderType
from ostler.wire.running import PROPOSES, AgentSpec, Answer, Draft, PermissionAnswer, Prompt, QuestionAnswer

APIS: dict[ProviderType, tuple[Api, str]] = {
    "anthropic": ("messages", ""),
    "openai": ("chat", "/v1"),
    "gemini": ("gemini", ""),
}
"""Type of a provider -> its protocol, and what follows the root."""
_decoder: msgspec.json.Decoder[AnyFromAgent] = msgspec.json.Decoder(AnyFromAgent)


class OstlerTranslator:
    """The dialogue with one process."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._tools: dict[str, Item] = {}
        self._plans: set[str] = set()
        left = spec.continues.items if spec.continues is not None else ()
        self._left = {item.native_item_id: item for item in left}

    def open(self) -> Sequence[Output]:
        """Say how to work; it answers that it is ready."""
        return (_line(_start(self._spec)),)

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one line."""
        decoded = say.read(frame, _decoder)
        return HANDLERS[type(decoded)](self, decoded)

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        return (*self._sent_before(prompt), _line(Prompted(**_message(prompt))))

    def _sent_before(self, prompt: Prompt) -> Sequence[Output]:
        """What people answered and added in a turn that goes on: its process may have heard it, or not."""
        left = self._spec.continues
        if left is None or left.turn_id != prompt.turn_id:
            return ()
        asks: tuple[PermissionData | QuestionData, ...] = (*left.permissions, *left.questions)
        decided = [output for ask in asks if (output := _decision(ask)) is not None]
        return (*decided, *map(_steered, left.steered))

    def steer(self, prompt: Prompt) -> Sequence[Output]:
        """Add to the running turn."""
        return (_steered(prompt),)

    def interrupt(self) -> Sequence[Output]:
        """Ask for the end of the turn."""
        return (_line(Interrupted()),)

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision."""
        native = _native(answer.ask_id)
        match answer:
            case PermissionAnswer():
                return (_line(Reply(id=native, allow=answer.allow, message=answer.message)),)
            case QuestionAnswer() if native in self._plans:
                self._plans.discard(native)
                return (_line(_plan_reply(answer)),)
            case QuestionAnswer():
                return (_line(_answered(answer)),)
            case _:
                assert_never(answer)

    def begin_tool(self, frame: ToolBegun) -> Item:
        """Remember a call until it is answered."""
        item = self._tools[frame.id] = say.call(
            _item(frame.id), frame.name, frame.input, frame.id, _below(frame.parent)
        )
        return item

    def end_tool(self, native: str) -> Item:
        """Forget a call that was answered."""
        if native not in self._tools:
            raise Unreadable(f"No tool call {native} is open", "$.id")
        return self._tools.pop(native)

    def left_by_another(self, native: str) -> Item | None:
        """What the process before this one had begun under that name."""
        return self._left.get(native)

    def plan_asked(self, native: str) -> None:
        """Remember that an ask is about a plan."""
        self._plans.add(native)


def _item(native: str) -> str:
    return f"itm_{native}"


def _below(parent: str | None) -> str | None:
    return _item(parent) if parent is not None else None


def _start(spec: AgentSpec) -> Start:
    api, suffix = APIS[spec.provider.type] if spec.provider is not None else (None, "")
    return Start(
        version=__version__,
        permission_mode=spec.permission_mode,
        mode=spec.mode,
        resume=spec.resume,
        api=api,
        base_url=spec.provider.base_url.rstrip("/") + suffix if spec.provider is not None else None,
        model=spec.model,
        effort=spec.variant,  # type: ignore[arg-type]  # `prepare` has refused all others
        instructions=spec.instructions,
        system_prompt=spec.system_prompt,
        max_turns=spec.limits.max_turns,
        max_tokens=spec.limits.max_tokens,
        temperature=spec.temperature,
        tools=spec.tools,
        client_tools=spec.client_tools,
        code_tools=spec.code_tools,
        mcp_servers=spec.mcp_servers,
        heard=spec.continues.heard if spec.continues is not None else (),
        begun=tuple(item.native_item_id or "" for item in spec.continues.items) if spec.continues is not None else (),
        rebooted=spec.continues is not None and spec.continues.rebooted and not spec.continues.open_asks,
    )


def _steered(prompt: Prompt) -> Output:
    return _line(Steered(**_message(prompt)))


def _decision(ask: PermissionData | QuestionData) -> Output | None:
    """What was decided about an ask of the process before; None if nothing was."""
    match ask:
        case PermissionData(status="requested") | QuestionData(status="requested"):
            return None
        case PermissionData(permission_id=ask_id, status=status):
            allow = status in {"accept", "accept_for_session"}
            return _line(Reply(id=_native(ask_id), allow=allow, message=ask.message))
        case QuestionData(question_id=ask_id, answers=answers):
            answer = QuestionAnswer(ask_id=ask_id, answers=answers, message=ask.message)
            return _line(_plan_reply(answer) if is_plan(ask) else _answered(answer))


def _native(ask_id: str) -> str:
    return ask_id.partition("_")[2]


def _plan_reply(answer: QuestionAnswer) -> Reply:
    return Reply(id=_native(answer.ask_id), allow=approves(answer), message=" ".join(wishes(answer)) or None)


def _answered(answer: QuestionAnswer) -> Answered:
    chosen = answer.answers[0] if answer.answers else None
    return Answered(id=_native(answer.ask_id), answers=chosen, message=answer.message)


def _message(prompt: Prompt) -> dict[str, Any]:
    images = [say.image_content(prompt, part) for part in prompt.parts if isinstance(part, ImagePart)]
    return {
        "id": prompt.prompt_id,
        "text": "\n".join(part.text for part in prompt.parts if isinstance(part, TextPart)),
        "images": tuple(Image(mime=mime, data=data) for mime, data in images),
        "files": tuple(part.path for part in prompt.parts if isinstance(part, FileRefPart)),
    }


def _line(frame: AnyToAgent) -> Send:
    return Send(msgspec.json.encode(frame))


# What the agent says


def _ready(_: OstlerTranslator, frame: AgentReady) -> Sequence[Output]:
    return (
        Ready(
            native_session_id=frame.session,
            resumed=frame.resumed,
            agent_version=__version__,
            model=frame.model,
            mode=frame.mode,
            reached=frame.reached,
        ),
    )


def _message_begun(_: OstlerTranslator, frame: MessageBegun) -> Sequence[Output]:
    return (say.opened(say.message(_item(frame.id), frame.id, _below(frame.parent))),)


def _grown(_: OstlerTranslator, frame: Grown) -> Sequence[Output]:
    return (say.grown(_item(frame.id), _part(frame.kind, frame.text), frame.id),)


def _message_ended(state: OstlerTranslator, frame: MessageEnded) -> Sequence[Output]:
    """Its content is that of its deltas, unless it comes whole."""
    left = state.left_by_another(frame.id)
    if frame.broken and left is not None:
        return (say.closed(left, "failed"),)
    content = [_part(part.kind, part.text) for part in frame.content]
    item = say.message(_item(frame.id), frame.id, _below(frame.parent), content)
    return (say.closed(item, "failed" if frame.broken else "completed"),)


def _part(kind: Literal["text", "thinking"], text: str) -> ContentPart:
    return TextPart(text=text) if kind == "text" else say.thought(text)


def _tool_begun(state: OstlerTranslator, frame: ToolBegun) -> Sequence[Output]:
    return (say.opened(state.begin_tool(frame)),)


def _tool_printed(_: OstlerTranslator, frame: ToolPrinted) -> Sequence[Output]:
    return (say.printed(frame.text, _item(frame.id), frame.stream),)


def _tool_ended(state: OstlerTranslator, frame: ToolEnded) -> Sequence[Output]:
    return say.answered(state.end_tool(frame.id), frame.output, failed=frame.failed)


def _file(_: OstlerTranslator, frame: FileChange) -> Sequence[Output]:
    return say.changed(frame.path, frame.action, frame.diff, _item(frame.tool), frame.operation)


def _permission(_: OstlerTranslator, frame: PermissionAsk) -> Sequence[Output]:
    metadata: dict[str, Any] = {"input": msgspec.json.decode(frame.input)}
    if frame.diff is not None:
        metadata["diff"] = frame.diff
    if frame.name == "bash":
        metadata["always"] = f"bash:{frame.action}"
    data = permission_asked(f"per_{frame.id}", frame.action, frame.name, _item(frame.tool), metadata)
    return (Draft("permission.requested", data),)


def _question(_: OstlerTranslator, frame: QuestionAsk) -> Sequence[Output]:
    options = tuple(QuestionOption(label=label) for label in frame.options)
    question = Question(question=frame.question, options=options, multi_select=frame.multi_select, free_text=True)
    return (Draft("question.requested", asked(f"que_{frame.id}", (question,), _item(frame.tool))),)


def _plan(state: OstlerTranslator, frame: PlanAsk) -> Sequence[Output]:
    state.plan_asked(frame.id)
    return (Draft("question.requested", plan_asked(f"que_{frame.id}", frame.plan, _item(frame.tool))),)


def _proposal(_: OstlerTranslator, frame: ProposalAsk) -> Sequence[Output]:
    wanted = {"kind": frame.kind, "wanted": msgspec.json.decode(frame.wanted), "reason": frame.reason}
    data = permission_asked(
        f"per_{frame.id}", f"propose a {frame.kind}", "propose", _item(frame.tool), {PROPOSES: wanted}
    )
    return (Draft("permission.requested", data),)


def _client_called(_: OstlerTranslator, frame: ClientCalled) -> Sequence[Output]:
    call = ClientCall(name=frame.name, input=msgspec.json.decode(frame.input))
    question = Question(
        question=f"The tool '{frame.name}' is called; answer with its result.",
        options=(),
        multi_select=False,
        free_text=True,
    )
    ask = replace(asked(f"que_{frame.id}", (question,), _item(frame.tool)), call=call)
    return (Draft("question.requested", ask),)


def _mode(_: OstlerTranslator, frame: ModeChanged) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(mode=frame.mode)),)


def _model(_: OstlerTranslator, frame: ModelChosen) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(model=frame.model)),)


def _planned(_: OstlerTranslator, frame: Planned) -> Sequence[Output]:
    return (say.plan(PlanEntry(content=each.content, status=each.status) for each in frame.entries),)


def _used(_: OstlerTranslator, frame: Used) -> Sequence[Output]:
    data = UsageUpdatedData(
        input_tokens=frame.input,
        output_tokens=frame.output,
        cached_input_tokens=frame.cached,
        reasoning_tokens=frame.reasoning,
        context_used=frame.context,
        context_window=frame.window,
    )
    return (Draft("usage.updated", data),)


def _noted(_: OstlerTranslator, frame: Noted) -> Sequence[Output]:
    return (say.notice(frame.message, frame.code, frame.severity),)


def _failed(_: OstlerTranslator, frame: Failed) -> Sequence[Output]:
    details = {"status": frame.status} if frame.status is not None else None
    ends = say.time_of(frame.resets_at)
    return (Draft("error", ErrorData(message=frame.message, code=frame.code, details=details, resets_at=ends)),)


def _done(_: OstlerTranslator, frame: Done) -> Sequence[Output]:
    return (TurnDone(outcome=frame.outcome, stop_reason=frame.reason),)


HANDLERS: dict[type[FromAgent], Callable[[OstlerTranslator, Any], Sequence[Output]]] = {
    AgentReady: _ready,
    MessageBegun: _message_begun,
    Grown: _grown,
    MessageEnded: _message_ended,
    ToolBegun: _tool_begun,
    ToolPrinted: _tool_printed,
    ToolEnded: _tool_ended,
    FileChange: _file,
    PermissionAsk: _permission,
    QuestionAsk: _question,
    PlanAsk: _plan,
    ProposalAsk: _proposal,
    ClientCalled: _client_called,
    ModeChanged: _mode,
    ModelChosen: _model,
    Planned: _planned,
    Used: _used,
    Noted: _noted,
    Failed: _failed,
    Done: _done,
}
