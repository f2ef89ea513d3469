"""Logging agents in."""

import asyncio
from contextlib import suppress

import msgspec
from litestar import Response, delete, get, post

from ostler.base.clock import later
from ostler.base.errors import OstlerError, Unprocessable
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope
from ostler.server.runners import agents as runner_agents
from ostler.wire.agents import AgentLogin, AnswerLogin, LoginOrder, RunningLogin, StartLogin

_TAGS = ["agents"]
_UNDER_WAY = frozenset({"starting", "waiting"})
_LOOK_SECONDS = 1.0
"""Between two looks at a login under way."""
_GIVEN_UP_SECONDS = 60.0
"""After its end, when nothing is heard of it."""


@get("/agents/{agent:str}/login", operation_id="agents.login-state", tags=_TAGS, role="viewer")
async def login_state(agent: str, services: Services, caller: Scope) -> AgentLogin:
    """Whether an agent is logged in, how that is known, what can be done, and the login under way."""
    found = await runner_agents.log_in(services.runners, agent, LoginOrder(verb="look"))
    may_log_in = "admin" in caller.roles and caller.reach == "server"
    return found if may_log_in else _without_secrets(found)


@post(
    "/agents/{agent:str}/login", operation_id="agents.login", tags=_TAGS, status_code=200, role="admin", reach="server"
)
async def log_in(agent: str, services: Services, caller: Scope, data: StartLogin) -> Response[AgentLogin]:
    """Log an agent in: with a key, with what is on the runner's machine, or by the agent's own login."""
    if (data.method == "key") != (data.key is not None):
        reason = "is needed by the method 'key', and only by it"
        raise Unprocessable(reason=f"key: {reason}.", errors={"key": [reason]})
    order = LoginOrder(verb="start", method=data.method, key=data.key, variable=data.variable, way=data.way)
    found = await runner_agents.log_in(services.runners, agent, order)
    if found.running is not None and found.running.step in _UNDER_WAY:
        services.background.spawn(_note_end(services, caller, found.agent, found.running))
    return _unrecorded(found)


async def _note_end(services: Services, caller: Scope, agent: str, begun: RunningLogin) -> None:
    """Write into the audit log what becomes of an agent's own login, which others may finish."""
    now = begun
    while now.step in _UNDER_WAY:
        await asyncio.sleep(_LOOK_SECONDS)
        with suppress(OstlerError):  # a runner that is away may be back; the login is given up after its time
            found = await runner_agents.log_in(services.runners, agent, LoginOrder(verb="look"))
            if found.running is None or found.running.started_at != begun.started_at:
                return
            now = found.running
        if now.step in _UNDER_WAY and services.clock.now() > later(begun.ends_at, _GIVEN_UP_SECONDS):
            return
    await services.audit.written(
        services.audit.line(
            tenant=caller.tenant,
            project=caller.project,
            actor=caller.actor,
            action="agents.login-ended",
            outcome="done" if now.step == "succeeded" else "failed",
            status=0,
            target=f"{agent} {now.step}",
        )
    )


@post(
    "/agents/{agent:str}/login/answer",
    operation_id="agents.login-answer",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def answer_login(agent: str, services: Services, data: AnswerLogin) -> Response[AgentLogin]:
    """Give the login under way what it asks for, such as the code that a page has shown."""
    return _unrecorded(await runner_agents.log_in(services.runners, agent, LoginOrder(verb="answer", code=data.code)))


@post(
    "/agents/{agent:str}/login/cancel",
    operation_id="agents.login-cancel",
    tags=_TAGS,
    status_code=200,
    role="admin",
    reach="server",
)
async def cancel_login(agent: str, services: Services) -> AgentLogin:
    """End the login under way; what the agent was logged in with before stays."""
    return await runner_agents.log_in(services.runners, agent, LoginOrder(verb="cancel"))


@delete("/agents/{agent:str}/login", operation_id="agents.logout", tags=_TAGS, role="admin", reach="server")
async def log_out(agent: str, services: Services) -> None:
    """Forget what an agent logs in with here; what is on the runner's machine itself stays there."""
    await runner_agents.log_in(services.runners, agent, LoginOrder(verb="log_out"))


def _unrecorded(found: AgentLogin) -> Response[AgentLogin]:
    """An answer of which only what is no secret is remembered for repetitions of the request."""
    receipt = msgspec.json.encode(_without_secrets(found)).decode()
    return Response(found, headers={RECEIPT_HEADER.decode(): receipt})


def _without_secrets(found: AgentLogin) -> AgentLogin:
    """What those may see who may not log in: an address can hold a token."""
    if found.running is None:
        return found
    running = msgspec.structs.replace(found.running, url=None, code=None, message=None)
    return msgspec.structs.replace(found, running=running)


HANDLERS = (login_state, log_in, answer_login, cancel_login, log_out)
