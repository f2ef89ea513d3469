"""Settings of what sessions do by themselves; part of the settings."""

from typing import Annotated

from msgspec import Meta

from ostler.base.setting_groups.tls import TlsSettings


class SessionSettings(TlsSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What becomes of sessions that nobody looks after."""

    go_on_after_limit: Annotated[
        bool,
        Meta(
            description="Whether a session whose agent was stopped by a limit of its account goes on by itself when "
            "the limit ends, if the agent tells when that is."
        ),
    ] = True
    pull_request_look_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="How soon an open pull request is looked at again at its forge; ever more rarely, up to "
            "half an hour, while nothing becomes of it. 0 to look only when somebody asks.",
        ),
    ] = 60.0
