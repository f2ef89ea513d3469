"""A task in the words of sessions: what is created, what is remembered, and what is refused."""

import msgspec
from msgspec.structs import replace

from ostler.base import signing
from ostler.base.errors import InvalidRequest, Unprocessable, VersionNotOffered
from ostler.base.signing import new_secret
from ostler.server.tasks.delivery_plan import check_words
from ostler.wire.agents import Agent
from ostler.wire.sessions import CreateSession, TurnLimits
from ostler.wire.tasks import CreateTask, TaskSpec, TaskWebhookSecret
from ostler.wire.workspaces import Deliver, WorkspaceWish

_LATEST = "latest"


def session_of(task: CreateTask, agent: Agent) -> CreateSession:
    """The session that works on a task."""
    _check_prompt(task.prompt or "")
    _check_version(task.worker.version, agent)
    _check_webhooks(task)
    settings = task.worker.settings
    if settings.max_tokens is not None and "maxTokens" not in agent.limits:
        field, reason = "agent.settings.maxTokens", f"has no effect on agent '{agent.id}'"
        hint = "Leave it out, or choose an agent that has it among its limits (`ostler agents get NAME`)."
        raise Unprocessable(reason=f"{field} {reason}. {hint}", errors={field: [reason]})
    return CreateSession(
        agent=agent.id,
        title=task.title,
        model=settings.model,
        variant=settings.variant,
        mode=settings.mode,
        instructions=settings.instructions,
        limits=TurnLimits(max_tokens=settings.max_tokens),
        permission_mode=settings.permission_mode,
        permission_rules=settings.permission_rules,
        env=settings.env,
        labels=task.labels,
        provider=settings.provider,
        mcp_servers=settings.mcp_servers,
        code_tools=settings.code_tools,
        turn_timeout_seconds=settings.turn_timeout_seconds,
        repo=task.repo,
        runtime=task.runtime,
        workspace=WorkspaceWish(
            snapshot_preference=task.workspace.snapshot_preference, execution_host_id=task.workspace.execution_host_id
        ),
        setup=task.workspace.setup,
    )


def spec_of(task: CreateTask) -> TaskSpec:
    """What is remembered of a task beside its session."""
    return TaskSpec(
        prompt=task.prompt or "",
        delivery=_delivery(task),
        keep_open=task.keep_open,
        webhooks=task.webhooks,
        tenant_id=task.tenant_id,
        project_id=task.project_id,
        agent_version=task.worker.version,
    )


def signed(task: CreateTask) -> tuple[CreateTask, tuple[TaskWebhookSecret, ...]]:
    """The task with a secret for each webhook that has none, and those that were made for that."""
    webhooks = [
        webhook if webhook.secret is not None else replace(webhook, secret=new_secret()) for webhook in task.webhooks
    ]
    made = tuple(
        TaskWebhookSecret(event=webhook.event, url=webhook.url, secret=webhook.secret or "")
        for webhook, given in zip(webhooks, task.webhooks, strict=True)
        if webhook is not given
    )
    return replace(task, webhooks=tuple(webhooks)), made


def _delivery(task: CreateTask) -> Deliver | None:
    if task.delivery is None:
        return None
    check_words(task.delivery, "delivery.")
    if task.delivery.mode != "patch" and task.repo.mode != "git":
        reason = f"'{task.delivery.mode}' needs repo.mode=git; 'patch' works for all"
        raise InvalidRequest(reason=f"delivery.mode: {reason}.", errors={"delivery.mode": [reason]})
    return msgspec.convert(task.delivery, Deliver, from_attributes=True)


def _check_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise InvalidRequest(reason="prompt is empty. Say what the agent should do.", errors={"prompt": ["is empty"]})


def _check_webhooks(task: CreateTask) -> None:
    for number, webhook in enumerate(task.webhooks):
        if not webhook.url.startswith(("http://", "https://")):
            errors = {f"webhooks[{number}].url": ["must begin with http:// or https://"]}
            raise InvalidRequest(reason=f"webhooks[{number}].url is not an address.", errors=errors)
        try:
            signing.key(webhook.secret)
        except ValueError as error:
            field = f"webhooks[{number}].secret"
            raise InvalidRequest(reason=f"{field} {error}.", errors={field: [str(error)]}) from error


def _check_version(wanted: str | None, agent: Agent) -> None:
    if wanted not in {None, _LATEST, *agent.versions}:
        installed = ", ".join(agent.versions) or "none"
        errors = {"agent.version": [f"is not one of latest, {installed}"]}
        raise VersionNotOffered(agent=agent.id, version=wanted, installed=installed, errors=errors)
