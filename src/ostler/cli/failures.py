"""What each kind of failure says and which exit code it gives."""

import click

from ostler.base.errors import OstlerError, SettingsError
from ostler.client.errors import (
    BadAddress,
    BadName,
    BadToken,
    ClientError,
    ConnectionLost,
    NoAnswer,
    OstlerApiError,
    ServerUnreachable,
    TokenExposed,
)

_OPTIONS = dict.fromkeys(("delivery.credential", "repo.credential"), "--repo-token")
"""Fields of the API that commands have another name for."""

FAILED, USAGE, UNREACHABLE, NOT_FOUND = 1, 2, 3, 4


def explain(error: Exception) -> tuple[str, int]:
    """One line for people, and the exit code for scripts."""
    return " ".join(_sentence(error).split()), _exit_code(error)


def _exit_code(error: Exception) -> int:
    match error:
        case click.ClickException():
            return error.exit_code
        case ServerUnreachable() | ConnectionLost() | NoAnswer():
            return UNREACHABLE
        case SettingsError() | BadAddress() | BadName() | BadToken() | TokenExposed():
            return USAGE
        case OstlerApiError(status=404):
            return NOT_FOUND
        case _:
            return FAILED


def _sentence(error: Exception) -> str:
    match error:
        case click.UsageError():
            return _usage(error)
        case click.ClickException():
            return error.format_message()
        case OstlerApiError():
            return _api(error)
        case OstlerError() | ClientError():
            return str(error)
        case _:
            message = str(error) or "no message"
            return f"{type(error).__name__}: {message} (unexpected; run `ostler --debug ...` for the details)"


def _usage(error: click.UsageError) -> str:
    message = error.format_message()
    command = error.ctx.command_path if error.ctx else "ostler"
    stop = "" if message.endswith((".", "?")) else "."
    return f"{message}{stop} Try `{command} --help`."


def _api(error: OstlerApiError) -> str:
    if error.status == 401:  # the server speaks of headers
        return f"{error.detail.partition(' Send ')[0]} Give the token with `--token` or OSTLER_TOKEN."
    reasons = {name: " ".join(found) for name, found in error.errors.items()}
    detail = error.detail
    for field, option in _OPTIONS.items():
        detail = detail.replace(f"{field}: ", f"{option}: ")
    new = {name: text for name, text in reasons.items() if name not in error.detail and text not in error.detail}
    fields = "; ".join(f"{name}: {text}" for name, text in new.items())
    return f"{detail} ({fields})" if fields else detail
