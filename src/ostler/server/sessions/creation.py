"""What a new session is made of: checks of the request, and the first events of its log."""

from pathlib import Path

from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.base.ids import is_key, new_id
from ostler.base.paths import is_folder
from ostler.server.sessions import drafts
from ostler.server.store.records import NewSession, SessionSpec
from ostler.wire.providers import Provider
from ostler.wire.running import AgentSpec, Draft
from ostler.wire.sessions import CreateSession


def new_session(project: str, wanted: CreateSession, *, folder: Path, created_at: str) -> NewSession:
    """Check a request and give the session it asks for."""
    session_id = new_id("ses")
    return NewSession(
        id=session_id,
        project=project,
        key=_checked_key(wanted.key) or session_id,
        agent=wanted.agent,
        created_at=created_at,
        spec=_spec_of(wanted, folder / session_id / "workspace"),
    )


def _checked_key(key: str | None) -> str | None:
    if key is not None and not is_key(key):
        reason = "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not '.' or '..'"
        raise InvalidRequest(reason=f"key '{key[:150]}' {reason}.", errors={"key": [reason]})
    return key


def _spec_of(wanted: CreateSession, default_cwd: Path) -> SessionSpec:
    _check_env(wanted.env)
    return SessionSpec(
        cwd=_checked_cwd(wanted.cwd) if wanted.cwd is not None else str(default_cwd),
        env=wanted.env,
        permission_mode=wanted.permission_mode,
        model=wanted.model,
        variant=wanted.variant,
        mode=wanted.mode,
        turn_timeout_seconds=wanted.turn_timeout_seconds,
        provider=_checked_provider(wanted.provider),
        mcp_servers=wanted.mcp_servers,
    )


def _checked_provider(provider: Provider | None) -> Provider | None:
    if provider is not None and not provider.base_url.startswith(("http://", "https://")):
        errors = {"provider.base_url": ["must begin with http:// or https://"]}
        raise InvalidRequest(reason=f"provider.base_url '{provider.base_url}' is not an address.", errors=errors)
    return provider


def _checked_cwd(cwd: str) -> str:
    if not (Path(cwd).is_absolute() and is_folder(cwd)):
        errors = {"cwd": ["must be an absolute path of an existing folder"]}
        raise Unprocessable(reason=f"cwd '{cwd}' is not an absolute path of an existing folder.", errors=errors)
    return cwd


def make_workspace(cwd: str) -> None:
    """The empty folder of a session that named none."""
    Path(cwd).mkdir(mode=0o700, parents=True)


def agent_spec(
    session_id: str, agent: str, spec: SessionSpec, *, home: str, start: int = 1, resume: str | None = None
) -> AgentSpec:
    """What a runner gets to start the agent of a session, or to say that it could never start."""
    return AgentSpec(
        session_id=session_id,
        agent=agent,
        start=start,
        cwd=spec.cwd,
        home=home,
        env=spec.env,
        permission_mode=spec.permission_mode,
        model=spec.model,
        variant=spec.variant,
        mode=spec.mode,
        resume=resume,
        turn_timeout_seconds=spec.turn_timeout_seconds,
        provider=spec.provider,
        mcp_servers=spec.mcp_servers,
    )


def first_events(new: NewSession, wanted: CreateSession) -> list[Draft]:
    """How every log begins."""
    metadata = {
        name: value
        for name in ("agent", "model", "variant", "mode", "permission_mode")
        if (value := getattr(wanted, name)) is not None
    }
    events = [drafts.started({**metadata, "key": new.key, "cwd": new.spec.cwd})]
    if wanted.title is not None or wanted.labels:
        events.append(drafts.info(title=wanted.title, labels=wanted.labels or None))
    return [*events, drafts.status("provisioning"), drafts.status("running")]


def _check_env(env: dict[str, str]) -> None:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            errors = {f"env.{name}": ["is not a possible variable"]}
            raise InvalidRequest(reason=f"env has a variable '{name}' that no process can have.", errors=errors)
