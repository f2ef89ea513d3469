"""Structured logs: one event name plus fields, as text for people or JSON for machines, and never a secret."""

import json
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from ostler.base.redaction import HIDDEN, Secrets, is_secret_name, redacted

_OURS = "ostler"
_CHATTY = ("httpx", "httpcore")
"""They tell every request with its address, whatever is asked of us."""
_SECRETS = Secrets()


class Log:
    """Writes `event name=value`."""

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


def never_log(*values: str | None) -> None:
    """Keep these out of every line from now on, whoever writes it."""
    _SECRETS.add(values)


def trace_for_developers(error: BaseException) -> str | None:
    """Where an error comes from, without secrets, if this process logs what is for developers; else None."""
    if not logging.getLogger(_OURS).isEnabledFor(logging.DEBUG):
        return None
    return redacted("".join(traceback.format_exception(error)), _SECRETS)


class _Entry:
    """One record without its secrets."""

    def __init__(self, record: logging.LogRecord, formatter: logging.Formatter) -> None:
        own = record.name.partition(".")[0] == _OURS
        fields: dict[str, Any] = getattr(record, "fields", {})
        self.event = record.getMessage() if own else redacted(record.getMessage(), _SECRETS)
        self.fields = {name: _clean(name, value) for name, value in fields.items()}
        trace = formatter.formatException(record.exc_info) if record.exc_info else record.stack_info
        self.traceback = redacted(trace, _SECRETS) if trace else None


def _clean(name: str, value: Any) -> Any:
    match value:
        case bool() | int() | float() | None:
            return value
        case _ if is_secret_name(name):
            return HIDDEN
        case Mapping():
            return {str(key): _clean(str(key), each) for key, each in value.items()}
        case list() | tuple():
            return [_clean(name, each) for each in value]
        case _:
            return redacted(str(value), _SECRETS, whole_paths=True)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = _Entry(record, self)
        tail = "".join(f" {name}={value}" for name, value in entry.fields.items())
        line = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower():7} {_one_line(entry.event + tail)}"
        return f"{line}\n{entry.traceback}" if entry.traceback else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = _Entry(record, self)
        shown = {"ts": record.created, "level": record.levelname.lower(), "event": entry.event, **entry.fields}
        if entry.traceback:
            shown["traceback"] = entry.traceback
        return json.dumps(shown, default=str)


def _one_line(text: str) -> str:
    """Nobody forges a second line, or speaks to the terminal."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def configure_logs(*, level: str, form: str, stream: TextIO = sys.stderr) -> None:
    """Send all logs of this process, and what nobody caught, to one stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt | SystemExit):
        logging.getLogger(_OURS).critical("uncaught", exc_info=(kind, error or kind(), trace))
