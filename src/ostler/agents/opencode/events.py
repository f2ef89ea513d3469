"""What OpenCode's server-sent events mean: one small function for each kind, all of them in tables."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from ostler.agents import say
from ostler.agents.adapter import Output, Unreadable
from ostler.agents.opencode import asks, frames, items
from ostler.agents.opencode.talk import Talk
from ostler.agents.opencode.turn import MOST_RETRIES, Turn
from ostler.wire.items import Item
from ostler.wire.running import Draft


def on_event(state: Talk, event: frames.Event) -> Sequence[Output]:
    """Translate one event; what concerns other sessions of the server gives nothing."""
    entry = EVENTS.get(event.type)
    if entry is not None:
        return entry.handle(state, say.read(event.properties, entry.properties))
    if event.type in IGNORED or event.type.partition(".")[0] in IGNORED_FAMILIES:
        return ()
    raise Unreadable(f"Unknown event {event.type}", "$.event.type")


def _session_created(state: Talk, change: frames.SessionChange) -> Sequence[Output]:
    if change.info.parent_id in state.parents:
        state.parents.setdefault(change.info.id, None)
    return ()


def _message_updated(state: Talk, update: frames.MessageUpdated) -> Sequence[Output]:
    info, turn = update.info, state.turn
    if info.session_id not in state.parents:
        return ()
    is_new = info.id not in state.roles
    state.roles[info.id] = "summary" if info.summary is True else info.role
    if turn is None or info.session_id != state.session:
        return ()
    if info.role == "user":
        return _prompt_taken(state, turn, info) if is_new else ()
    turn.answered(info.parent_id)
    if info.time.completed is None:
        turn.unfinished.add(info.id)
    else:
        turn.unfinished.discard(info.id)
    return state.settle()


def _prompt_taken(state: Talk, turn: Turn, info: frames.Message) -> Sequence[Output]:
    turn.awaited = max(0, turn.awaited - 1)
    turn.messages.append(info.id)
    turn.idles = 0  # it will be answered, whatever was said about idleness before
    return state.switch_mode(info.agent) if info.agent else ()


def _part_updated(state: Talk, update: frames.PartUpdated) -> Sequence[Output]:
    part = update.part
    role = state.roles.get(part.message_id)
    if part.session_id not in state.parents:
        return ()
    if isinstance(part, frames.Compaction):
        return (say.notice("The conversation is made shorter to fit the model.", "compaction", "info"),)
    handler = PARTS[type(part)]
    return handler(state, part) if role == "assistant" and handler else ()


def _words(state: Talk, part: frames.Words) -> Sequence[Output]:
    outputs: list[Output] = []
    before, item = state.texts.get(part.id, (None, None))
    if item is None:
        item = say.message(state.name("itm", part.id), part.id, state.parents[part.session_id])
        outputs.append(say.opened(item))
    known = before.text if before else ""
    if part.time is not None and part.time.end is not None:
        state.texts.pop(part.id, None)
        if state.turn is not None and not isinstance(part, frames.Reasoning):
            state.turn.text = part.text
        return [*outputs, items.finished(item, part)]
    if part.text.startswith(known) and part.text != known:
        outputs.append(say.grown(item.item_id, items.words(part, part.text[len(known) :]), part.id))
    state.texts[part.id] = (part, item)
    return outputs


def _part_delta(state: Talk, delta: frames.PartDelta) -> Sequence[Output]:
    found = state.texts.get(delta.part_id)
    if found is None or delta.field != "text":
        return ()  # of a prompt, a summary or somebody else's session
    part, item = found
    state.texts[delta.part_id] = (msgspec.structs.replace(part, text=part.text + delta.delta), item)
    return (say.grown(item.item_id, items.words(part, delta.delta), part.id),)


def _tool(state: Talk, part: frames.Tool) -> Sequence[Output]:
    if part.state.status == "pending":
        return ()  # its arguments are not known yet
    item = items.call(state.name("itm", part.id), state.parents[part.session_id], part)
    state.tools[part.call_id] = part
    if (child := items.child_session(part)) is not None:
        state.parents[child] = item.item_id
    outputs: list[Output] = [say.opened(item), *_output(state, part, item), *_release(state, part)]
    if part.state.status == "running":
        return outputs
    del state.tools[part.call_id]
    state.printed.pop(part.call_id, None)
    changes = items.file_changes(part, item.item_id, state.proposed.pop(part.call_id, None))
    _remember_files(state, part, changes)
    return [*outputs, *items.answered(item, part), *changes]


def _output(state: Talk, part: frames.Tool, item: Item) -> Sequence[Output]:
    now = items.printed(part)
    if now is None:
        return ()
    new = items.added(state.printed.get(part.call_id, ""), now)
    state.printed[part.call_id] = now
    return (say.printed(new, item.item_id),) if new else ()


def _remember_files(state: Talk, part: frames.Tool, changes: Sequence[Draft]) -> None:
    """Which files are reported already, and what was written into them: one of them may be the plan."""
    state.announced |= {str(getattr(draft.data, "path", "")) for draft in changes}
    given = part.state.input
    path, content, old, new = (given.get(name) for name in ("filePath", "content", "oldString", "newString"))
    if part.state.status != "completed" or not isinstance(path, str) or not path.endswith(".md"):
        return
    if isinstance(content, str):
        state.written[path] = content
    elif path in state.written and isinstance(old, str) and isinstance(new, str):
        state.written[path] = state.written[path].replace(old, new, 1)


def _patch(state: Talk, part: frames.Patch) -> Sequence[Output]:
    others = [path for path in part.files if path not in state.announced]
    state.announced.clear()
    return [items.changed_otherwise(path) for path in others]


def _step_finish(state: Talk, part: frames.StepFinish) -> Sequence[Output]:
    if state.turn is None:
        return ()
    return (state.turn.used(part, in_context=part.session_id == state.session, window=state.window),)


# Asks


def _permission_asked(state: Talk, asked: frames.PermissionAsked) -> Sequence[Output]:
    if asked.session_id not in state.parents:
        return ()
    if asked.tool is not None and isinstance(diff := asked.metadata.get("diff"), str):
        state.proposed[asked.tool.call_id] = diff
    return _hold_or_ask(state, asked)


def _question_asked(state: Talk, asked: frames.QuestionAsked) -> Sequence[Output]:
    return _hold_or_ask(state, asked) if asked.session_id in state.parents else ()


def _hold_or_ask(state: Talk, asked: frames.PermissionAsked | frames.QuestionAsked) -> Sequence[Output]:
    if asked.tool is not None and asked.tool.call_id not in state.tools:
        state.held.setdefault(asked.tool.call_id, []).append(asked)
        return ()
    return (_ask(state, asked),)


def _release(state: Talk, part: frames.Tool) -> list[Output]:
    return [_ask(state, asked) for asked in state.held.pop(part.call_id, [])]


def _ask(state: Talk, asked: frames.PermissionAsked | frames.QuestionAsked) -> Draft:
    call = state.tools[asked.tool.call_id] if asked.tool else None
    item_id = state.name("itm", call.id) if call else None
    if isinstance(asked, frames.PermissionAsked):
        ask = asks.permission(state.name("per", asked.id), asked, call, item_id)
    elif call is not None and call.tool == "plan_exit":
        ask = asks.plan_approval(state.name("que", asked.id), asked, item_id, _plan(state, asked))
    else:
        ask = asks.question(state.name("que", asked.id), asked, item_id)
    state.asks[ask.ask_id] = ask
    return ask.requested


def _plan(state: Talk, asked: frames.QuestionAsked) -> str:
    """The plan file if we saw it being written, else what the model said last."""
    wanted = " ".join(one.question for one in asked.questions)
    files = [content for path, content in state.written.items() if PurePath(path).name in wanted]
    growing = [part.text for part, _ in state.texts.values() if not isinstance(part, frames.Reasoning)]
    spoken = [state.turn.text] if state.turn else []
    return ["", *spoken, *growing, *files][-1]


# The session


def _status(state: Talk, change: frames.StatusChange) -> Sequence[Output]:
    if change.session_id not in state.parents or state.turn is None:
        return ()
    if change.status.type == "retry":
        return _retry(state, state.turn, change.status)
    if change.session_id != state.session or change.status.type == "idle":
        return ()  # session.idle says it too
    state.turn.idles = 0
    unheard = state.turn.interrupted and not state.turn.aborting
    return (state.abort(state.turn),) if unheard else ()


def _retry(state: Talk, turn: Turn, status: frames.Status) -> Sequence[Output]:
    if status.attempt < MOST_RETRIES:
        text = f"The provider failed: {status.message.rstrip('.')}. Trying again ({status.attempt})."
        return (say.notice(text, "retry"),)
    if turn.failure is not None:
        return ()
    turn.failure = "error"
    return items.given_up(status), state.abort(turn)


def _idle(state: Talk, idle: frames.Idle) -> Sequence[Output]:
    if state.turn is None or idle.session_id != state.session:
        return ()
    state.turn.idles += 1
    return state.settle()


def _error(state: Talk, failed: frames.SessionError) -> Sequence[Output]:
    aborted = failed.error is not None and failed.error.name == "MessageAbortedError"
    if failed.session_id is not None and failed.session_id not in state.parents:
        return ()
    if failed.session_id != state.session:
        return () if aborted else (items.error(failed.error),)
    turn = state.turn
    if turn is None:
        return ()  # a prompt that fails says so twice, the second time with a stack trace
    if aborted:
        turn.interrupted = True
        return ()
    turn.failure = "error"
    if turn.awaited:
        turn.refuse()
    return items.error(failed.error), *state.settle()


def _todo(state: Talk, update: frames.TodoUpdated) -> Sequence[Output]:
    return (items.plan(update.todos),) if update.session_id == state.session else ()


class Handled(NamedTuple):
    """What an event carries and what is done with it."""

    properties: Any
    handle: Callable[[Talk, Any], Sequence[Output]]


EVENTS: dict[str, Handled] = {
    "session.created": Handled(frames.SessionChange, _session_created),
    "session.status": Handled(frames.StatusChange, _status),
    "session.idle": Handled(frames.Idle, _idle),
    "session.error": Handled(frames.SessionError, _error),
    "message.updated": Handled(frames.MessageUpdated, _message_updated),
    "message.part.updated": Handled(frames.PartUpdated, _part_updated),
    "message.part.delta": Handled(frames.PartDelta, _part_delta),
    "permission.asked": Handled(frames.PermissionAsked, _permission_asked),
    "question.asked": Handled(frames.QuestionAsked, _question_asked),
    "todo.updated": Handled(frames.TodoUpdated, _todo),
}
IGNORED = {
    "session.updated",  # nothing that the messages do not tell
    "session.deleted",  # only we delete
    "session.diff",  # the tools tell the changes one by one
    "session.compacted",  # its beginning was reported
    "message.removed",  # only a revert does that
    "message.part.removed",
    "permission.replied",  # our own answers
    "permission.updated",
    "question.replied",
    "question.rejected",
    "file.edited",  # the tools tell it with more
    "file.watcher.updated",
    "command.executed",
}
IGNORED_FAMILIES = {
    "server",  # the connection's own greetings and heartbeats
    "plugin",  # the rest is about the program and its interfaces, not about the conversation
    "catalog",
    "reference",
    "integration",
    "installation",
    "global",
    "project",
    "lsp",
    "mcp",
    "ide",
    "pty",
    "tui",
    "vcs",
    "workspace",
    "worktree",
}
PARTS: dict[type[frames.Part], Callable[[Talk, Any], Sequence[Output]] | None] = {
    frames.Words: _words,
    frames.Reasoning: _words,
    frames.Tool: _tool,
    frames.StepFinish: _step_finish,
    frames.Patch: _patch,
    frames.StepStart: None,
    frames.File: None,
    frames.Snapshot: None,
    frames.Mention: None,
    frames.Subtask: None,
    frames.Retry: None,
}
