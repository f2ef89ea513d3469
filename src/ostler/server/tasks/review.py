"""Comments on the files of a session: kept in its log, and sent to its agent as one prompt with exact places."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from ostler.base.errors import InvalidRequest, OstlerError
from ostler.base.errors.delivery import CommentNotFound, CommentRefused
from ostler.base.ids import new_id
from ostler.server.runners.registry import Runners
from ostler.server.sessions import drafts
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.folds import drafts_of
from ostler.server.sessions.service import Sessions
from ostler.server.store.acting import acting, deed, next_claim, repeat_claims
from ostler.server.tasks import folders
from ostler.server.tasks.anchors import Lines, Quote
from ostler.server.tasks.states import NOW, workspace_of
from ostler.wire.delivery import AddComment, CommentView, SendComments
from ostler.wire.running import Draft
from ostler.wire.sessions import PromptReceipt, SendMessage
from ostler.wire.workspace_events import Comment, CommentSide

_MOST_DRAFTS = 100
_MOST_LINES = 100
_MOST_BYTES = 4 * 2**20
"""Of a file whose lines are looked at."""
_CONTEXT = 3
_GONE = Lines({})
"""Those of a file that is not there any longer."""


class Review:
    """The comments of one session."""

    def __init__(self, live: LiveSession, runners: Runners) -> None:
        self._live = live
        self._session = live.core
        self._runners = runners

    async def add(self, wanted: AddComment) -> CommentView:
        """Keep a comment, with the lines it is about."""
        self._session.refuse_if_over("comments")
        _check_text(wanted.text)
        comment = await self._placed(wanted)
        # no pause since this is counted, so nobody adds one between
        if len(drafts_of(self._session.state.comments)) >= _MOST_DRAFTS:
            raise CommentRefused(reason=f"{_MOST_DRAFTS} comments wait to be sent. Send or remove some first.")
        await self._write(comment)
        return _view(comment)

    async def change(self, comment_id: str, text: str) -> CommentView:
        """Let a comment that was not sent yet say something else."""
        self._session.refuse_if_over("comments")
        _check_text(text)
        comment = replace(self._draft(comment_id), text=text)
        await self._write(comment)
        return (await self._shown([comment]))[0]

    async def remove(self, comment_id: str) -> None:
        """Forget a comment; what was sent stays in the conversation."""
        self._session.refuse_if_over("comments")
        await self._session.write(drafts.comment(self._found(comment_id), removed=True))

    async def list(self) -> tuple[CommentView, ...]:
        """All comments, where their lines are now."""
        return await self._shown(self._session.shown.comments)

    async def send(self, sessions: Sessions, wanted: SendComments) -> PromptReceipt:
        """Send comments to the agent as one prompt; they are marked as sent together with it."""
        if (known := await sessions.reads.outcome_of(next_claim())) is not None:  # the comments are sent since
            return PromptReceipt(**msgspec.json.decode(known))
        repeat_claims()
        chosen = drafts_of(self._session.state.comments)
        if wanted.comments is not None:
            chosen = tuple(self._draft(comment_id) for comment_id in dict.fromkeys(wanted.comments))
        if not chosen:
            raise CommentRefused(reason="No comment waits to be sent. Add one first.")
        text = prompt_of(await self._shown(chosen), wanted.message)

        def marked(prompt_id: str) -> Sequence[Draft]:
            if not set(chosen) <= set(self._session.state.comments):
                raise CommentRefused(reason="Comments were sent, changed or removed meanwhile. Look at them again.")
            return deed(*(drafts.comment(replace(comment, prompt_id=prompt_id)) for comment in chosen))

        return await sessions.send(self._live, SendMessage(message=text, when_busy=wanted.when_busy), beside=marked)

    def _found(self, comment_id: str) -> Comment:
        for comment in self._session.state.comments:
            if comment.comment_id == comment_id:
                return comment
        raise CommentNotFound(session=self._session.id, comment=comment_id)

    def _draft(self, comment_id: str) -> Comment:
        comment = self._found(comment_id)
        if comment.prompt_id is not None:
            raise CommentRefused(reason=f"Comment '{comment_id}' was sent already. Add another one.")
        return comment

    async def _write(self, comment: Comment) -> None:
        await self._session.write(drafts.comment(comment))

    async def _placed(self, wanted: AddComment) -> Comment:
        start, end = _span(wanted)
        path = await folders.named_by(self._session, self._runners.workspaces(self._session.record.runner), wanted.path)
        lines = await self._lines(path, wanted.side, wanted.old)
        comment = Comment(
            comment_id=new_id("cmt"),
            path=path,
            text=wanted.text,
            created_at=self._session.now(),
            side=wanted.side,
            base=wanted.old,
            author=acting(),
        )
        if start is None or end is None:
            return comment
        if wanted.quote is not None:
            start = lines.place_of_seen(wanted.quote, start) or 0
            end = start + len(wanted.quote) - 1
        quote = lines.quoted(start, end)
        if len(quote.lines) < end - start + 1 or not start:
            raise _no_such_lines(wanted, path, lines)
        return replace(
            comment, start_line=start, end_line=end, quote=quote.lines, before=quote.before, after=quote.after
        )

    async def _lines(self, path: str, side: CommentSide, base: str) -> Lines:
        files = self._runners.workspaces(self._session.record.runner).files
        if side == "new":
            content = await files.read(folders.place_of(self._session), path, offset=0, length=_MOST_BYTES)
            text, is_cut = content.data.decode(errors="replace"), content.size > len(content.data)
            return await asyncio.to_thread(Lines.of_file, text, is_cut=is_cut)
        workspace = workspace_of(self._session)
        found = await files.diff(workspace, old=base, new=NOW, context=_CONTEXT, text=True)
        diff = next((file.diff for file in found.files if path in {file.path, file.old_path}), "")
        return await asyncio.to_thread(Lines.of_old_side, diff)

    async def _shown(self, comments: Iterable[Comment]) -> tuple[CommentView, ...]:
        known: dict[tuple[str, CommentSide, str], Lines | None] = {}
        shown = []
        for comment in comments:
            key = (comment.path, comment.side, comment.base)
            if key not in known:
                known[key] = await self._lines_if_any(*key)
            shown.append(await asyncio.to_thread(_seen_in, known[key], comment))
        return tuple(shown)

    async def _lines_if_any(self, path: str, side: CommentSide, base: str) -> Lines | None:
        """The lines of a file; None if nobody can tell, because the files cannot be reached."""
        try:
            return await self._lines(path, side, base)
        except OstlerError as error:
            return _GONE if error.code == "file_not_found" else None


def _seen_in(lines: Lines | None, comment: Comment) -> CommentView:
    """A comment with the place of its lines now."""
    if lines is None or comment.start_line is None:
        return _view(comment, outdated=lines is _GONE)
    start = lines.place_of(Quote(comment.quote, comment.before, comment.after), comment.start_line)
    if start is None:
        return _view(comment, outdated=True)
    return _view(replace(comment, start_line=start, end_line=start + len(comment.quote) - 1))


def _view(comment: Comment, *, outdated: bool = False) -> CommentView:
    return CommentView(
        id=comment.comment_id,
        path=comment.path,
        text=comment.text,
        state="draft" if comment.prompt_id is None else "sent",
        created_at=comment.created_at,
        side=comment.side,
        base=comment.base,
        start_line=comment.start_line,
        end_line=comment.end_line,
        quote=comment.quote,
        outdated=outdated,
        author=comment.author,
        prompt_id=comment.prompt_id,
    )


def _check_text(text: str) -> None:
    if not text.strip():
        raise InvalidRequest(reason="text: must not be empty.", errors={"text": ["must not be empty"]})


def _span(wanted: AddComment) -> tuple[int | None, int | None]:
    """The first and the last line that are meant; none for the whole file."""
    if wanted.start_line is None:
        if wanted.end_line is not None or wanted.quote is not None:
            raise CommentRefused(reason="startLine: say where the lines begin, or leave endLine and quote out.")
        return None, None
    end = wanted.end_line if wanted.end_line is not None else wanted.start_line + len(wanted.quote or ("",)) - 1
    if not wanted.start_line <= end < wanted.start_line + _MOST_LINES:
        reason = f"endLine: {end} must be from startLine ({wanted.start_line}) to {_MOST_LINES - 1} lines after it."
        raise CommentRefused(reason=reason)
    if wanted.quote is not None and len(wanted.quote) != end - wanted.start_line + 1:
        reason = f"quote: has {len(wanted.quote)} lines, and startLine to endLine are {end - wanted.start_line + 1}."
        raise CommentRefused(reason=reason)
    return wanted.start_line, end


def _no_such_lines(wanted: AddComment, path: str, lines: Lines) -> CommentRefused:
    if wanted.quote is not None:
        return CommentRefused(reason=f"quote: {path} does not have these lines any longer. Look at the changes again.")
    if wanted.side == "old":
        reason = f"startLine: the changes of {path} do not show line {wanted.start_line} as it was."
    elif lines.is_cut:
        reason = f"startLine: {path} is large; only its first {lines.last} lines can be commented on."
    else:
        reason = f"startLine: {path} ends with line {lines.last}."
    return CommentRefused(reason=reason)


def prompt_of(comments: Sequence[CommentView], message: str | None) -> str:
    """What the agent is told: every comment with its place and the lines it is about."""
    count = "A comment" if len(comments) == 1 else f"{len(comments)} comments"
    head = f"{count} on your changes. Answer each point; say so if you disagree."
    first = [message.strip()] if message is not None and message.strip() else []
    return "\n\n".join([*first, head, *(_paragraph(comment) for comment in comments)])


def _paragraph(comment: CommentView) -> str:
    parts = [f"### {_place(comment)}", *([_fenced(comment)] if comment.quote else []), comment.text.strip()]
    return "\n\n".join(parts)


def _place(comment: CommentView) -> str:
    if comment.start_line is None:
        return comment.path
    is_one = comment.start_line == comment.end_line
    numbers = f"{comment.start_line}" if is_one else f"{comment.start_line}-{comment.end_line}"
    if comment.side == "old":
        return f"{comment.path} (removed line{'' if is_one else 's'} {numbers})"
    return f"{comment.path}:{numbers}" + (" (changed since)" if comment.outdated else "")


def _fenced(comment: CommentView) -> str:
    fence = "```"
    while any(fence in line for line in comment.quote):
        fence += "`"
    language = PurePosixPath(comment.path).suffix.removeprefix(".")
    return "\n".join([f"{fence}{language}", *comment.quote, fence])
