"""How each agent's own program writes its conversations down, and where."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

import msgspec

from ostler.base.private import replace_file
from ostler.runner.imports.chats import Chat, Line, Reader, text_of


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one agent."""

    folder: str
    """Below a home: where the program has everything."""
    pattern: str
    """Of the files in there, one for each conversation."""
    read: Reader
    variable: str | None = None
    """Moves the folder elsewhere."""
    also: tuple[str, ...] = ()
    """Files in there that the program needs to find it again; `{0}` is the first part that a `*` stands for."""
    place: str | None = None
    """Where it must lie in the folder of a session, if not where it lies now."""
    levels: int = 0
    """How many of the folders above the file belong to the conversation, with everything in them."""
    prepare: Callable[[Chat, Path], None] | None = None
    """Reads what a program says about a conversation outside of its file."""
    adapt: Callable[[Path, Path], None] | None = None
    """Called with the file and its copy: mends what would lead back to where it came from."""

    def root(self, home: Path, environ: Mapping[str, str]) -> Path:
        """The folder of a user."""
        moved = environ.get(self.variable) if self.variable is not None else None
        return Path(moved) if moved and Path(moved).is_absolute() else home / self.folder

    def companions(self, file: PurePosixPath) -> tuple[str, ...]:
        """What has to come with a file."""
        return tuple(each.format(_starred(self.pattern, file)) for each in self.also)

    def begin(self, root: Path, file: PurePosixPath) -> Chat:
        """A conversation, with what is known before its file is read."""
        chat = Chat()
        for each in self.companions(file):
            if each.endswith("/.project_root") and (root / each).is_file():
                chat.folder = (root / each).read_text(errors="replace").strip() or None
                break
        if self.prepare is not None:
            self.prepare(chat, root / file)
        return chat


def _starred(pattern: str, file: PurePosixPath) -> str:
    pairs = zip(PurePosixPath(pattern).parts, file.parts, strict=True)
    return next(part for form, part in pairs if "*" in form and fnmatchcase(part, form))


def _claude_code(chat: Chat, line: Line) -> None:
    chat.folder = chat.folder or line.get("cwd")
    chat.id = chat.id or line.get("sessionId")
    message = line.get("message")
    if line.get("isSidechain") or line.get("isMeta") or not isinstance(message, dict):
        return
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(parts, list) or line.get("type") not in {"user", "assistant"}:
        return
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)} if line["type"] == "user":
                chat.asked(line.get("timestamp"), text)
            case {"type": "text", "text": text}:
                chat.spoke(text)
            case {"type": "thinking", "thinking": text}:
                chat.thought(text)
            case {"type": "tool_use", "id": call, "name": name, "input": given}:
                chat.called(call, name, given)
            case {"type": "tool_result", "tool_use_id": call}:
                chat.answered(call, part.get("content"), failed=bool(part.get("is_error")))


def _codex(chat: Chat, line: Line) -> None:
    payload = line.get("payload")
    match line.get("type"), payload:
        case "session_meta", {"id": str(name), "cwd": str(folder)}:
            chat.id, chat.folder = chat.id or name, chat.folder or folder
        case "response_item", {"type": "message", "role": "user", "content": list(parts)}:
            chat.asked(line.get("timestamp"), text_of(parts))
        case "response_item", {"type": "message", "role": "assistant", "content": list(parts)}:
            chat.spoke(text_of(parts))
        case "response_item", {"type": "reasoning", "summary": list(parts)}:
            chat.thought(text_of(parts))
        case "response_item", {"type": "function_call" | "custom_tool_call", "call_id": call, "name": name}:
            given = payload or {}
            chat.called(call, name, given.get("arguments", given.get("input", "")))
        case "response_item", {"type": "function_call_output" | "custom_tool_call_output", "call_id": call}:
            chat.answered(call, (payload or {}).get("output"))


def _pi(chat: Chat, line: Line) -> None:
    if line.get("type") == "session":
        chat.id, chat.folder = line.get("id"), line.get("cwd")
    message = line.get("message") or {}
    match message:
        case {"role": "user", "content": content}:
            chat.asked(line.get("timestamp"), text_of(content))
        case {"role": "assistant", "content": list(parts)}:
            for part in parts:
                match part:
                    case {"type": "text", "text": text}:
                        chat.spoke(text)
                    case {"type": "thinking", "thinking": text}:
                        chat.thought(text)
                    case {"type": "toolCall", "id": call, "name": name, "arguments": given}:
                        chat.called(call, name, given)
        case {"role": "toolResult", "toolCallId": call, "content": content}:
            chat.answered(call, content, failed=bool(message.get("isError")))


def _gemini(chat: Chat, line: Line) -> None:
    chat.id = chat.id or line.get("sessionId")
    match line:
        case {"type": "user", "content": content}:
            chat.asked(line.get("timestamp"), text_of(content))
        case {"type": "gemini"}:
            chat.spoke(line.get("content"))
            for call in line.get("toolCalls") or ():
                chat.called(call.get("id"), call.get("name"), call.get("args"))
                shown = call.get("resultDisplay")
                chat.answered(call.get("id"), shown, failed=call.get("status") == "error")


