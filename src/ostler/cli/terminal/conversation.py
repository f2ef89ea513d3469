"""A session in the terminal: shows what happens, asks the person, and carries decisions back."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, assert_never

import click
import msgspec

from ostler.cli.output import json_line
from ostler.cli.terminal.dialog import Answered, Decision, Declined, Dialog, Permit, dialog_for
from ostler.cli.terminal.keyboard import typed_lines
from ostler.cli.terminal.own_commands import QUIT, for_agent, own_command
from ostler.cli.terminal.reader import on_reader_gone
from ostler.cli.terminal.render import Renderer
from ostler.cli.terminal.text import item_text
from ostler.cli.terminal.waiting import Waiting
from ostler.client import AsyncSession, ClientError, OstlerApiError, SessionEvent
from ostler.wire.events import (
    ItemCompleted,
    PermissionData,
    PermissionRequested,
    PermissionResolved,
    QuestionData,
    QuestionRequested,
    QuestionResolved,
)

OnAsk = Literal["ask", "allow", "reject"]
Asked = PermissionData | QuestionData
Watch = Callable[[SessionEvent], bool]
_SIGN = "> "


class ConversationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation behaves."""

    on_ask: OnAsk
    interactive: bool
    """Whether a person sits at the keyboard."""
    as_json: bool = False
    takes_messages: bool = False
    """Whether a line typed while nothing is asked is a prompt for the agent."""


class UserLeft(Exception):
    """The person left before the end."""


