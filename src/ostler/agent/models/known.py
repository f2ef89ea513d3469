"""What is known of models: their limits, and which values they take. The rows are data, in `models.json`."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec

_FILE = Path(__file__).with_name("models.json")
_BUDGETS = {"low": 4_096, "medium": 12_288, "high": 24_576, "max": 31_999}


class Known(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A family of models."""

    match: str
    """A pattern for what stands after the last slash of a model's name; the first row that fits counts."""
    window: int | None = None
    output: int | None = None
    """Most tokens in one answer."""
    thinking: Literal["effort", "budget", "none"] = "effort"
    efforts: dict[str, str] = {}
    """Our efforts that it calls otherwise."""
    temperature: Literal["always", "without_thinking", "never"] = "always"


class Fitted(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is told, and what it cannot be told."""

    max_tokens: int | None
    temperature: float | None
    effort: str | None
    budget: int | None
    thinks: bool
    notices: tuple[str, ...]


_UNKNOWN = Known(match="*")


def known(model: str) -> Known:
    """The row of a model; an unknown one is believed to take everything."""
    name = model.rpartition("/")[2].lower()
    rows = msgspec.json.decode(_FILE.read_bytes(), type=list[Known])
    return next((row for row in rows if fnmatchcase(name, row.match)), _UNKNOWN)


def fitted(model: str, api: str, *, max_tokens: int | None, temperature: float | None, effort: str | None) -> Fitted:
    """The wishes of a session, as far as the model can do them."""
    row = known(model)
    notices = []
    if max_tokens is not None and row.output is not None and max_tokens > row.output:
        notices.append(f"Model '{model}' answers with at most {row.output} tokens, not {max_tokens}.")
        max_tokens = row.output
    words, budget = _thinking(row, api, effort)
    thinks = words not in {None, "none", "minimal"} or bool(budget)
    if effort not in {None, "off"} and not thinks:
        notices.append(f"Model '{model}' cannot be told how hard to think; '{effort}' has no effect.")
    if temperature is not None and (row.temperature == "never" or (row.temperature == "without_thinking" and thinks)):
        why = " while it thinks" if row.temperature == "without_thinking" else ""
        notices.append(f"Model '{model}' takes no temperature{why}; {temperature:g} has no effect.")
        temperature = None
    limit = max_tokens if max_tokens is not None or api != "messages" else min(row.output or 32_000, 32_000)
    can = row is not _UNKNOWN and row.thinking != "none"
    return Fitted(
        max_tokens=limit, temperature=temperature, effort=words, budget=budget, thinks=can, notices=tuple(notices)
    )


def _thinking(row: Known, api: str, effort: str | None) -> tuple[str | None, int | None]:
    """An effort in the provider's words, or a number of tokens."""
    if effort is None or row.thinking == "none":
        return None, None
    if effort == "off":
        if api == "gemini":
            return row.efforts.get("off"), 0 if row.thinking == "budget" and "pro" not in row.match else None
        return (row.efforts.get("off", "none") if api in {"chat", "responses"} and row is not _UNKNOWN else None), None
    if (api == "gemini" and row.thinking == "budget") or (
        api == "messages" and (row.thinking == "budget" or not row.match.startswith("claude"))
    ):
        return None, _BUDGETS[effort]
    return row.efforts.get(effort, "high" if effort == "max" else effort), None