def _qwen(chat: Chat, line: Line) -> None:
    chat.id, chat.folder = chat.id or line.get("sessionId"), chat.folder or line.get("cwd")
    message = line.get("message")
    for part in message.get("parts") or () if isinstance(message, dict) else ():
        match part:
            case {"text": str(text)} if line.get("type") == "user":
                chat.asked(line.get("timestamp"), text)
            case {"thought": True, "text": text}:
                chat.thought(text)
            case {"text": text} if line.get("type") == "assistant":
                chat.spoke(text)
            case {"functionCall": {"name": name} as call}:
                chat.called(call.get("id"), name, call.get("args"))
            case {"functionResponse": {"response": output} as answer}:
                chat.answered(answer.get("id"), output)


def _copilot(chat: Chat, line: Line) -> None:
    match line:
        case {"type": "session.start", "data": {"sessionId": str(name)} as data}:
            context = data.get("context")
            chat.id, chat.folder = name, context.get("cwd") if isinstance(context, dict) else None
        case {"type": "user.message", "data": {"content": str(text)}}:
            chat.asked(line.get("timestamp"), text)
        case {"type": "assistant.message", "data": {"content": text}}:
            chat.spoke(text)
        case {"type": "tool.execution_start", "data": {"toolCallId": call, "toolName": name} as data}:
            chat.called(call, name, data.get("arguments"))
        case {"type": "tool.execution_complete", "data": {"toolCallId": call} as data}:
            result = data.get("result")
            output = result.get("content") if isinstance(result, dict) else result
            chat.answered(call, output, failed=data.get("success") is False)


def _kimi(chat: Chat, line: Line) -> None:
    match line:
        case {"type": "turn.prompt", "input": list(parts), "origin": {"kind": "user"}}:
            chat.asked(line.get("time"), text_of(parts))
        case {"type": "context.append_loop_event", "event": event}:
            match event:
                case {"type": "content.part", "part": {"type": "text", "text": text}}:
                    chat.spoke(text)
                case {"type": "content.part", "part": {"type": "think", "think": text}}:
                    chat.thought(text)
                case {"type": "tool.call", "toolCallId": call, "name": name}:
                    chat.called(call, name, event.get("args"))
                case {"type": "tool.result", "toolCallId": call, "result": dict(result)}:
                    chat.answered(call, result.get("output"), failed=bool(result.get("isError")))


def _kimi_state(chat: Chat, file: Path) -> None:
    """Id, folder and name, which are in a file of their own."""
    state = msgspec.json.decode((file.parents[2] / "state.json").read_bytes(), type=dict[str, object])
    if not state.get("archived"):
        chat.id, chat.folder = file.parents[2].name, _text(state.get("cwd"))
        chat.name = _text(state.get("title")) if state.get("isCustomTitle") else None


def _kimi_moved(file: Path, copy: Path) -> None:
    """Kimi writes where the state says, and finds a conversation by its index."""
    place, index = copy.parents[2], copy.parents[5] / "session_index.jsonl"
    state = msgspec.json.decode((place / "state.json").read_bytes(), type=dict[str, object])
    text = msgspec.json.encode(state).replace(msgspec.json.encode(str(file.parents[2]))[1:-1], str(place).encode())
    replace_file(place / "state.json", text)
    entry = {"sessionId": place.name, "sessionDir": str(place), "workDir": state.get("cwd")}
    replace_file(index, msgspec.json.encode(entry) + b"\n")


def _text(found: object) -> str | None:
    return found if isinstance(found, str) and found else None


FORMATS = {
    "claude-code": Format(
        folder=".claude", variable="CLAUDE_CONFIG_DIR", pattern="projects/*/*.jsonl", read=_claude_code
    ),
    "codex": Format(folder=".codex", variable="CODEX_HOME", pattern="sessions/*/*/*/*.jsonl", read=_codex),
    "copilot": Format(folder=".copilot", pattern="session-state/*/events.jsonl", read=_copilot, levels=1),
    "gemini": Format(
        folder=".gemini",
        pattern="tmp/*/chats/*.jsonl",
        read=_gemini,
        also=("projects.json", "tmp/{0}/.project_root", "history/{0}/.project_root"),
    ),
    "kimi": Format(
        folder=".kimi-code",
        variable="KIMI_CODE_HOME",
        pattern="sessions/*/*/agents/main/wire.jsonl",
        read=_kimi,
        levels=3,
        prepare=_kimi_state,
        adapt=_kimi_moved,
    ),
    "pi": Format(folder=".pi", pattern="agent/sessions/*/*.jsonl", read=_pi, place="ostler/session.jsonl"),
    "qwen": Format(folder=".qwen", pattern="projects/*/chats/*.jsonl", read=_qwen),
}