class Conversation:
    """One session, one terminal."""

    def __init__(
        self,
        session: AsyncSession,
        renderer: Renderer,
        options: ConversationOptions,
        waiting: Waiting | None = None,
        *,
        own: Sequence[str] = (),
    ) -> None:
        self._session = session
        self._waiting = waiting
        self._renderer = renderer
        self._options = options
        self._open: dict[str, Asked] = {}
        self._attended: set[str] = set()
        self._dialogs: dict[str, Dialog] = {}
        self._live_from = session.info.last_sequence
        """Asks of the past are not acted on: most were decided long ago."""
        self._working = session.info.turn_id is not None or bool(own)
        self._interrupting: asyncio.Task[bool] | None = None
        self._leaves_next = False
        """Whether the next Ctrl-C leaves."""
        self._own = list(own)
        """What was typed here and stands on the screen already."""
        self._is_unread = False
        """Whether nobody reads what is shown any longer."""
        self._is_ready = False
        """Whether the sign that invites to type is the last thing on the screen."""

    async def follow(self, offset: int, done: Watch) -> None:
        """Show events until one of them is the last of interest.

        Raises UserLeft when the person leaves, and BrokenPipeError when whoever reads the output does.
        """
        showing = asyncio.create_task(self._show(offset, done))
        telling = asyncio.create_task(self._waiting.show()) if self._waiting else None
        typing = asyncio.create_task(self._type(showing))
        with _on_interrupt(lambda: self._interrupted(showing)), on_reader_gone(lambda: self._unread(showing)):
            try:
                await showing
            except asyncio.CancelledError:
                raise (BrokenPipeError if self._is_unread else UserLeft) from None
            finally:
                if self._waiting is not None:
                    self._waiting.end()
                await _ended(typing, self._interrupting, telling)
                self._say("")

    async def _show(self, offset: int, done: Watch) -> None:
        if offset >= self._live_from:
            self._invite()
        async for event in self._session.events(offset=offset):
            self._write(event)
            self._note(event)
            if event.sequence >= self._live_from:
                await self._attend()
                self._invite()
            if done(event):
                return

    def _invite(self) -> None:
        """Show that a message can be typed; nothing else is at the beginning of a line of its own."""
        idle = self._options.takes_messages and self._options.interactive and not self._working
        if idle and not self._is_ready and not self._open and not self._options.as_json:
            self._say(_SIGN)
            self._is_ready = True

    def _take_back(self) -> str:
        """What removes the sign, before something else is shown."""
        shown, self._is_ready = self._is_ready, False
        return "\r\x1b[K" if shown else ""

    def _is_echo(self, event: SessionEvent) -> bool:
        """Whether it is what was typed here."""
        item = event.data.item if isinstance(event, ItemCompleted) else None
        if item is None or item.role != "user" or (text := item_text(item)) not in self._own:
            return False
        self._own.remove(text)
        return True

    def _write(self, event: SessionEvent) -> None:
        shown = "" if self._is_echo(event) else self._renderer.feed(event)
        if self._options.as_json:
            if isinstance(event, PermissionRequested | QuestionRequested):
                self._say(shown)
            shown = json_line(event) + "\n"
        if self._waiting is not None:
            self._waiting.note(event, is_shown=bool(shown))
        if shown:
            sys.stdout.write(self._take_back() + shown)
            sys.stdout.flush()

    def _say(self, text: str) -> None:
        """Speak to the person, out of the way of JSON."""
        stream = sys.stderr if self._options.as_json else sys.stdout
        stream.write(self._take_back() + self._renderer.close() + text)
        stream.flush()

    def _note(self, event: SessionEvent) -> None:
        match event:
            case PermissionRequested():
                self._open[event.data.permission_id] = event.data
            case QuestionRequested():
                self._open[event.data.question_id] = event.data
            case PermissionResolved():
                self._forget(event.data.permission_id)
            case QuestionResolved():
                self._forget(event.data.question_id)
            case _:
                self._note_turn(event.type)

    def _note_turn(self, kind: str) -> None:
        if kind in {"turn.started", "turn.ended"}:
            self._working = kind == "turn.started"
            self._leaves_next = False

    def _forget(self, ask_id: str) -> None:
        self._open.pop(ask_id, None)
        self._dialogs.pop(ask_id, None)

    async def _attend(self) -> None:
        for ask_id, ask in list(self._open.items()):
            if ask_id not in self._attended:
                self._attended.add(ask_id)
                await self._settle(ask_id, ask)

    async def _settle(self, ask_id: str, ask: Asked) -> None:
        match self._options.on_ask, ask:
            case "allow", PermissionData():
                await self._decide_alone(Permit(ask_id=ask_id, reply="once"))
            case "reject", PermissionData():
                await self._decide_alone(Permit(ask_id=ask_id, reply="reject", message="Nobody is here to allow it."))
            case "reject", QuestionData():
                await self._decide_alone(Declined(ask_id=ask_id))
            case _ if self._options.interactive:
                self._dialogs[ask_id] = dialog_for(ask)
                self._prompt()
            case _:
                self._say(_how_to_answer(self._session.id, ask))

    def _prompt(self) -> None:
        dialog = self._dialog()
        if dialog is not None:
            self._say(dialog.prompt())

    def _dialog(self) -> Dialog | None:
        return next(iter(self._dialogs.values()), None)

    async def _type(self, showing: "asyncio.Task[None]") -> None:
        if not self._options.interactive:
            return
        with typed_lines(sys.stdin.fileno()) as lines:
            while (line := await lines.get()) is not None:
                if self._options.takes_messages and line.strip() == QUIT:
                    break
                await self._heard(line)
        if self._options.takes_messages:
            showing.cancel()

    async def _heard(self, line: str) -> None:
        dialog = self._dialog()
        if dialog is None:
            self._is_ready = False
            if self._options.takes_messages and line.strip():
                await self._take_line(line)
            self._invite()
            return
        decision = dialog.feed(line)
        if decision is not None:
            self._dialogs.pop(dialog.ask_id, None)
            await self._decide(decision)
        self._prompt()

    async def _take_line(self, line: str) -> None:
        """A line that answers nothing: a command of ours, or a message."""
        if (answer := own_command(self._session, line)) is not None:
            await self._attempt(self._tell(answer))
            return
        message = for_agent(line)
        self._own.append(message)
        was_working, self._working = self._working, True
        if not await self._attempt(self._session.send(message)):
            self._own.remove(message)
            self._working = was_working

    async def _tell(self, answer: Awaitable[str]) -> None:
        self._say(await answer)

    async def _decide_alone(self, decision: Decision) -> None:
        """Without a person; who decided before us, such as the permission mode, is in the log."""
        try:
            await self._carry_back(decision)
        except ClientError as error:
            if not isinstance(error, OstlerApiError) or error.code != "ask_resolved":
                self._complain(error)

    async def _decide(self, decision: Decision) -> None:
        await self._attempt(self._carry_back(decision))

    def _carry_back(self, decision: Decision) -> Awaitable[object]:
        match decision:
            case Permit(ask_id=ask_id, reply=reply, message=message):
                return self._session.reply(ask_id, reply, message=message)
            case Answered(ask_id=ask_id, answers=answers):
                return self._session.answer(ask_id, answers)
            case Declined(ask_id=ask_id):
                return self._session.reject(ask_id)
            case _:
                assert_never(decision)

    async def _attempt(self, action: Awaitable[object]) -> bool:
        """Whether it went well; somebody else may have been quicker, which is no reason to stop watching."""
        try:
            await action
        except ClientError as error:
            self._complain(error)
            return False
        return True

    def _complain(self, error: ClientError) -> None:
        self._say(click.style(f"! {error}", fg="yellow") + "\n")

    def _unread(self, showing: "asyncio.Task[None]") -> None:
        self._is_unread = True
        showing.cancel()

    def _interrupted(self, showing: "asyncio.Task[None]") -> None:
        if self._leaves_next or not self._working:
            showing.cancel()
            return
        self._leaves_next = True
        self._say("Interrupting; press Ctrl-C again to leave.\n")
        self._interrupting = asyncio.create_task(self._attempt(self._session.interrupt()))


async def _ended(*tasks: "asyncio.Task[Any] | None") -> None:
    for task in filter(None, tasks):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def _on_interrupt(react: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, react)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _how_to_answer(session: str, ask: Asked) -> str:
    match ask:
        case PermissionData():
            return f"Waiting. Answer with `ostler asks permission {session} {ask.permission_id} once|always|reject`.\n"
        case QuestionData():
            return f"Waiting. Answer with `ostler asks answer {session} {ask.question_id} ANSWER...`.\n"
        case _:
            assert_never(ask)
