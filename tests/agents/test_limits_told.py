"""Limits of accounts, in the very words of the real programs: the error says when the limit ends."""

from typing import Any

import msgspec
import pytest

from ostler.runner.execution.dialogue import Dialogue
from ostler.wire.events import ErrorData
from ostler.wire.parts import TextPart
from ostler.wire.running import Prompt
from tests.agents.claude_code_replay import PLAIN, begun
from tests.agents.test_codex import prompted, tell

ENDS = 1794885511
SHOWN = "2026-11-17T03:18:31.000Z"
PROMPT = Prompt(prompt_id="prm_1", turn_id="trn_1", parts=(TextPart(text="hi"),))
CLAUDE_INFO = {"status": "rejected", "resetsAt": ENDS, "rateLimitType": "five_hour", "isUsingOverage": False}
CLAUDE_TEXT = "You've hit your 5-hour limit · resets 3:18am (UTC)"


def errors(dialogue: Dialogue, *frames: dict[str, Any]) -> list[ErrorData]:
    """What is told of errors when these frames come."""
    for frame in frames:
        dialogue.feed(msgspec.json.encode(frame) + b"\n")
    drafts = dialogue.take_drafts()
    assert [draft.data for draft in drafts if draft.type == "agent.unparsed"] == []
    return [draft.data for draft in drafts if isinstance(draft.data, ErrorData)]


def claude_frames(params: Any, text: str = CLAUDE_TEXT) -> list[dict[str, Any]]:
    """Frames of Claude Code 2.1.325 whose model call was refused with status 429."""
    message = {"id": "m", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    error = {"error": "rate_limit", "api_error_status": 429, "api_error_params": params, "session_id": "s", "uuid": "u"}
    ended = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": text}
    return [{"type": "assistant", "message": message, **error}, {**ended, "terminal_reason": "api_error"}]


@pytest.mark.parametrize(
    ("before", "params", "ends"),
    [
        (CLAUDE_INFO, {"rate_limit_info": CLAUDE_INFO}, SHOWN),
        (None, {"rate_limit_info": CLAUDE_INFO}, SHOWN),
        (CLAUDE_INFO, None, SHOWN),
        (None, None, None),
        (None, {"rate_limit_info": "of another kind"}, None),
        ({**CLAUDE_INFO, "status": "allowed_warning"}, None, None),
        (None, {"rate_limit_info": {**CLAUDE_INFO, "resetsAt": 1e300}}, None),
    ],
)
def test_claude_code_tells_when_its_limit_ends(before: Any, params: Any, ends: str | None) -> None:
    dialogue = begun(PLAIN)
    dialogue.prompt(PROMPT)
    news = [{"type": "rate_limit_event", "rate_limit_info": before}] if before else []
    (error,) = errors(dialogue, *news, *claude_frames(params))
    assert (error.code, error.message, error.resets_at) == ("rate_limit", CLAUDE_TEXT, ends)


def codex_limits(primary: Any, secondary: Any = None) -> dict[str, Any]:
    return {
        "method": "account/rateLimits/updated",
        "params": {"rateLimits": {"primary": primary, "secondary": secondary}},
    }


def window(percent: int, ends: int | None) -> dict[str, Any]:
    return {"usedPercent": percent, "windowDurationMins": 300, "resetsAt": ends}


@pytest.mark.parametrize(
    ("news", "kind", "ends"),
    [
        ([codex_limits(window(100, ENDS))], "usageLimitExceeded", SHOWN),
        ([codex_limits(window(100, ENDS - 60), window(100, ENDS))], "usageLimitExceeded", SHOWN),
        ([codex_limits(window(100, ENDS), window(40, ENDS + 60))], "usageLimitExceeded", SHOWN),
        ([codex_limits(window(100, ENDS)), codex_limits(window(3, ENDS + 60))], "usageLimitExceeded", None),
        ([codex_limits(window(100, None))], "usageLimitExceeded", None),
        ([codex_limits(window(100, ENDS))], "contextWindowExceeded", None),
        ([], "usageLimitExceeded", None),
    ],
)
def test_codex_tells_when_its_limit_ends(news: list[dict[str, Any]], kind: str, ends: str | None) -> None:
    """As Codex 0.166.0 does: the limits of the account come just before the error, which only names a time of day."""
    replay = prompted()
    text = "You have hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 3:18 AM."
    failed = {"message": text, "codexErrorInfo": kind, "additionalDetails": None, "misalignment": None}
    for frame in news:
        replay.feed(frame)
    tell(replay, "error", error=failed, willRetry=False)
    (error,) = [draft.data for draft in replay.drafts if isinstance(draft.data, ErrorData)]
    assert (error.message, error.resets_at) == (text, ends)
