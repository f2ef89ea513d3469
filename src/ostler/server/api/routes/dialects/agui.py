"""AG-UI at /agui: one request is one run."""

import functools
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, post
from litestar.params import Parameter

from ostler.base.errors import InvalidRequest
from ostler.base.ids import is_key
from ostler.server.api.accept import SSE
from ostler.server.api.described import answer
from ostler.server.api.edge.idempotency import RECEIPT_HEADER
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.services import Services
from ostler.server.api.streams.sse import EventStream
from ostler.server.dialects.agui.bodies import RunAgentInput, forwarded
from ostler.server.dialects.agui.runs import RunRefused, RunStream, ShortStream, begin_run
from ostler.server.runners.placement import agent_anywhere


@post(
    "/agui",
    operation_id="agui.run",
    tags=["agui"],
    status_code=200,
    role="operator",
    answers={"200": answer("The run as it happens.", {SSE: "AguiEvent"})},
)
async def run_agent(
    services: Services,
    project: str,
    request: Request[Any, Any, Any],
    data: RunAgentInput,
    agent: Annotated[str | None, Parameter(description="The agent of a new thread.")] = None,
) -> Response[Any]:
    """Send the last message, or answers to interrupts, and stream what the agent does."""
    if not is_key(data.thread_id):
        reason = "must be 1 to 128 of the characters A-Z a-z 0-9 . _ : -"
        raise InvalidRequest(reason=f"threadId '{data.thread_id[:150]}' {reason}.", errors={"threadId": [reason]})
    services.counters.streams.admit(client_of(request.scope))
    headers = {RECEIPT_HEADER.decode(): msgspec.json.encode({"runId": data.run_id}).decode()}
    chosen = functools.partial(_agent, services, agent or forwarded(data.forwarded_props).agent)
    try:
        run = await begin_run(services.sessions, project, data, chosen)
    except RunRefused as refused:
        return EventStream(ShortStream(refused), None, services, headers=headers)
    stream = RunStream(services.sessions, run, data, services.settings.heartbeat_seconds)
    return EventStream(stream, run.session.tail, services, headers=headers)


async def _agent(services: Services, named: str | None, current: str | None) -> str:
    """The agent that the address or `forwardedProps` names, or the thread's, or the server's default one."""
    if named is None and current is not None:
        return current
    return (await agent_anywhere(services.runners, named or services.default_agent)).id


HANDLERS = (run_agent,)
