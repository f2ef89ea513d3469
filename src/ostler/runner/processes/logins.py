"""Agents that are not logged in: how they say so, their words without the secrets in them, and what a person can do."""

import re
from collections.abc import Sequence

from ostler.agents.adapter import Credential
from ostler.wire.running import AgentSpec

_PROMPT = re.compile(
    rb"(?:start(?:ing)?|begin) (?:the )?(?:log|sign)[ -]?in\b|(?:please|you must|you need to) (?:log|sign|authenticate)"
    rb"|paste (?:your|the) (?:\w+ )?code|enter (?:this|the) (?:\w+ )?code|(?:cli-|/)(?:login|auth|device)\S*[?/]"
    rb"|no api key found|not (?:logged|signed) in|waiting for (?:log|sign|auth)",
    re.IGNORECASE,
)
_WAITING = re.compile(
    rb"start(?:ing)? (?:the )?(?:log|sign)[ -]?in\b|paste (?:your|the) (?:\w+ )?code|enter (?:this|the) (?:\w+ )?code"
    rb"|cli-login|/login/device|waiting for (?:log|sign|auth)",
    re.IGNORECASE,
)
_ABOUT_LOGIN = re.compile(
    r"\b(?:401|403)\b|api[ _-]?key|log(?:ged)?[ -]?in\b|sign(?:ed)?[ -]?in\b|auth|credential", re.IGNORECASE
)
_SECRET = re.compile(rb"([?&#][\w.-]*(?:token|code|secret|key|state|challenge|nonce)=)[^\s&#\"'<>\\]+", re.IGNORECASE)
_HIDDEN = rb"\1[hidden]"


def asks_for_login(words: bytes) -> bool:
    """Whether a text that is no frame wants a person to log in."""
    return _PROMPT.search(words) is not None


def waits_for_login(words: bytes) -> bool:
    """Whether what an agent prints beside its frames is a login under way, and no mere complaint."""
    return _WAITING.search(words) is not None


def is_about_login(reason: str) -> bool:
    """Whether an agent failed because of what it logs in with."""
    return _ABOUT_LOGIN.search(reason) is not None


def hidden(words: bytes) -> bytes:
    """The same without the secrets that addresses carry."""
    return _SECRET.sub(_HIDDEN, words) if b"=" in words else words


def hidden_text(words: str) -> str:
    """The same for text."""
    return hidden(words.encode(errors="surrogateescape")).decode(errors="surrogateescape") if "=" in words else words


def login_hint(credentials: Sequence[Credential], spec: AgentSpec) -> str:
    """What to do about an agent that is not let in; empty if nothing is known."""
    names = [credential.name for credential in credentials]
    if spec.provider is not None:
        return "Check `provider.api_key` of the session."
    if spec.shared_login is not None:
        return f"Log it in again with `ostler agents login {spec.agent}`."
    if given := [name for name in names if name in spec.env]:
        return f"Check {given[0]}, which the session has."
    if not names:
        return ""
    return (
        f"Log it in with `ostler agents login {spec.agent}`, give the session {names[0]} (`--env {names[0]}=...`, or "
        "`env` in the API) or a `provider`, or start the server with `--share-credentials` to use what its machine has."
    )


def can_log_in(credentials: Sequence[Credential], spec: AgentSpec) -> bool:
    """Whether the session would be let in by what the runner has for all, so that a login there helps it."""
    names = {credential.name for credential in credentials}
    return bool(names) and spec.provider is None and (spec.shared_login is not None or names.isdisjoint(spec.env))
