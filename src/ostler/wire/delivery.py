"""What people do with a result: comment on it, and hand it over."""

from typing import Annotated, Literal

import msgspec

from ostler.wire.struct import Answer, Body
from ostler.wire.tasks import Delivered
from ostler.wire.texts import NOT_BLANK, Branch, Line, Paragraphs, WebAddress
from ostler.wire.workspace_events import CommentSide
from ostler.wire.workspaces import DeliveryMode, ForgeKind, RepoCredential


class DeliverSession(Body, frozen=True, kw_only=True):
    """How to hand over what the workspace holds now; what is absent is as the plan of the delivery shows it."""

    mode: DeliveryMode | None = None
    """Without it, that of the last delivery, or else the best that is possible."""
    target: Branch | None = None
    """The branch that a pull request goes to; by default that of the remote."""
    branch: Branch | None = None
    """The branch that is pushed; by default the one that was pushed before, or one named after the session."""
    title: Line | None = None
    """Of the pull request and the commit. A pull request that is open already gets only what is given here anew."""
    body: Paragraphs | None = None
    """Of the pull request and the commit; by default what the agent said last."""
    message: Paragraphs | None = None
    """Of the commit, if that is another one."""
    draft: bool = False
    credential: RepoCredential | None = None
    """Kept with the session for the next time; without it, the one of the last time or of the repository."""
    forge: ForgeKind | None = None
    """Needed where the repository's host does not tell; kept with the session."""
    api_url: WebAddress | None = None
    """The forge's interface, if it is not at its usual place; kept with the session."""
    paths: Annotated[tuple[str, ...], msgspec.Meta(max_length=10_000)] | None = None
    """In a checkout of your own: only these files; by default those that the agent's tools named."""


class DeliveryAccess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session's deliveries enter the forge with, as somebody said it last."""

    credential: RepoCredential | None = None
    forge: ForgeKind | None = None
    api_url: str | None = None


class DeliveryWay(Answer, frozen=True, kw_only=True):
    """One way to hand the result over."""

    mode: DeliveryMode
    why_not: str | None = None
    """Why it cannot be done as it stands, and what to do about it."""


class DeliveryPlan(Answer, frozen=True, kw_only=True):
    """What a delivery would be if nothing else is said, and what the last one was."""

    mode: DeliveryMode
    ways: tuple[DeliveryWay, ...]
    branch: str
    title: str
    body: str
    files_changed: int
    added: int
    removed: int
    has_news: bool
    """Whether there is anything that was not handed over yet."""
    target: str | None = None
    branches: tuple[str, ...] = ()
    """Those of the remote that the result could go to."""
    behind: bool = False
    """Whether the target has moved on since the workspace was made."""
    repository: str | None = None
    folder: str | None = None
    """The local checkout or folder that the workspace was made from."""
    problem: str | None = None
    """Why the remote could not be asked for its branches."""
    delivery: Delivered | None = None
    """The last one."""
    paths: tuple[str, ...] | None = None
    """In a checkout of your own: the files that are handed over, since the agent's tools named them."""
    left: tuple[str, ...] = ()
    """Those that were changed during turns by commands of the agent, or by you; they stay out unless they are named."""


_CommentText = Annotated[str, msgspec.Meta(max_length=10_000, extra_json_schema={"pattern": NOT_BLANK})]
_Line = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class CommentView(Answer, frozen=True, kw_only=True):
    """A comment on lines of a file, with the numbers that these lines have now."""

    id: str
    path: str
    text: str
    state: Literal["draft", "sent"]
    created_at: str
    side: CommentSide = "new"
    base: str = "base"
    start_line: int | None = None
    end_line: int | None = None
    quote: tuple[str, ...] = ()
    outdated: bool = False
    """Whether the lines are not there any longer; the numbers are then those they had."""
    author: str | None = None
    prompt_id: str | None = None


class CommentList(Answer, frozen=True, kw_only=True):
    """The comments of a session, oldest first."""

    comments: tuple[CommentView, ...]


class AddComment(Body, frozen=True, kw_only=True):
    """A comment on lines of a file, or on the whole of it."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    text: _CommentText
    side: CommentSide = "new"
    start_line: _Line | None = None
    end_line: _Line | None = None
    """The last line; by default the first one."""
    quote: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] | None = None
    """The lines as you see them; if they have moved meanwhile, they are found by it."""
    old: Annotated[str, msgspec.Meta(max_length=100)] = "base"
    """The state that the files are compared with: `base` or the id of a snapshot."""


class ChangeComment(Body, frozen=True, kw_only=True):
    """What a comment shall say instead."""

    text: _CommentText


class SendComments(Body, frozen=True, kw_only=True):
    """Which comments go to the agent, as one prompt; all it does not know of by default."""

    message: Annotated[str, msgspec.Meta(max_length=100_000)] | None = None
    """What to say before them."""
    comments: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=100)] | None = None
    when_busy: Literal["queue", "interrupt", "reject"] = "queue"
