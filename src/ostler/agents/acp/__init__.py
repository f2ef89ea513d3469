"""Agents that speak the Agent Client Protocol: one adapter for all, made from a profile each.

A command that nobody has written a profile for runs too: `AcpAdapter.custom` asks for nothing but its command line.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ostler.agents.acp.login import AcpLogin
from ostler.agents.acp.profile import Profile
from ostler.agents.acp.translator import AcpTranslator
from ostler.agents.adapter import Credential, Info, Installation, Launch, Login, all_but
from ostler.agents.sources import OnPath
from ostler.wire.running import AgentSpec

UNKNOWN_AGENT = all_but(
    "command_execution",
    "images",
    "plan_mode",
    "questions",
    "resume",
    "shared_process",
    "status",
    "steering",
    "subagents",
)
"""What the protocol itself promises; what an agent adds to it is only known once it runs."""


class AcpAdapter:
    """One agent that speaks ACP."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.sources, self.credentials = profile.sources, profile.credentials
        self.info = Info(
            id=profile.id,
            name=profile.name,
            capabilities=profile.capabilities,
            modes=profile.modes,
            models=profile.models,
            unconverted=profile.unconverted,
            login=_spoken(profile),
        )

    @classmethod
    def custom(
        cls,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        login: Login | None = None,
        key: str | None = None,
    ) -> "AcpAdapter":
        """An adapter for any command that speaks ACP, such as one from the settings."""
        program, *args = command
        profile = Profile(
            id=name,
            name=name,
            capabilities=UNKNOWN_AGENT,
            sources=(OnPath(program=program),),
            args=tuple(args),
            env=dict(env or {}),
            login=login or Login(),
            credentials=() if key is None else (Credential(name=key, env=(key,)),),
        )
        return cls(profile)

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        """Describe the start."""
        self._profile.check(spec)
        setup = self._profile.configure(spec)
        argv = (*setup.before, *installation.command, *self._profile.args, *setup.args)
        return Launch(argv=argv, env={**self._profile.env, **setup.env}, files=setup.files)

    def translator(self, spec: AgentSpec) -> AcpTranslator:
        """A fresh translator for one process."""
        return AcpTranslator(self._profile, spec)


def _spoken(profile: Profile) -> Login:
    """Its login with the ways that the agent itself tells, unless a command was named."""
    if profile.login.command or not profile.login.is_needed:
        return profile.login

    def talk(way: str | None) -> AcpLogin:
        return AcpLogin(way, profile.unusable_logins)

    return msgspec.structs.replace(profile.login, talk=talk, tells_ways=True)
