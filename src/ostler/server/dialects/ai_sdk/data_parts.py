"""What the UI Message Stream has no word for, as `data-*` parts of our own."""

from typing import Any

import msgspec

from ostler.server.dialects.ai_sdk.chunks import Data, File
from ostler.server.dialects.formats import picture_of
from ostler.wire.events import FileChangedData, PermissionData, QuestionData, UsageUpdatedData
from ostler.wire.items import Item, PlanUpdatedData
from ostler.wire.parts import ContentPart, FileRefPart, ImagePart, JsonPart, StatusPart, TextPart
from ostler.wire.workspace_events import ArtifactCreatedData

_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cachedInput": "cached_input_tokens",
    "reasoning": "reasoning_tokens",
    "contextUsed": "context_used",
    "contextWindow": "context_window",
}


def plan(data: PlanUpdatedData) -> Data:
    """The whole plan; each one replaces the one before."""
    return Data(type="data-plan", id="plan", data={"entries": msgspec.to_builtins(data.entries)})


def permission(data: PermissionData, *, session: str, call_id: str | None) -> Data:
    """A permission that waits, and later the same one decided."""
    fields = {
        "permissionId": data.permission_id,
        "sessionId": session,
        "action": data.action,
        "status": data.status,
        "tool": data.tool,
        "toolCallId": call_id,
        "message": data.message,
    }
    return Data(type="data-permission", id=data.permission_id, data=_present(fields))


def question(data: QuestionData, *, session: str, call_id: str | None) -> Data:
    """A question that waits, and later the same one answered."""
    fields = {
        "questionId": data.question_id,
        "sessionId": session,
        "prompt": data.prompt,
        "options": data.options,
        "status": data.status,
        "questions": [_asked(asked) for asked in msgspec.to_builtins(data.questions)],
        "response": data.response,
        "answers": data.answers,
        "message": data.message,
        "toolCallId": call_id,
    }
    return Data(type="data-question", id=data.question_id, data=_present(fields))


def _asked(question: dict[str, Any]) -> dict[str, Any]:
    renamed = {"multi_select": "multiSelect", "free_text": "freeText"}
    return {renamed.get(name, name): value for name, value in question.items()}


def terminal(output: str) -> Data:
    """Output of a command that belongs to no tool call."""
    return Data(type="data-terminal", id="terminal", data={"output": output})


def file_changed(data: FileChangedData, call_id: str | None) -> Data:
    """A file that was changed."""
    fields = {"path": data.path, "action": data.action, "diff": data.diff, "toolCallId": call_id}
    return Data(type="data-file", data=_present(fields))


def artifact(data: ArtifactCreatedData, call_id: str | None) -> Data:
    """A file worth showing."""
    fields = {"path": data.path, "action": data.action, "artifactType": data.artifact_type, "toolCallId": call_id}
    return Data(type="data-artifact", data=_present(fields))


def notice(severity: str, message: str, code: str | None = None) -> Data:
    """Something people should know."""
    return Data(type="data-notice", data=_present({"severity": severity, "message": message, "code": code}))


def status(item: Item) -> list[Data]:
    """A status line or a word of the system."""
    found = [_status(item.item_id, part) for part in item.content]
    return [data for data in found if data is not None][-1:]


def _status(item_id: str, part: ContentPart) -> Data | None:
    match part:
        case StatusPart(label=label, detail=detail):  # what it does just now: nothing to keep
            about = _present({"label": label, "detail": detail})
            return Data(type="data-status", id=item_id, data=about, transient=True)
        case TextPart(text=text):
            return Data(type="data-status", id=item_id, data={"label": text})
        case _:
            return None


def attachments(item: Item, session: str) -> list[Data | File]:
    """What a message holds beside text and thoughts."""
    found = [(f"{item.item_id}_{index}", part) for index, part in enumerate(item.content)]
    return [data for place, part in found if (data := _attachment(place, part, session)) is not None]


def _attachment(place: str, part: ContentPart, session: str) -> Data | File | None:
    match part:
        case JsonPart(json=value):
            return Data(type="data-json", id=place, data=value)
        case FileRefPart(path=path, action=action, diff=diff):
            return Data(type="data-file", id=place, data=_present({"path": path, "action": action, "diff": diff}))
        case ImagePart():
            url, media_type = picture_of(session, part)
            return File(url=url, media_type=media_type)
        case StatusPart(label=label, detail=detail):
            return Data(type="data-status", id=place, data=_present({"label": label, "detail": detail}))
        case _:
            return None


def usage(data: UsageUpdatedData) -> dict[str, Any]:
    """Tokens and cost as message metadata has them."""
    fields = {name: getattr(data, field) for name, field in _USAGE.items()}
    if data.cost is not None:
        fields["cost"] = data.cost.amount
        fields["currency"] = None if data.cost.currency == "USD" else data.cost.currency
    return _present(fields)


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
