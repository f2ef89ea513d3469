"""What an agent did, step by step, in the format of the benchmarks that want it (ATIF)."""

import time
from pathlib import Path
from typing import Any

import msgspec

from ostler import __version__
from ostler.wire.own_agent import (
    AgentReady,
    AnyFromAgent,
    Done,
    Grown,
    MessageBegun,
    ModelChosen,
    ToolBegun,
    ToolEnded,
    Used,
)

_FORMAT = "ATIF-v1.0"


class Trajectory:
    """Grows with what an agent says; is on disk after each step, so that a killed run leaves what there is."""

    def __init__(self, file: Path | None, task: str, model: str | None) -> None:
        self._file = file
        self._session = ""
        self._model = model
        self._steps: list[dict[str, Any]] = []
        self._used = Used(input=0, output=0, cached=0, reasoning=0, context=0)
        self._outcome: dict[str, str] = {}
        self._calls: set[str] = set()
        self._begin("user", task)

    def take(self, frame: AnyFromAgent) -> None:
        """Add what a line of the agent says; of its sub-agents there is only the answer."""
        match frame:
            case AgentReady():
                self._session = frame.session
            case ModelChosen():
                self._model = frame.model
            case MessageBegun(parent=None):
                self._begin("agent", "")
            case Grown(parent=None):
                field = "message" if frame.kind == "text" else "reasoning_content"
                step = self._of_agent()
                step[field] = step.get(field, "") + frame.text
            case ToolBegun(parent=None):
                called = {"tool_call_id": frame.id, "function_name": frame.name, "arguments": _arguments(frame.input)}
                self._of_agent().setdefault("tool_calls", []).append(called)
                self._calls.add(frame.id)
            case ToolEnded() if frame.id in self._calls:
                result = {"source_call_id": frame.id, "content": frame.output}
                self._of_agent().setdefault("observation", {"results": []})["results"].append(result)
                self._write()
            case Used():
                self._used = frame
                self._write()
            case Done():
                self._outcome = {"outcome": frame.outcome, "stop_reason": frame.reason}
                self._write()
            case _:
                pass

    def _begin(self, source: str, message: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._steps.append({"step_id": len(self._steps) + 1, "timestamp": at, "source": source, "message": message})

    def _of_agent(self) -> dict[str, Any]:
        last = self._steps[-1]
        if last["source"] != "agent":
            self._begin("agent", "")
        return self._steps[-1]

    def _write(self) -> None:
        if self._file is None:
            return
        whole = {
            "schema_version": _FORMAT,
            "session_id": self._session,
            "agent": {"name": "ostler", "version": __version__, "model_name": self._model},
            "steps": self._steps,
            "final_metrics": {
                "total_prompt_tokens": self._used.input,
                "total_completion_tokens": self._used.output,
                "total_cached_tokens": self._used.cached,
                "total_steps": len(self._steps),
            },
            "extra": self._outcome,
        }
        fresh = self._file.with_name(f"{self._file.name}.new")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(whole), indent=2))
        fresh.replace(self._file)


def _arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {"malformed": text}
