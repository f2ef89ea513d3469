"""The asynchronous client. `make schema` writes the synchronous one, sync.py, from this file."""

import functools
from collections.abc import AsyncGenerator, Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from ostler.client import (
    access_operations,
    audit_operations,
    fleet_operations,
    prompt_operations,
    review_operations,
    schedule_operations,
    task_operations,
    template_operations,
    trigger_operations,
    webhook_operations,
)
from ostler.client import operations as op
from ostler.client.calls import AsyncAnswer, Call
from ostler.client.errors import ClientError, QuestionUnanswered
from ostler.client.events import SessionEvent, project_stream, session_stream
from ostler.client.transport import ANSWER_SECONDS, DEFAULT_ADDRESS, SILENCE_SECONDS, AsyncTransport, check_exposure
from ostler.client.turns import (
    AsyncDecide,
    AsyncReply,
    Handlers,
    OwnTurn,
    async_answered,
    async_decided,
    async_returned,
    others_may_be_first,
)
from ostler.wire.events import PermissionRequested, QuestionData, QuestionRequested
from ostler.wire.parts import InputPart
from ostler.wire.sessions import PromptReceipt, Session, WhenBusy

P = ParamSpec("P")
T = TypeVar("T")


class AsyncGroup:
    """Operations on one noun."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport


def _verb(build: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncGroup, P], AsyncAnswer[T]]:
    @functools.wraps(build)
    async def run(group: AsyncGroup, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await group._transport.run(build(*args, **kwargs))

    return run


def _opening(build: Callable[P, Call[Session]]) -> Callable[Concatenate[AsyncGroup, P], AsyncAnswer["AsyncSession"]]:
    @functools.wraps(build)
    async def run(group: AsyncGroup, /, *args: P.args, **kwargs: P.kwargs) -> "AsyncSession":
        return AsyncSession(group._transport, await group._transport.run(build(*args, **kwargs)))

    return run


def _own(build: Callable[Concatenate[str, P], Call[T]]) -> Callable[Concatenate["AsyncSession", P], AsyncAnswer[T]]:
    @functools.wraps(build)
    async def run(session: "AsyncSession", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return session._noted(await session._transport.run(build(session.id, *args, **kwargs)))

    return run


def _other(
    build: Callable[Concatenate[str, P], Call[Session]],
) -> Callable[Concatenate["AsyncSession", P], AsyncAnswer["AsyncSession"]]:
    """For what makes another session out of this one."""

    @functools.wraps(build)
    async def run(session: "AsyncSession", /, *args: P.args, **kwargs: P.kwargs) -> "AsyncSession":
        return AsyncSession(session._transport, await session._transport.run(build(session.id, *args, **kwargs)))

    return run


class AsyncSystem(AsyncGroup):
    """The server itself."""

    health = _verb(op.health)
    whoami = _verb(access_operations.whoami)
    providers = _verb(access_operations.providers)
    ready = _verb(op.ready)
    version = _verb(op.version)
    openapi = _verb(op.openapi)
    metrics = _verb(op.metrics)
    schema = _verb(op.schema)


class AsyncAgents(AsyncGroup):
    """What can be run."""

    list = _verb(op.list_agents)
    get = _verb(op.get_agent)
    install = _verb(op.install_agent)
    login = _verb(op.log_in)
    login_state = _verb(op.login_state)
    login_answer = _verb(op.answer_login)
    login_cancel = _verb(op.cancel_login)
    logout = _verb(op.log_out)
    modes = _verb(op.agent_modes)
    models = _verb(op.agent_models)


class AsyncSessions(AsyncGroup):
    """Conversations with agents; `create` and `open` give a handle."""

    create = _opening(op.create_session)
    open = _opening(op.get_session)
    list = _verb(op.list_sessions)
    search = _verb(op.search_sessions)
    importable = _verb(op.importable_conversations)
    bring = _verb(op.bring_conversation)
    get = _verb(op.get_session)
    update = _verb(op.update_session)
    reads = _verb(op.list_reads)
    mark_read = _verb(op.mark_read)
    delete = _verb(op.delete_session)
    stop = _verb(op.stop_session)
    cancel = _verb(op.cancel_session)
    pause = _verb(op.pause_session)
    resume = _verb(op.resume_session)
    interrupt = _verb(op.interrupt_session)
    go_on = _verb(op.go_on_session)
    restart = _verb(op.restart_session)
    send = _verb(op.send_message)
    messages = _verb(op.list_messages)
    queue = _verb(op.get_queue)
    unqueue = _verb(op.unqueue_prompt)
    clear_queue = _verb(op.clear_queue)
    turns = _verb(op.list_turns)
    workspace = _verb(task_operations.get_workspace)
    open_ide = _verb(task_operations.open_ide)
    snapshots = _verb(task_operations.list_snapshots)
    diff = _verb(task_operations.get_diff)
    patch = _verb(task_operations.get_patch)
    rewind = _verb(task_operations.rewind_session)
    restore = _verb(task_operations.restore_snapshot)
    undo = _verb(task_operations.undo_turn)
    apply = _verb(task_operations.apply_changes)
    init_git = _verb(task_operations.init_git)
    fork = _opening(task_operations.fork_session)
    delivery = _verb(task_operations.plan_delivery)
    handoff = _opening(task_operations.hand_over_session)
    deliver = _verb(task_operations.deliver_session)
    merge = _verb(task_operations.merge_session)


class AsyncComments(AsyncGroup):
    """What people have to say about the files of sessions."""

    list = _verb(review_operations.list_comments)
    add = _verb(review_operations.add_comment)
    change = _verb(review_operations.change_comment)
    remove = _verb(review_operations.remove_comment)
    send = _verb(review_operations.send_comments)


class AsyncTasks(AsyncGroup):
    """Work on repositories."""

    create = _verb(task_operations.create_task)
    list = _verb(task_operations.list_tasks)
    get = _verb(task_operations.get_task)


class AsyncFiles(AsyncGroup):
    """The files of sessions' workspaces."""

    list = _verb(task_operations.list_files)
    stat = _verb(task_operations.stat_file)
    read = _verb(task_operations.read_file)
    image = _verb(task_operations.show_image)
    write = _verb(task_operations.write_file)
    remove = _verb(task_operations.remove_file)
    search = _verb(task_operations.search_files)
    paths = _verb(task_operations.list_paths)
    archive = _verb(task_operations.archive_files)
    artifacts = _verb(task_operations.list_artifacts)


