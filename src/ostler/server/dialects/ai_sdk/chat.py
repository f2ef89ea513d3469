"""Finds the session that a chat request belongs to, and sends on what the user wrote.

The log is the authority. A request that continues the conversation in it is appended; one that has another
conversation gets a session of its own, a branch, that knows what came before.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from ostler.base.context import Context, differing, wrapped
from ostler.base.errors import AskNotFound, AskResolved, InvalidRequest, OstlerError, SessionNotFound, Unprocessable
from ostler.server.dialects.ai_sdk.bodies import AgentChoice, StoredMessage, UiMessage, text_of
from ostler.server.dialects.ai_sdk.chunks import DONE, encoded
from ostler.server.dialects.ai_sdk.history import LoggedExchanges, Verdict, compared, departs, exchanges_of
from ostler.server.dialects.ai_sdk.imported import Imported, Part
from ostler.server.dialects.ai_sdk.profile import SAFE, Profile, Version
from ostler.server.dialects.ai_sdk.prompts import UserMessage, read_message
from ostler.server.dialects.ai_sdk.requests import (
    FORKED_FROM,
    NAMES,
    TurnRequest,
    check_folder,
    given_in,
    like_session,
    new_session,
    tell_place,
    wanted_change,
)
from ostler.server.dialects.ai_sdk.stored import StoredConversation
from ostler.server.dialects.beginning import begin, begin_with, send
from ostler.server.dialects.conversation import left_behind
from ostler.server.dialects.formats import subject_of
from ostler.server.sessions.creation import BRANCH
from ostler.server.sessions.live import LiveSession
from ostler.server.sessions.log.reads import pages
from ostler.server.sessions.service import Sessions
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.settings import SessionChange, settings_now
from ostler.server.store.records import SessionRecord, SessionSpec
from ostler.server.templates.applying import LABEL as TEMPLATE
from ostler.server.templates.applying import chat_of
from ostler.wire.events import PermissionRequested, decode_event
from ostler.wire.parts import InputPart, TextInput
from ostler.wire.sessions import Ask, CreateSession, PromptReceipt, SendMessage, Turn

_TITLE_LENGTH = 72
_MOST_BRANCHES = 1000
_COMPARED_BRANCHES = 8


BranchOfWorkspace = Callable[[LiveSession, str, SessionSpec, str | None, dict[str, str]], Awaitable[LiveSession]]
"""Makes a session of this key, spec, title and labels with the files of another one's workspace."""


class FollowedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that a client may follow."""

    session: SessionCore
    receipt: PromptReceipt
    offset: int
    """Where in the log to begin reading."""
    seen: int = 0
    """The sequence up to which the client has the message already."""
    answered: frozenset[str] = frozenset()
    """Permissions that the client decided with this request."""


class Chat:
    """The chats of a project."""

    def __init__(self, sessions: Sessions, project: str, default_agent: str, branch: BranchOfWorkspace) -> None:
        self._sessions = sessions
        self._project = project
        self._default_agent = default_agent
        self._branch = branch

    # Turns

    async def submit(self, request: TurnRequest, version: Version) -> FollowedTurn:
        """Send what is new in a request to its session; nothing is created for a request that cannot be."""
        try:
            return await self._submit(request, version)
        except OstlerError as error:
            tell_place(error, request.agent_place)
            raise

    async def _submit(self, request: TurnRequest, version: Version) -> FollowedTurn:
        if request.newest.role == "assistant":
            return await self._answer(request)
        if request.newest.role == "system":
            reason = "must be from the user"
            raise InvalidRequest(reason=f"{request.newest_place} {reason}.", errors={request.newest_place: [reason]})
        newest = read_message(request.newest, request.newest_place)
        record = await self._find(request.key)
        if record is None:
            return await self._begin(request, newest, key=request.key)
        await self._check_agent(record, request.agent)
        _check_template(record, request.template)
        check_folder(request.agent, record.key, record.cwd)
        return await self._go_on(record, request, newest, has_approvals=version != SAFE.version)

    async def _find(self, key: str | None) -> SessionRecord | None:
        if key is None:
            return None
        try:
            return await self._sessions.registry.find(self._project, key)
        except SessionNotFound:
            return None

    async def _check_agent(self, record: SessionRecord, choice: AgentChoice) -> None:
        """A conversation stays with its agent; another name of the same agent is fine."""
        if choice.harness is not None and choice.harness != record.agent:
            await self._sessions.creation.create(self._project, CreateSession(agent=choice.harness, key=record.key))

    async def _begin(self, request: TurnRequest, newest: UserMessage, *, key: str | None) -> FollowedTurn:
        """A new session; a conversation that began elsewhere comes along."""
        default = self._default_agent if request.template is None else ""
        instructions = _instructions(request)
        wanted = new_session(request.agent, default_agent=default, key=key, title=None, instructions=instructions)
        if request.template is not None:
            wanted = msgspec.structs.replace(wanted, template=request.template)
            store = self._sessions.store.templates
            chosen = await chat_of(store, self._project, wanted, request.inputs, given_in(request.agent))
            wanted, request = chosen.session, msgspec.structs.replace(request, inputs=chosen.inputs)
        before = _context_before(request, newest)
        wanted = msgspec.structs.replace(wanted, title=_title(newest) if before else None)
        return await self._create(wanted, newest, before)

    async def _create(self, wanted: CreateSession, newest: UserMessage, before: list[InputPart]) -> FollowedTurn:
        begun = await begin(self._sessions, self._project, wanted, _prompt(newest, before))
        return FollowedTurn(session=begun.live.core, receipt=begun.receipt, offset=begun.offset)

    async def _send(
        self, live: LiveSession, newest: UserMessage, context: str | None, change: SessionChange
    ) -> FollowedTurn:
        before: list[InputPart] = [TextInput(text=context)] if context else []
        begun = await send(self._sessions, live, _prompt(newest, before), change, NAMES)
        return FollowedTurn(session=live.core, receipt=begun.receipt, offset=begun.offset)

    async def _go_on(
        self, root: SessionRecord, request: TurnRequest, newest: UserMessage, *, has_approvals: bool
    ) -> FollowedTurn:
        branches, taken = await self._branches(root)
        if request.is_lone:
            return await self._append(branches[0], request, newest, has_approvals=has_approvals)
        for record in branches:
            match await self._verdict(record, request):
                case "continues":
                    return await self._append(record, request, newest, has_approvals=has_approvals)
                case "repeats" if (running := await self._running(record, request)) is not None:
                    return running
        return await self._fork(root, taken, request, newest)

    async def _append(
        self, record: SessionRecord, request: TurnRequest, newest: UserMessage, *, has_approvals: bool
    ) -> FollowedTurn:
        live = await self._sessions.registry.live(self._project, record.id)
        others = differing(_instructions(request), record.instructions)
        now = Context(instructions=others, inputs=request.inputs, files=newest.files)
        followed = await self._send(live, newest, wrapped(now), wanted_change(request.agent))
        if has_approvals:
            await self._give_up_waiting(live)
        return followed

    async def _give_up_waiting(self, live: LiveSession) -> None:
        """A client with approvals that says something else instead of deciding has decided: no."""
        for ask in live.core.state.asks:
            if ask.kind == "permission":
                await self._decide(live, ask, approved=False, reason="The user did not decide and said something else.")

    async def _running(self, record: SessionRecord, request: TurnRequest) -> FollowedTurn | None:
        live = await self._sessions.registry.live(self._project, record.id)
        if (running := running_turn(live.core)) is not None:
            self._sessions.refuse_changes(live.core, wanted_change(request.agent), NAMES)
        return running

    # Branches

    async def _branches(self, root: SessionRecord) -> tuple[list[SessionRecord], int]:
        """The newest of the session and those that branched off from it, and how many keys of branches are taken."""
        start = _branch_key(root, "")
        found, taken = await self._sessions.store.find_branches(
            root.project, root.id, (start, f"{start}:"), _COMPARED_BRANCHES
        )
        return [*found, root][:_COMPARED_BRANCHES], taken

    async def _verdict(self, record: SessionRecord, request: TurnRequest) -> Verdict:
        """Reads no more of the log than the client sent of it."""
        logged = LoggedExchanges()
        async for items in self._sessions.reads.message_pages(record.id):
            logged.add(items)
            if len(logged.exchanges) > len(request.messages) or departs(logged, request.messages):
                return "differs"
        state, *_ = self._sessions.registry.state_of(record)
        logged.end_with(state)
        sent = exchanges_of(request.messages)
        return compared(logged, sent) if sent else "differs"

    async def _fork(self, root: SessionRecord, taken: int, request: TurnRequest, newest: UserMessage) -> FollowedTurn:
        before, title = _context_before(request, newest), _title(newest)
        for number in range(taken + 2, _MOST_BRANCHES):
            key = _branch_key(root, str(number))
            if await self._find(key) is None:
                return await self._branched(root, request, key, _prompt(newest, before), title)
        raise InvalidRequest(reason=f"Session '{root.key}' has too many branches. Start a new one.")

    async def _branched(
        self, root: SessionRecord, request: TurnRequest, key: str, prompt: SendMessage, title: str | None
    ) -> FollowedTurn:
        """A session that is set up as the first one: in the same folder, or with its own copy of the workspace."""
        state, *_ = self._sessions.registry.state_of(root)
        instructions = _instructions(request) or root.instructions
        spec = msgspec.structs.replace(settings_now(root, state), instructions=instructions)
        change = wanted_change(request.agent)
        if root.order is not None and not root.is_in_place:
            live = await self._sessions.registry.live(self._project, root.id)
            made = await self._branch(live, key, spec, title, {FORKED_FROM: root.id})
            begun = await begin_with(self._sessions, made, prompt, change, NAMES)
        else:
            wishes = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
            spec = msgspec.structs.replace(spec, **wishes)
            wanted = like_session(spec, agent=root.agent, key=key, title=title, parent=root.id)
            beside = root if root.folder_of is not None else None
            begun = await begin(self._sessions, self._project, wanted, prompt, beside)
        return FollowedTurn(session=begun.live.core, receipt=begun.receipt, offset=begun.offset)

    async def current(self, key: str) -> SessionRecord | None:
        """The newest branch of a chat: what its client saw last."""
        record = await self._find(key)
        return (await self._branches(record))[0][0] if record is not None else None

    # Approvals

    async def _answer(self, request: TurnRequest) -> FollowedTurn:
        """An assistant message that comes back carries the decisions its client took."""
        approvals = [part.approval for part in request.newest.parts if part.approval is not None]
        decided = {approval.id: approval for approval in approvals if approval.approved is not None}
        root = await self._find(request.key)
        for record in (await self._branches(root))[0] if root is not None else []:
            if asks := await self._asks(record, decided):
                live = await self._sessions.registry.live(self._project, record.id)
                self._sessions.refuse_changes(live.core, wanted_change(request.agent), NAMES)
                for ask in asks:
                    approval = decided[ask.ask_id]
                    await self._decide(live, ask, approved=bool(approval.approved), reason=approval.reason)
                return await self._continued(live.core, asks)
        reason = "is from the assistant and decides no permission of this session; send a message of the user"
        raise InvalidRequest(reason=f"{request.newest_place} {reason}.", errors={request.newest_place: [reason]})

    async def _decide(self, live: LiveSession, ask: Ask, *, approved: bool, reason: str | None) -> None:
        """Decide a permission, unless somebody else was faster."""
        with contextlib.suppress(AskNotFound, AskResolved):
            await live.asks.reply_permission(ask.ask_id, "once" if approved else "reject", reason)

    async def _asks(self, record: SessionRecord, wanted: Iterable[str]) -> list[Ask]:
        asks = await self._sessions.reads.known_asks(record.id, wanted)
        return [ask for ask in asks if ask.turn_id is not None]

    async def _continued(self, session: SessionCore, asks: list[Ask]) -> FollowedTurn:
        turns = [
            await self._sessions.store.logs.find_turn(session.id, ask.turn_id)
            for ask in asks
            if ask.turn_id is not None
        ]
        turn = max((turn for turn in turns if turn is not None), key=lambda found: found.number)
        answered = frozenset(ask.ask_id for ask in asks)
        seen = 0
        async for page in pages(self._sessions.store, session.id, turn.first_sequence - 1):
            for event in (decode_event(stored.body) for stored in page):
                if isinstance(event, PermissionRequested) and event.data.permission_id in answered:
                    seen = event.sequence
        return msgspec.structs.replace(_followed(session, turn), seen=seen, answered=answered)

    # History

    async def history(self, record: SessionRecord, profile: Profile) -> tuple[StoredMessage, ...]:
        """The conversation up to its last finished message."""
        conversation = self._conversation(record, profile)
        async for _ in self._read(record, conversation):
            pass
        return conversation.messages()

    async def replay(self, record: SessionRecord, profile: Profile) -> AsyncIterator[bytes]:
        """The same as a stream."""
        conversation = self._conversation(record, profile, replays=True)
        async for _ in self._read(record, conversation):
            yield b"".join(map(encoded, conversation.replayed()))
        yield DONE

    def _conversation(self, record: SessionRecord, profile: Profile, *, replays: bool = False) -> StoredConversation:
        read = self._sessions.attachments.of(record.id).read
        return StoredConversation(subject_of(record), profile, read, replays=replays)

    async def _read(self, record: SessionRecord, conversation: StoredConversation) -> AsyncIterator[None]:
        """Read the log page by page."""
        past = await left_behind(self._sessions, record)
        async for page in pages(self._sessions.store, record.id, 0):
            remaining = [decode_event(event.body) for event in page if event.number not in past]
            await asyncio.to_thread(conversation.add, remaining)  # reads images
            yield


def _check_template(record: SessionRecord, reference: str | None) -> None:
    """A conversation stays with its revision; a name or a tag stands for the one that it began with."""
    name, _, version = (reference or "").partition("@")
    began = record.labels.get(TEMPLATE, "")
    is_other = began.partition("@")[0] != name or (version.startswith("sha256:") and began != reference)
    if reference is not None and is_other:
        what = f"with template {began}" if began else "without a template"
        reason = f"references name {reference[:200]}, but this conversation began {what}. Begin a new one for another."
        raise Unprocessable(reason=reason, errors={"references": ["a conversation stays with what it began with"]})


def _prompt(newest: UserMessage, before: list[InputPart]) -> SendMessage:
    return SendMessage(parts=(*before, *newest.parts))


def running_turn(session: SessionCore) -> FollowedTurn | None:
    """The turn under way, from its beginning."""
    turn = session.state.turn
    return _followed(session, turn) if turn is not None else None


def _followed(session: SessionCore, turn: Turn) -> FollowedTurn:
    receipt = PromptReceipt(prompt_id="", disposition="started", turn_id=turn.turn_id)
    return FollowedTurn(session=session, receipt=receipt, offset=turn.first_sequence - 1)


def _branch_key(root: SessionRecord, number: str) -> str:
    """Keys of branches differ in their number only, so that all of them are found at once."""
    return f"{root.key[: 128 - len(BRANCH) - len(str(_MOST_BRANCHES))]}{BRANCH}{number}"


def _context_before(request: TurnRequest, newest: UserMessage) -> list[InputPart]:
    """What a new session gets before the newest message: a context, and the pictures in it."""
    imported = Imported()
    for index, (earlier, parts) in enumerate(_messages_before(request)):
        imported.add(earlier, parts, index)
    history = tuple(imported.messages)
    context = wrapped(Context(inputs=request.inputs, files=newest.files, history=history))
    return [TextInput(text=context), *imported.pictures(history)] if context else []


def _instructions(request: TurnRequest) -> str | None:
    """What the client wants the agent to be told in every turn; None if it does not say."""
    system = [text_of(message) for message in request.messages if message.role == "system"]
    return "\n\n".join(filter(None, [request.agent.instructions, *system])) or None


def _messages_before(request: TurnRequest) -> list[tuple[UiMessage, tuple[Part, ...]]]:
    both = list(zip(request.messages, request.parts, strict=True))[:-1]
    return [(message, parts) for message, parts in both if message.role != "system"]


def _title(newest: UserMessage) -> str | None:
    words = " ".join(part.text for part in newest.parts if isinstance(part, TextInput)).split()
    title = " ".join(words)
    return title if len(title) <= _TITLE_LENGTH else f"{title[: _TITLE_LENGTH - 1]}…"
