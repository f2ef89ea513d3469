"""What a new session is made of: checks of the request, and the first events of its log."""

from pathlib import PurePosixPath

import msgspec

from ostler.base.errors import InvalidRequest, Unprocessable
from ostler.base.ids import is_key, new_id
from ostler.server.sessions import drafts
from ostler.server.sessions.admission import (
    Admission,
    check_choices,
    check_client_tools,
    check_code_tools,
    check_credential,
    check_labels,
    check_ranges,
    check_rules,
    check_servers,
)
from ostler.server.sessions.secrets import keep_secret
from ostler.server.store.acting import acting, current_trace
from ostler.server.store.records import NewSession, SessionSpec
from ostler.wire.events import PermissionMode
from ostler.wire.grants import Grant
from ostler.wire.items import QueueEntry
from ostler.wire.parts import TextPart
from ostler.wire.providers import Provider
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.runners import Needs
from ostler.wire.running import AgentSpec, Draft
from ostler.wire.sessions import MOST_INSTRUCTIONS, CreateSession
from ostler.wire.tasks import TaskProvider, TaskRuntime, TaskSpec
from ostler.wire.workspace_events import WorkspaceCreatedData
from ostler.wire.workspaces import IN_PLACE, Repo, Runtime, WorkspaceWish

BRANCH = ":fork-"
"""What stands in the key of a branch between the key of its first session and a number."""
_FAMILY_LENGTH = 100
"""The key of a branch has at least so much of the other one."""


def new_session(
    project: str,
    wanted: CreateSession,
    *,
    tenant: str,
    created_at: str,
    task: TaskSpec | None = None,
    default_instructions: str = "",
    admission: Admission,
) -> NewSession:
    """Check a request and give the session it asks for."""
    session_id = new_id("ses")
    admission.check_env(wanted.env)
    check_choices(wanted)
    check_ranges(wanted)
    check_servers(wanted.mcp_servers)
    check_client_tools(wanted.client_tools)
    check_code_tools(wanted.code_tools, wanted.client_tools)
    check_rules(wanted.permission_mode, wanted.permission_rules)
    check_labels(wanted.labels)
    check_credential("repo.credential", wanted.repo.credential if wanted.repo is not None else None)
    if wanted.instructions is None:
        wanted = msgspec.structs.replace(wanted, instructions=default_instructions)
    spec = _spec_of(tenant, project, wanted, task)
    keep_secret(spec)
    return NewSession(
        id=session_id,
        project=project,
        key=checked_key(wanted.key) or session_id,
        agent=wanted.agent,
        created_at=created_at,
        spec=spec,
        runner=None,
    )


def family_of(key: str) -> str:
    """How the keys of a session and of all branches of it begin; others may begin so too."""
    return key.partition(BRANCH)[0][:_FAMILY_LENGTH]


def checked_key(key: str | None) -> str | None:
    """A key that a client chose, or None."""
    if key is not None and not is_key(key):
        reason = "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - and not '.' or '..'"
        raise InvalidRequest(reason=f"key '{key[:150]}' {reason}.", errors={"key": [reason]})
    return key


def granted(
    tenant: str, project: str, runtime: TaskRuntime | None = None, permission_mode: PermissionMode = "default"
) -> Grant:
    """What the caller's session or command may have: made here, and carried by every order that a runner gets."""
    return Grant(
        tenant=tenant, project=project, actor=acting(), runtime=_runtime(runtime), permission_mode=permission_mode
    )


def _spec_of(tenant: str, project: str, wanted: CreateSession, task: TaskSpec | None) -> SessionSpec:
    whose = (task.tenant_id if task is not None else None) or tenant
    grant = granted(whose, project, wanted.runtime if wanted.repo is not None else None, wanted.permission_mode)
    return SessionSpec(
        grant=grant,
        cwd=_cwd(wanted),
        env=wanted.env,
        permission_mode=wanted.permission_mode,
        permission_rules=wanted.permission_rules,
        model=wanted.model,
        variant=wanted.variant,
        mode=wanted.mode,
        instructions=_checked_text("instructions", wanted.instructions) or None,
        system_prompt=_checked_system_prompt(wanted.system_prompt),
        limits=wanted.limits,
        temperature=wanted.temperature,
        tools=wanted.tools,
        client_tools=wanted.client_tools,
        code_tools=wanted.code_tools,
        turn_timeout_seconds=wanted.turn_timeout_seconds,
        provider=checked_provider(wanted.provider),
        mcp_servers=wanted.mcp_servers,
        workspace=_workspace_order(grant, wanted),
        task=task,
        needs=_needs(wanted),
    )


def _needs(wanted: CreateSession) -> Needs | None:
    """What its runner must be, if anything is said."""
    needs = Needs(
        labels=wanted.runtime.labels if wanted.runtime is not None else {},
        host=wanted.workspace.execution_host_id if wanted.workspace is not None else None,
    )
    return needs if needs != Needs() else None


def _workspace_order(grant: Grant, wanted: CreateSession) -> WorkspaceOrder | None:
    if wanted.repo is None:
        runtime = TaskRuntime(labels=wanted.runtime.labels) if wanted.runtime and wanted.runtime.labels else None
        host = wanted.workspace.execution_host_id if wanted.workspace is not None else None
        alone = {"runtime": runtime, "workspace": WorkspaceWish(execution_host_id=host) if host else None}
        for name in ("runtime", "workspace", "setup"):
            if getattr(wanted, name) not in (None, alone.get(name)):
                errors = {name: ["needs repo"]}
                raise InvalidRequest(reason=f"{name} is for a workspace; give repo as well.", errors=errors)
        return None
    if wanted.cwd is not None:
        errors = {"cwd": ["cannot be combined with repo"]}
        raise InvalidRequest(reason="cwd and repo exclude each other: give one of them.", errors=errors)
    wish = wanted.workspace
    return WorkspaceOrder(
        repo=_checked_repo(wanted.repo),
        runtime=grant.runtime,
        providers=wish.snapshot_preference if wish else (),
        setup=wanted.setup,
        scope=grant.project,
        grant=grant,
    )