class AsyncCatalogue(AsyncGroup):
    """What tasks can be ordered with."""

    runtimes = _verb(task_operations.list_runtimes)
    refs = _verb(task_operations.list_refs)
    folders = _verb(task_operations.list_folders)
    upload = _verb(task_operations.create_upload)
    send_upload = _verb(task_operations.send_upload)


class AsyncRunners(AsyncGroup):
    """The machines that run agents."""

    list = _verb(task_operations.list_runners)
    get = _verb(task_operations.get_runner)
    token = _verb(task_operations.create_runner_token)
    drain = _verb(task_operations.drain_runner)
    resume = _verb(task_operations.resume_runner)
    remove = _verb(task_operations.remove_runner)


class AsyncTenants(AsyncGroup):
    """Teams that share a server and see nothing of each other."""

    list = _verb(access_operations.list_tenants)
    create = _verb(access_operations.create_tenant)
    remove = _verb(access_operations.remove_tenant)


class AsyncProjects(AsyncGroup):
    """What sessions, tasks and keys belong to."""

    list = _verb(access_operations.list_projects)
    create = _verb(access_operations.create_project)
    remove = _verb(access_operations.remove_project)


class AsyncMembers(AsyncGroup):
    """Who may do what."""

    list = _verb(access_operations.list_members)
    sign_out = _verb(access_operations.sign_out_member)


class AsyncKeys(AsyncGroup):
    """API keys for people and programs."""

    list = _verb(access_operations.list_keys)
    create = _verb(access_operations.create_key)
    revoke = _verb(access_operations.revoke_key)


class AsyncLimits(AsyncGroup):
    """How much tenants, projects and actors may have."""

    list = _verb(access_operations.list_limits)
    set = _verb(access_operations.set_limits)


class AsyncUsage(AsyncGroup):
    """What the caller has and has used."""

    show = _verb(access_operations.show_usage)


class AsyncAudit(AsyncGroup):
    """Who changed what, and who was refused."""

    list = _verb(audit_operations.list_lines)
    export = _verb(audit_operations.export_lines)


