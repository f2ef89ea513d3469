"""Comments on the files of a session, which its agent gets as one prompt."""

from litestar import delete, get, patch, post

from ostler.server.api.services import Services
from ostler.server.tasks.review import Review
from ostler.wire.delivery import AddComment, ChangeComment, CommentList, CommentView, SendComments
from ostler.wire.sessions import PromptReceipt

_TAGS = ["review"]


async def _review(services: Services, project: str, session: str) -> Review:
    return Review(await services.sessions.registry.live(project, session), services.runners)


@get("/sessions/{session:str}/comments", operation_id="comments.list", tags=_TAGS, role="viewer")
async def list_comments(session: str, services: Services, project: str) -> CommentList:
    """The comments on its files, with the numbers that their lines have now."""
    return CommentList(comments=await (await _review(services, project, session)).list())


@post("/sessions/{session:str}/comments", operation_id="comments.add", tags=_TAGS, role="operator")
async def add_comment(session: str, services: Services, project: str, data: AddComment) -> CommentView:
    """Comment on lines of a file; the agent hears of it when the comments are sent."""
    return await (await _review(services, project, session)).add(data)


@patch("/sessions/{session:str}/comments/{comment:str}", operation_id="comments.change", tags=_TAGS, role="operator")
async def change_comment(
    session: str, comment: str, services: Services, project: str, data: ChangeComment
) -> CommentView:
    """Let a comment that was not sent yet say something else."""
    return await (await _review(services, project, session)).change(comment, data.text)


@delete("/sessions/{session:str}/comments/{comment:str}", operation_id="comments.remove", tags=_TAGS, role="operator")
async def remove_comment(session: str, comment: str, services: Services, project: str) -> None:
    """Forget a comment; what was sent stays in the conversation."""
    await (await _review(services, project, session)).remove(comment)


@post(
    "/sessions/{session:str}/comments/send",
    operation_id="comments.send",
    tags=_TAGS,
    status_code=202,
    role="operator",
)
async def send_comments(
    session: str, services: Services, project: str, data: SendComments | None = None
) -> PromptReceipt:
    """Send the comments to the agent as one prompt, each with its place and the lines it is about."""
    return await (await _review(services, project, session)).send(services.sessions, data or SendComments())


HANDLERS = (list_comments, add_comment, change_comment, remove_comment, send_comments)