def in_checkout(spec: SessionSpec) -> WorkspaceOrder:
    """The order for a session whose folder turned out to be a git checkout."""
    grant = spec.grant
    repo = Repo(mode="checkout", path=spec.cwd)
    return WorkspaceOrder(repo=repo, runtime=grant.runtime, scope=grant.project, grant=grant)


_NEEDED = {"git": "url", "upload": "upload", "folder": "path", "checkout": "path"}


def _checked_repo(repo: Repo) -> Repo:
    needed = _NEEDED.get(repo.mode)
    if needed is not None and not getattr(repo, needed):
        errors = {f"repo.{needed}": ["is required"]}
        raise InvalidRequest(reason=f"repo.{needed} must be provided when repo.mode={repo.mode}", errors=errors)
    return repo


def checked_provider(provider: TaskProvider | None) -> Provider | None:
    """The model provider that a client names, if it does."""
    if provider is None:
        return None
    if not provider.base_url.startswith(("http://", "https://")):
        errors = {"provider.baseUrl": ["must begin with http:// or https://"]}
        raise InvalidRequest(reason=f"provider.baseUrl '{provider.base_url}' is not an address.", errors=errors)
    return msgspec.convert(provider, Provider, from_attributes=True)


def _runtime(given: TaskRuntime | None) -> Runtime:
    return Runtime() if given is None else msgspec.convert(given, Runtime, from_attributes=True)


def _checked_text(field: str, text: str | None) -> str | None:
    if (size := len((text or "").encode())) > MOST_INSTRUCTIONS:
        reason = f"must not be longer than {MOST_INSTRUCTIONS} bytes"
        hint = "Put the rest into a file of the workspace."
        raise InvalidRequest(reason=f"{field} {reason}, not {size}. {hint}", errors={field: [reason]})
    return text


def _checked_system_prompt(text: str | None) -> str | None:
    if text is not None and not text.strip():
        reason = "must say something"
        hint = "Leave it out for the agent's own."
        raise InvalidRequest(reason=f"systemPrompt {reason}. {hint}", errors={"systemPrompt": [reason]})
    return _checked_text("systemPrompt", text)


def _cwd(wanted: CreateSession) -> str:
    """The folder that a client names, if it does; else its runner says where."""
    if wanted.repo is not None and wanted.repo.mode == "checkout" and wanted.repo.path:
        return wanted.repo.path
    return _checked_cwd(wanted.cwd) if wanted.cwd is not None else ""


def _checked_cwd(cwd: str) -> str:
    if not PurePosixPath(cwd).is_absolute():
        errors = {"cwd": ["must be an absolute path of an existing folder"]}
        raise Unprocessable(reason=f"cwd '{cwd}' is not an absolute path of an existing folder.", errors=errors)
    return cwd


def agent_spec(
    session_id: str,
    agent: str,
    spec: SessionSpec,
    *,
    start: int = 1,
    resume: str | None = None,
    workspace: WorkspaceCreatedData | None = None,
) -> AgentSpec:
    """What a runner gets to start the agent of a session, or to say that it could never start."""
    return AgentSpec(
        session_id=session_id,
        agent=agent,
        start=start,
        cwd=workspace.path if workspace is not None and workspace.provider != IN_PLACE else spec.cwd,
        env=spec.env,
        permission_mode=spec.permission_mode,
        model=spec.model,
        variant=spec.variant,
        mode=spec.mode,
        instructions=spec.instructions,
        system_prompt=spec.system_prompt,
        limits=spec.limits,
        temperature=spec.temperature,
        tools=spec.tools,
        client_tools=spec.client_tools,
        code_tools=spec.code_tools,
        resume=resume,
        turn_timeout_seconds=spec.turn_timeout_seconds,
        provider=spec.provider,
        mcp_servers=spec.mcp_servers,
        workspace=workspace.workspace_id if workspace is not None else None,
        grant=msgspec.structs.replace(spec.grant, permission_mode=spec.permission_mode),
    )


def first_events(new: NewSession, wanted: CreateSession, waits_for: str) -> list[Draft]:
    """How every log begins; one that is on no runner yet says what it waits for."""
    metadata = {
        name: value
        for name in ("model", "variant", "mode", "permission_mode")
        if (value := getattr(wanted, name)) is not None
    }
    waits = [drafts.on_runner(waits_for, "queued")] if new.runner is None else []
    order = new.spec.workspace
    where = {"cwd": new.spec.cwd} if order is None or order.repo.mode == "checkout" else {"repo": order.repo.mode}
    events = [drafts.started({"agent": new.agent, **metadata, "key": new.key, **where})]
    if wanted.title is not None or wanted.labels:
        events.append(drafts.info(title=wanted.title, title_chosen=True, labels=wanted.labels or None))
    if new.spec.workspace is None and new.runner is not None:
        return [*events, drafts.status("provisioning"), drafts.status("running")]
    if new.spec.task is not None:  # waits like any other prompt until the workspace is there
        parts = (TextPart(text=new.spec.task.prompt),)
        entry = QueueEntry(
            prompt_id=new_id("prm"),
            parts=parts,
            queued_at=new.created_at,
            actor=acting(),
            trace_id=current_trace(),
        )
        events.append(drafts.queue([entry]))
    return [*events, drafts.status("queued"), *waits]
