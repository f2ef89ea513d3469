"""Translates the dialogue with one Pi process (`pi --mode rpc`): JSON lines in both directions.

A message that only calls tools is no item of its own: the calls are. Pi names neither messages nor turns, so they are
counted. Pi says `agent_settled` when it is idle; old versions do not, so there its state is asked after `agent_end`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send, StartFailed, TurnDone
from ostler.agents.pi import frames
from ostler.agents.pi.asks import Asks
from ostler.agents.pi.errors import provider_error
from ostler.agents.pi.tools import Tools
from ostler.wire.agents import Model
from ostler.wire.events import Cost, ErrorData, SessionInfoData, UsageUpdatedData
from ostler.wire.items import Item, ItemStatus
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, ReasoningPart, TextPart
from ostler.wire.running import AgentSpec, Answer, Draft, Prompt

OUR_PROVIDER = "ostler"
EFFORTS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}
BROKEN_OFF = frozenset({"error", "aborted"})

_decoder: msgspec.json.Decoder[frames.AnyFrame] = msgspec.json.Decoder(frames.AnyFrame)
_blocks = msgspec.json.Decoder(tuple[frames.Block, ...])
_state = msgspec.json.Decoder(frames.StateData)
_cleared = msgspec.json.Decoder(frames.ClearedData)
_models = msgspec.json.Decoder(frames.ModelsData)


class PiTranslator:
    """The state of one dialogue; the functions below read and change it, one per kind of frame."""

    def __init__(self, spec: AgentSpec) -> None:
        self.start = spec.start
        self.resume = spec.resume
        self.tools = Tools(spec.start)
        self.asks = Asks(spec.start, self.tools.item_of)
        self.model: frames.PiModel | None = None
        self.session_id: str | None = None
        self.turn = 0
        self.messages = 0
        self.moments = 0
        self.message: Item | None = None
        """The assistant's message that is growing, once it has anything to show."""
        self.images: list[int] = []
        """How many images each message had that Pi has not shown yet."""
        self.working = False
        self.interrupted = False
        self.stopped = False
        """Pi has stopped since it was last seen starting."""
        self.settles = True
        """This version says when it is idle."""
        self.probing = False
        """An old version stopped and was asked whether it is idle."""
        self.stop_reason: str | None = None
        self.failure: ErrorData | None = None
        self.usage: list[frames.Usage] = []

    def open(self) -> Sequence[Output]:
        """Ask where we are and what there is; the second answer makes us ready."""
        return command("get_state", id="handshake"), command("get_available_models", id="handshake")

    def feed(self, frame: bytes) -> Sequence[Output]:
        """Translate one line."""
        try:
            decoded = _decoder.decode(frame)
            return HANDLERS[type(decoded)](self, decoded)
        except msgspec.DecodeError as error:
            raise say.unreadable(error) from error

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        """Begin a turn."""
        self.turn += 1
        self.working, self.interrupted, self.stopped, self.probing = True, False, False, False
        self.stop_reason, self.failure, self.usage = None, None, []
        self.images = [_count_of_images(prompt)]
        return (command("prompt", id=f"prompt-{self.turn}", **_content(prompt)),)

    def steer(self, prompt: Prompt) -> Sequence[Output]:
        """Add to the running turn; Pi shows it to the model after the tools that run now."""
        self.images.append(_count_of_images(prompt))
        return (command("steer", id=f"steer-{self.turn}", **_content(prompt)),)

    def interrupt(self) -> Sequence[Output]:
        """Take back what was steered, which Pi would go on with, and ask it to end its turn."""
        self.interrupted = True
        return command("clear_queue", id=f"abort-{self.turn}"), command("abort", id=f"abort-{self.turn}")

    def answer(self, answer: Answer) -> Sequence[Output]:
        """Hand over a decision; one on an ask of an earlier process has nobody to hear it."""
        reply = self.asks.reply(answer)
        return () if reply is None else (command("extension_ui_response", **reply),)

    def done(self) -> Sequence[Output]:
        """Pi is idle: the turn is over, well or not."""
        if not self.working:
            return ()
        self.working = False
        if self.interrupted:
            return (TurnDone(outcome="interrupted", stop_reason="interrupted"),)
        if self.failure is not None:
            return Draft("error", self.failure), TurnDone(outcome="failed", stop_reason="error")
        reason = self.stop_reason or "stop"
        return (TurnDone(outcome="completed", stop_reason=STOP_REASONS.get(reason, reason)),)

    def model_id(self, model: frames.PiModel) -> str:
        """How a client names a model; one of the session's own provider needs no prefix."""
        return model.id if model.provider == OUR_PROVIDER else f"{model.provider}/{model.id}"