class AsyncPrompts(AsyncGroup):
    """Prompts that people saved to use them again."""

    list = _verb(prompt_operations.list_prompts)
    show = _verb(prompt_operations.show_prompt)
    save = _verb(prompt_operations.save_prompt)
    edit = _verb(prompt_operations.edit_prompt)
    remove = _verb(prompt_operations.remove_prompt)


class AsyncFollowers(AsyncGroup):
    """Machines that hold copies of the files of sessions."""

    list = _verb(fleet_operations.list_followers)
    order = _verb(fleet_operations.send_order)
    input = _verb(fleet_operations.send_input)
    proxy = _verb(fleet_operations.open_proxy)
    token = _verb(fleet_operations.session_token)


class AsyncTemplates(AsyncGroup):
    """Stored definitions of agents, and their revisions."""

    list = _verb(template_operations.list_templates)
    push = _verb(template_operations.push_template)
    show = _verb(template_operations.show_template)
    revisions = _verb(template_operations.list_revisions)
    revision = _verb(template_operations.show_revision)
    export = _verb(template_operations.export_revision)
    tag = _verb(template_operations.tag_revision)
    diff = _verb(template_operations.diff_revisions)
    remove = _verb(template_operations.remove_template)


class AsyncSchedules(AsyncGroup):
    """Tasks that begin by the clock."""

    list = _verb(schedule_operations.list_schedules)
    create = _verb(schedule_operations.create_schedule)
    show = _verb(schedule_operations.show_schedule)
    edit = _verb(schedule_operations.edit_schedule)
    remove = _verb(schedule_operations.remove_schedule)
    run = _verb(schedule_operations.run_schedule)
    runs = _verb(schedule_operations.list_schedule_runs)


class AsyncTriggers(AsyncGroup):
    """Events from outside that become tasks or prompts."""

    list = _verb(trigger_operations.list_triggers)
    create = _verb(trigger_operations.create_trigger)
    show = _verb(trigger_operations.show_trigger)
    edit = _verb(trigger_operations.edit_trigger)
    remove = _verb(trigger_operations.remove_trigger)
    preview = _verb(trigger_operations.preview_trigger)
    test = _verb(trigger_operations.try_trigger)
    deliveries = _verb(trigger_operations.list_deliveries)
    delivery = _verb(trigger_operations.show_delivery)
    replay = _verb(trigger_operations.replay_delivery)


class AsyncWebhooks(AsyncGroup):
    """Addresses of others that are told what happens."""

    list = _verb(webhook_operations.list_webhooks)
    create = _verb(webhook_operations.create_webhook)
    show = _verb(webhook_operations.show_webhook)
    edit = _verb(webhook_operations.edit_webhook)
    remove = _verb(webhook_operations.remove_webhook)
    test = _verb(webhook_operations.try_webhook)
    deliveries = _verb(webhook_operations.list_calls)
    delivery = _verb(webhook_operations.show_call)
    replay = _verb(webhook_operations.replay_call)


