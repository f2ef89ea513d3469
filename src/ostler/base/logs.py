"""Structured logs: one event name plus fields, as text for people or JSON for machines."""

import json
import logging
import sys
from typing import Any, TextIO


class Log:
    """Writes `event name=value`; never give it a secret."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, **fields: Any) -> None:
        """For developers."""
        self._logger.debug(event, extra={"fields": fields})

    def info(self, event: str, **fields: Any) -> None:
        """For operators."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Any) -> None:
        """Something to look at."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, *, exc_info: bool | BaseException = False, **fields: Any) -> None:
        """Something to mend."""
        self._logger.error(event, extra={"fields": fields}, exc_info=exc_info)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = getattr(record, "fields", {})
        tail = "".join(f" {name}={value}" for name, value in fields.items())
        line = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():7} {record.getMessage()}{tail}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {"ts": record.created, "level": record.levelname.lower(), "event": record.getMessage()}
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure_logs(*, level: str, form: str, stream: TextIO = sys.stderr) -> None:
    """Send all logs to one stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