# Answers to our commands


def _response(state: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    handle = RESPONSES.get(frame.command)
    if handle is not None:
        return handle(state, frame)
    if frame.success:
        return ()
    return (say.notice(f"Pi did not do '{frame.command}': {frame.error}", "agent_refused"),)


def _state_reported(state: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    if not frame.success:
        return (StartFailed(f"Pi does not tell its state: {frame.error}"),)
    data = _state.decode(frame.data)
    state.model, state.session_id = data.model, data.session_id
    if not state.probing:
        return ()
    if data.is_streaming or data.is_compacting:
        return (command("get_state", id="probe"),)
    state.probing = False
    return state.done()


def _models_reported(state: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    found = _models.decode(frame.data).models if frame.success else ()
    models = tuple(
        Model(id=state.model_id(model), name=model.name or model.id, variants=EFFORTS if model.reasoning else ())
        for model in found
    )
    current = state.model_id(state.model) if state.model else None
    ready = Ready(native_session_id=state.session_id, model=current, models=models)
    if state.resume in {None, state.session_id}:
        return (ready,)
    return ready, say.notice(f"Pi session {state.resume} is gone; a new one began.", "resume")


def _prompt_taken(state: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    if frame.success or frame.id != f"prompt-{state.turn}":
        return ()
    state.failure = provider_error(frame.error or "Pi refused the prompt.")
    return state.done()


def _aborted(state: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    return state.done() if frame.id == f"abort-{state.turn}" else ()


def _queue_cleared(_: PiTranslator, frame: frames.Response) -> Sequence[Output]:
    if not frame.success:
        return ()  # an older version, whose next turn begins with it
    return [say.unheard(text) for text in _cleared.decode(frame.data).steering]


RESPONSES: dict[str, Callable[[PiTranslator, frames.Response], Sequence[Output]]] = {
    "get_state": _state_reported,
    "get_available_models": _models_reported,
    "prompt": _prompt_taken,
    "clear_queue": _queue_cleared,
    "abort": _aborted,
}

# Messages


def _message_start(state: PiTranslator, frame: frames.MessageStart) -> Sequence[Output]:
    if frame.message.role == "assistant":
        state.messages += 1
        state.message = None
    if frame.message.role == "user":
        return _unseen_images(state, frame.message)
    return ()  # other roles repeat what tools answered


def _unseen_images(state: PiTranslator, message: frames.Message) -> Sequence[Output]:
    """Pi leaves out an image that it cannot decode, and tells only the model."""
    sent = state.images.pop(0) if state.images else 0
    if not sent:
        return ()
    unseen = sent - sum(block.type == "image" for block in _blocks.decode(message.content))
    if unseen <= 0:
        return ()
    what = "an image" if sent == 1 else f"{unseen} of {sent} images"
    return (say.notice(f"Pi could not read {what} of this message, so the model does not see it.", "image_unreadable"),)


def _message_update(state: PiTranslator, frame: frames.MessageUpdate) -> Sequence[Output]:
    growth = frame.assistant_message_event
    match growth.type:
        case "text_delta":
            part: ContentPart = TextPart(text=growth.delta)
        case "thinking_delta":
            part = ReasoningPart(text=growth.delta, visibility="private")
        case _:
            return ()  # starts and ends say nothing new; tool calls are reported when they run
    opened, item = _opened_message(state)
    return (*opened, say.grown(item.item_id, part))


def _message_end(state: PiTranslator, frame: frames.MessageEnd) -> Sequence[Output]:
    message = frame.message
    if message.role != "assistant":
        return ()
    state.stop_reason = message.stop_reason
    state.failure = provider_error(message.error_message) if message.stop_reason == "error" else None
    state.usage.append(message.usage)
    return (*_closed_message(state, message), Draft("usage.updated", _usage(state)))


def _opened_message(state: PiTranslator) -> tuple[Sequence[Output], Item]:
    if state.message is not None:
        return (), state.message
    state.message = say.message(f"itm_{state.start}_message{state.messages}")
    return (say.opened(state.message),), state.message


def _closed_message(state: PiTranslator, message: frames.Message) -> Sequence[Output]:
    content = tuple(part for block in _blocks.decode(message.content) if (part := _part(block)) is not None)
    if not content and state.message is None:
        return ()
    opened, item = _opened_message(state)
    status: ItemStatus = "failed" if message.stop_reason in BROKEN_OFF else "completed"
    final = msgspec.structs.replace(item, content=content, native_item_id=message.response_id)
    state.message = None
    return (*opened, say.closed(final, status))


def _part(block: frames.Block) -> ContentPart | None:
    match block.type:
        case "text" if block.text:
            return TextPart(text=block.text)
        case "thinking" if block.thinking:
            return ReasoningPart(text=block.thinking, visibility="private")
        case _:
            return None


def _usage(state: PiTranslator) -> UsageUpdatedData:
    spent = sum(usage.cost.total for usage in state.usage)
    last = state.usage[-1]
    return UsageUpdatedData(
        input_tokens=sum(usage.input + usage.cache_read + usage.cache_write for usage in state.usage),
        output_tokens=sum(usage.output for usage in state.usage),
        cached_input_tokens=sum(usage.cache_read for usage in state.usage),
        reasoning_tokens=sum(usage.reasoning for usage in state.usage),
        cost=Cost(amount=spent, currency="USD") if spent else None,  # 0 means that Pi knows no price
        context_used=last.total_tokens or None,
        context_window=state.model.context_window if state.model else None,
    )


# Tools and asks


def _ui(state: PiTranslator, frame: frames.UiRequest) -> Sequence[Output]:
    match frame.method:
        case "notify":
            return (say.notice(frame.message, "extension", frame.notify_type),)
        case "setStatus" | "setWidget" | "setTitle" | "set_editor_text":
            return ()  # decoration of a terminal we do not have
        case _:
            return (state.asks.ask(frame),)


# The course of a turn


def _own(state: PiTranslator, event: str) -> Draft:
    """An event that only Pi has, by its name: nothing for people, who are told what it means."""
    state.moments += 1
    return say.closed(
        Item(
            item_id=f"itm_{state.start}_moment{state.moments}",
            kind="status",
            role="system",
            status="completed",
            content=(),
            native_item_id=f"pi.{event}",
        )
    )


def _agent_start(state: PiTranslator, _: frames.AgentStart) -> Sequence[Output]:
    state.stopped = state.probing = False
    return (_own(state, "agent_start"),)


def _agent_end(state: PiTranslator, frame: frames.AgentEnd) -> Sequence[Output]:
    state.stopped = True
    state.settles = frame.will_retry is not None
    moment = _own(state, "agent_end")
    return (moment,) if state.settles else (moment, *_probe(state))


def _probe(state: PiTranslator) -> Sequence[Output]:
    state.probing = True
    return (command("get_state", id="probe"),)


def _settled(state: PiTranslator, _: frames.AgentSettled) -> Sequence[Output]:
    return state.done()


def _retry_start(state: PiTranslator, frame: frames.RetryStart) -> Sequence[Output]:
    state.probing = False
    reason = provider_error(frame.error_message).message
    tries = f"try {frame.attempt} of {frame.max_attempts} in {frame.delay_ms / 1000:g} s"
    return _own(state, "auto_retry_start"), say.notice(f"{reason} ({tries})", "retry")


def _retry_end(state: PiTranslator, _: frames.RetryEnd) -> Sequence[Output]:
    return (_own(state, "auto_retry_end"),)  # how it ended, the turn tells


def _compaction_start(state: PiTranslator, frame: frames.CompactionStart) -> Sequence[Output]:
    state.probing = False
    notice = say.notice(f"Pi shortens its memory ({frame.reason}).", "compaction", "info")
    return _own(state, "compaction_start"), notice


def _compaction_end(state: PiTranslator, frame: frames.CompactionEnd) -> Sequence[Output]:
    if frame.error_message:
        notice = say.notice(frame.error_message, "compaction")
    else:
        what = "did not shorten" if frame.aborted else "has shortened"
        notice = say.notice(f"Pi {what} its memory.", "compaction", "info")
    waits = state.working and state.stopped and not state.settles and not frame.will_retry
    shown = _own(state, "compaction_end"), notice
    return (*shown, *_probe(state)) if waits else shown


def _named(_: PiTranslator, frame: frames.SessionInfoChanged) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(title=frame.name)),) if frame.name else ()


def _effort(_: PiTranslator, frame: frames.ThinkingLevelChanged) -> Sequence[Output]:
    return (Draft("session.info", SessionInfoData(variant=frame.level)),)


def _extension_error(state: PiTranslator, frame: frames.ExtensionError) -> Sequence[Output]:
    notice = say.notice(f"An extension of Pi failed: {frame.error}", "extension", "error")
    return _own(state, "extension_error"), notice


def _turn_start(state: PiTranslator, _: frames.TurnStart) -> Sequence[Output]:
    return (_own(state, "turn_start"),)  # a model call is no turn of ours


def _turn_end(state: PiTranslator, _: frames.TurnEnd) -> Sequence[Output]:
    return (_own(state, "turn_end"),)


def _nothing(_: PiTranslator, __: frames.Incoming) -> Sequence[Output]:
    return ()


HANDLERS: dict[type[frames.Incoming], Callable[[PiTranslator, Any], Sequence[Output]]] = {
    frames.Response: _response,
    frames.MessageStart: _message_start,
    frames.MessageUpdate: _message_update,
    frames.MessageEnd: _message_end,
    frames.ToolStart: lambda state, frame: state.tools.begin(frame),
    frames.ToolUpdate: lambda state, frame: state.tools.grow(frame),
    frames.ToolEnd: lambda state, frame: state.tools.end(frame),
    frames.UiRequest: _ui,
    frames.AgentStart: _agent_start,
    frames.AgentEnd: _agent_end,
    frames.AgentSettled: _settled,
    frames.RetryStart: _retry_start,
    frames.RetryEnd: _retry_end,
    frames.CompactionStart: _compaction_start,
    frames.CompactionEnd: _compaction_end,
    frames.SessionInfoChanged: _named,
    frames.ThinkingLevelChanged: _effort,
    frames.ExtensionError: _extension_error,
    frames.TurnStart: _turn_start,
    frames.TurnEnd: _turn_end,
    frames.QueueUpdate: _nothing,  # the queue is ours; Pi's holds only what was steered
    frames.EntryAppended: _nothing,  # Pi's session file
    frames.BashUpdate: _nothing,  # we never use Pi's own shell
    frames.SummaryRetry: _nothing,  # the compaction tells how it ended
    frames.SummaryAttempt: _nothing,
    frames.SummaryDone: _nothing,
}


# What we write


def command(kind: str, **fields: Any) -> Send:
    """A line for Pi."""
    return Send(msgspec.json.encode({"type": kind, **fields}))


def _content(prompt: Prompt) -> dict[str, Any]:
    texts = [part.text for part in prompt.parts if isinstance(part, TextPart)]
    files = [f"File: {part.path}" for part in prompt.parts if isinstance(part, FileRefPart)]
    images = [_image(prompt, part) for part in prompt.parts if isinstance(part, ImagePart)]
    content: dict[str, Any] = {"message": "\n".join(texts + files)}
    return {**content, "images": images} if images else content


def _count_of_images(prompt: Prompt) -> int:
    return sum(isinstance(part, ImagePart) for part in prompt.parts)


def _image(prompt: Prompt, part: ImagePart) -> dict[str, str]:
    kind, data = say.image(prompt, part)
    return {"type": "image", "data": data, "mimeType": kind}