class AsyncEvents(AsyncGroup):
    """Logs of sessions."""

    list = _verb(op.list_events)
    logs = _verb(op.list_logs)
    project = _verb(op.project_events)
    ingest = _verb(fleet_operations.ingest_events)

    def stream(
        self, session: str, *, offset: int = 0, include_raw: bool = False, reconnect_for: float | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Every event of a session once, past and future, until the session ends."""
        return self._transport.follow(
            session_stream(session, offset=offset, include_raw=include_raw, reconnect_for=reconnect_for)
        )

    def stream_project(
        self, *, offset: int | None = None, reconnect_for: float | None = None
    ) -> AsyncGenerator[SessionEvent, None]:
        """Every event of all sessions once; without an offset those from now on."""
        return self._transport.follow(project_stream(offset=offset, reconnect_for=reconnect_for))


class AsyncAsks(AsyncGroup):
    """What waits for a person."""

    list = _verb(op.list_asks)
    permission = _verb(op.reply_permission)
    answer = _verb(op.answer_question)
    reject = _verb(op.reject_question)


class AsyncTurn(OwnTurn):
    """The turn of one prompt; `text`, `files`, `outcome`, `error` and `usage` grow as its events are read."""

    def __init__(self, session: "AsyncSession", receipt: PromptReceipt) -> None:
        super().__init__(receipt)
        self._session = session
        self._position = session.seen

    async def events(self, *, timeout: float | None = None) -> AsyncGenerator[SessionEvent, None]:
        """The events of this turn alone, each once, until it is over; asking again goes on where one left.

        Raises TurnTimeout when it is not over after so many seconds.
        """
        if self.outcome is not None:
            return
        stream = self._session.events(offset=self._position, within=timeout)
        try:
            async for event in stream:
                own = self.take(event)
                self._position = event.sequence
                if self.outcome is not None:
                    self._session.seen = event.sequence
                for each in own:
                    yield each
                if self.outcome is not None:
                    return
        finally:
            await stream.aclose()

    async def wait(
        self,
        on_permission: AsyncDecide | None = None,
        on_question: AsyncReply | None = None,
        *,
        tools: Handlers | None = None,
        timeout: float | None = None,
    ) -> Self:
        """Read to the end; asks are answered by these functions, permissions also by another client of the session.

        `tools` are the functions behind the session's `client_tools`; the model hears what one raises.

        Raises QuestionUnanswered for a question without a function, and TurnTimeout after so many seconds; both leave
        the turn as it is.
        """
        async for event in self.events(timeout=timeout):
            with others_may_be_first():
                if on_permission is not None and isinstance(event, PermissionRequested):
                    reply = await async_decided(on_permission, event.data)
                    await self._session.reply(event.data.permission_id, reply)
                elif isinstance(event, QuestionRequested):
                    await self._answer(event.data, on_question, tools or {})
        return self

    async def _answer(self, asked: QuestionData, on_question: AsyncReply | None, tools: Handlers) -> None:
        if asked.call is not None and asked.call.name in tools:
            given = await async_returned(tools, asked.call)
            if given.error is None:
                await self._session.answer(asked.question_id, result=given.result)
            else:
                await self._session.reject(asked.question_id, message=given.error)
        elif on_question is None or asked.call is not None:
            raise QuestionUnanswered(asked.question_id, asked.prompt, asked.call.name if asked.call else None)
        elif (answers := await async_answered(on_question, asked)) is None:
            await self._session.reject(asked.question_id)
        else:
            await self._session.answer(asked.question_id, answers)


class AsyncSession:
    """A handle on one session; `info` is the newest state this handle has seen."""

    def __init__(self, transport: AsyncTransport, info: Session) -> None:
        self._transport = transport
        self.info = info
        self.seen = info.last_sequence
        """Up to where the log is known to hold nothing of a turn to come."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.info.id

    @property
    def key(self) -> str:
        """The name its creator gave it."""
        return self.info.key

    def _noted(self, result: T) -> T:
        if isinstance(result, Session):
            self.info = result
        return result

    refresh = _own(op.get_session)
    update = _own(op.update_session)
    mark_read = _own(op.mark_read)
    delete = _own(op.delete_session)
    stop = _own(op.stop_session)
    cancel = _own(op.cancel_session)
    pause = _own(op.pause_session)
    resume = _own(op.resume_session)
    interrupt = _own(op.interrupt_session)
    go_on = _own(op.go_on_session)
    restart = _own(op.restart_session)
    send = _own(op.send_message)
    messages = _own(op.list_messages)
    queue = _own(op.get_queue)
    unqueue = _own(op.unqueue_prompt)
    clear_queue = _own(op.clear_queue)
    turns = _own(op.list_turns)
    workspace = _own(task_operations.get_workspace)
    open_ide = _own(task_operations.open_ide)
    snapshots = _own(task_operations.list_snapshots)
    diff = _own(task_operations.get_diff)
    patch = _own(task_operations.get_patch)
    rewind = _own(task_operations.rewind_session)
    restore = _own(task_operations.restore_snapshot)
    undo = _own(task_operations.undo_turn)
    apply = _own(task_operations.apply_changes)
    init_git = _own(task_operations.init_git)
    fork = _other(task_operations.fork_session)
    delivery = _own(task_operations.plan_delivery)
    handoff = _other(task_operations.hand_over_session)
    deliver = _own(task_operations.deliver_session)
    merge = _own(task_operations.merge_session)
    comments = _own(review_operations.list_comments)
    comment = _own(review_operations.add_comment)
    send_comments = _own(review_operations.send_comments)
    files = _own(task_operations.list_files)
    read_file = _own(task_operations.read_file)
    write_file = _own(task_operations.write_file)
    logs = _own(op.list_logs)
    ingest = _own(fleet_operations.ingest_events)
    reply = _own(op.reply_permission)
    answer = _own(op.answer_question)
    reject = _own(op.reject_question)

    def events(
        self,
        *,
        offset: int = 0,
        include_raw: bool = False,
        reconnect_for: float | None = None,
        within: float | None = None,
    ) -> AsyncGenerator[SessionEvent, None]:
        """The whole log from its beginning, or after `offset`: each event once, until the session ends.

        Raises TurnTimeout after `within` seconds. To hear what becomes of one prompt, use `run` or `start`.
        """
        return self._transport.follow(
            session_stream(self.id, offset=offset, include_raw=include_raw, reconnect_for=reconnect_for, within=within)
        )

    async def start(self, message: str | Sequence[InputPart], *, when_busy: WhenBusy = "queue") -> AsyncTurn:
        """Send a prompt; its turn's `events()` are those of this prompt and no other."""
        return AsyncTurn(self, await self.send(message, when_busy=when_busy))

    async def run(
        self,
        message: str | Sequence[InputPart],
        *,
        when_busy: WhenBusy = "queue",
        on_permission: AsyncDecide | None = None,
        on_question: AsyncReply | None = None,
        tools: Handlers | None = None,
        timeout: float | None = None,
    ) -> AsyncTurn:
        """Send a prompt and wait until its turn is over; `text` of the turn is what the agent said.

        A question without `on_question` raises QuestionUnanswered at once, and a turn that takes longer than
        `timeout` seconds TurnTimeout; it goes on meanwhile.
        """
        turn = await self.start(message, when_busy=when_busy)
        return await turn.wait(on_permission, on_question, tools=tools, timeout=timeout)


class AsyncClient:
    """A server's operations by noun; use it with `async with`."""

    def __init__(
        self,
        base_url: str = DEFAULT_ADDRESS,
        token: str | None = None,
        *,
        timeout: float = ANSWER_SECONDS,
        silence: float = SILENCE_SECONDS,
        ca_file: str | Path | None = None,
        insecure: bool = False,
        project: str | None = None,
        on_break: Callable[[ClientError | None], None] | None = None,
        transport: AsyncTransport | None = None,
    ) -> None:
        """`ca_file` has the authorities to trust, for a server whose certificate is of one of its own.

        `project` is the one that calls count in, for a token that may use several.
        `insecure` sends the token to another machine without TLS too; everybody on the way can read it.
        `on_break` is called with the error when a stream breaks and is tried again, and with None when it goes on.
        """
        if transport is None:
            check_exposure(base_url, token, insecure=insecure)
        self._transport = transport or _over_http(base_url, token, timeout, silence, ca_file, project)
        if on_break is not None:
            self._transport.on_break = on_break
        self.system = AsyncSystem(self._transport)
        self.agents = AsyncAgents(self._transport)
        self.sessions = AsyncSessions(self._transport)
        self.events = AsyncEvents(self._transport)
        self.asks = AsyncAsks(self._transport)
        self.tasks = AsyncTasks(self._transport)
        self.files = AsyncFiles(self._transport)
        self.comments = AsyncComments(self._transport)
        self.catalogue = AsyncCatalogue(self._transport)
        self.runners = AsyncRunners(self._transport)
        self.prompts = AsyncPrompts(self._transport)
        self.followers = AsyncFollowers(self._transport)
        self.templates = AsyncTemplates(self._transport)
        self.schedules = AsyncSchedules(self._transport)
        self.triggers = AsyncTriggers(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)
        self.tenants = AsyncTenants(self._transport)
        self.projects = AsyncProjects(self._transport)
        self.members = AsyncMembers(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.limits = AsyncLimits(self._transport)
        self.usage = AsyncUsage(self._transport)
        self.audit = AsyncAudit(self._transport)

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


def _over_http(
    base_url: str,
    token: str | None,
    timeout: float,
    silence: float,
    ca_file: str | Path | None,
    project: str | None,
) -> AsyncTransport:
    """The usual transport, loaded here because a caller that brings its own can do without httpx."""
    transport = import_module("ostler.client.async_http").HttpTransport
    made: AsyncTransport = transport(base_url, token, timeout, silence, ca_file, project)
    return made
