"""Conversations that agents' own programs have on the server's machine."""

from litestar import Response, get, post

from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import live_view
from ostler.server.tasks.imports import importable, take_over
from ostler.wire.agents import ConversationList, ImportConversation
from ostler.wire.sessions import Session

_TAGS = ["sessions"]


@get("/imports", operation_id="sessions.importable", tags=_TAGS, role="admin", reach="server")
async def list_importable(services: Services, project: str) -> ConversationList:
    """What agents' own programs were asked on the server's machine, in the home folder of its user; newest first."""
    return ConversationList(items=tuple(await importable(services.sessions, services.runners, project)))


@post(
    "/imports",
    operation_id="sessions.bring",
    tags=_TAGS,
    role="admin",
    reach="server",
    answers={
        "200": answer("A session goes on with it already.", {JSON: "Session"}),
        "201": answer("The new session.", {JSON: "Session"}, ("Location", "Where the session is.")),
    },
)
async def bring_conversation(services: Services, project: str, data: ImportConversation) -> Response[Session]:
    """Go on with such a conversation in a session: in its folder, with what was said, and with the agent's memory."""
    live, is_new = await take_over(services.sessions, services.runners, project, data)
    view = live_view(live)
    return Response(view, status_code=201 if is_new else 200, headers={"location": view.links["self"]})


HANDLERS = (list_importable, bring_conversation)
