"""Every operation of the API as a function that describes its call; both clients are made from this table."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ostler.client.calls import Call, delete, get, patch, post, segment
from ostler.client.events import EventBatch, decode_batch
from ostler.wire.agents import (
    Agent,
    AgentList,
    AgentLogin,
    AnswerLogin,
    ConversationList,
    ImportConversation,
    InstallAgent,
    Installed,
    LoginMethod,
    ModeList,
    ModelList,
    RestartSession,
    StartLogin,
)
from ostler.wire.events import PermissionMode, PermissionRule
from ostler.wire.parts import InputPart
from ostler.wire.providers import ClientTool, CodeTool, McpServer
from ostler.wire.reads import MarkRead, ReadMark, ReadMarks
from ostler.wire.search import SearchResults, Speaker
from ostler.wire.sessions import (
    AskList,
    AskView,
    CreateSession,
    Interrupted,
    MessageList,
    Page,
    PermissionReply,
    PromptReceipt,
    Queue,
    RejectQuestion,
    ReplyPermission,
    ReplyQuestion,
    SendMessage,
    Session,
    TurnLimits,
    TurnList,
    UpdateSession,
    WhenBusy,
)
from ostler.wire.system import Health, Ready, Version
from ostler.wire.tasks import LogList, TaskProvider, TaskRuntime
from ostler.wire.workspaces import Repo, WorkspaceWish

_INSTALL_SECONDS = 1800.0

_session = msgspec.json.Decoder(Session).decode
_sessions = msgspec.json.Decoder(Page[Session]).decode
_ask = msgspec.json.Decoder(AskView).decode
_login = msgspec.json.Decoder(AgentLogin).decode
_document = msgspec.json.Decoder(dict[str, Any]).decode


def health() -> Call[Health]:
    """Whether the server's process answers."""
    return get("/healthz", msgspec.json.Decoder(Health).decode)


def ready() -> Call[Ready]:
    """Whether the server takes work, part by part."""
    call = get("/readyz", msgspec.json.Decoder(Ready).decode)
    return msgspec.structs.replace(call, also_answers=(503,))


def version() -> Call[Version]:
    """Which server this is."""
    return get("/version", msgspec.json.Decoder(Version).decode)


def openapi() -> Call[dict[str, Any]]:
    """The OpenAPI document."""
    return get("/openapi.json", _document)


def metrics() -> Call[str]:
    """Numbers in Prometheus' text format."""
    return get("/metrics", bytes.decode)


def schema(path: str) -> Call[dict[str, Any]]:
    """A JSON Schema, such as wire.json or agents/mock.json."""
    return get("/schemas/" + "/".join(segment(piece) for piece in path.split("/")), _document)


def list_agents() -> Call[AgentList]:
    """All agents the server knows."""
    return get("/agents", msgspec.json.Decoder(AgentList).decode)


def get_agent(agent: str) -> Call[Agent]:
    """One agent."""
    return get(f"/agents/{segment(agent)}", msgspec.json.Decoder(Agent).decode)


def install_agent(agent: str, *, version: str | None = None, reinstall: bool = False) -> Call[Installed]:
    """Install an agent, without a version the newest known to work; with `reinstall` also if it is there already."""
    decode = msgspec.json.Decoder(Installed).decode
    wanted = InstallAgent(version=version, reinstall=reinstall)
    return post(f"/agents/{segment(agent)}/install", decode, wanted, timeout=_INSTALL_SECONDS)


def login_state(agent: str) -> Call[AgentLogin]:
    """Whether an agent is logged in, what can be done, and the login under way."""
    return get(f"/agents/{segment(agent)}/login", _login)


def log_in(
    agent: str, *, method: LoginMethod, key: str | None = None, variable: str | None = None, way: str | None = None
) -> Call[AgentLogin]:
    """Log an agent in: with a key, with what is on the runner's machine, or by its own login, in one of its ways."""
    order = StartLogin(method=method, key=key, variable=variable, way=way)
    return post(f"/agents/{segment(agent)}/login", _login, order)


def answer_login(agent: str, code: str) -> Call[AgentLogin]:
    """Give the login under way what it asks for."""
    return post(f"/agents/{segment(agent)}/login/answer", _login, AnswerLogin(code=code))


def cancel_login(agent: str) -> Call[AgentLogin]:
    """End the login under way."""
    return post(f"/agents/{segment(agent)}/login/cancel", _login)


def log_out(agent: str) -> Call[None]:
    """Forget what an agent logs in with."""
    return delete(f"/agents/{segment(agent)}/login")


def agent_modes(agent: str) -> Call[ModeList]:
    """The ways of working an agent offers."""
    return get(f"/agents/{segment(agent)}/modes", msgspec.json.Decoder(ModeList).decode)


def agent_models(agent: str) -> Call[ModelList]:
    """The models an agent offers."""
    return get(f"/agents/{segment(agent)}/models", msgspec.json.Decoder(ModelList).decode)


def list_sessions(
    *,
    status: str | None = None,
    agent: str | None = None,
    labels: Mapping[str, str] | None = None,
    q: str | None = None,
    page: int | None = None,
    per_page: int | None = None,
) -> Call[Page[Session]]:
    """One page of the sessions, newest first."""
    label = tuple(f"{name}={value}" for name, value in (labels or {}).items())
    return get("/sessions", _sessions, status=status, agent=agent, label=label, q=q, page=page, per_page=per_page)


def search_sessions(
    text: str,
    *,
    agent: str | None = None,
    session: str | None = None,
    speaker: Speaker | None = None,
    limit: int | None = None,
    before: int | None = None,
) -> Call[SearchResults]:
    """What was said in all sessions that has these words, newest first."""
    filters = {"from": speaker, "agent": agent, "session": session, "limit": limit, "before": before}
    return get("/search", msgspec.json.Decoder(SearchResults).decode, q=text, **filters)


def importable_conversations() -> Call[ConversationList]:
    """What agents' own programs have on the server's machine, newest first."""
    return get("/imports", msgspec.json.Decoder(ConversationList).decode)


def bring_conversation(
    agent: str,
    conversation_id: str,
    *,
    title: str | None = None,
    model: str | None = None,
    permission_mode: PermissionMode = "default",
    env: Mapping[str, str] | None = None,
    provider: TaskProvider | None = None,
) -> Call[Session]:
    """A session that goes on with one of them."""
    body = ImportConversation(
        agent=agent,
        conversation_id=conversation_id,
        title=title,
        model=model,
        permission_mode=permission_mode,
        env=dict(env or {}),
        provider=provider,
    )
    return post("/imports", _session, body)


def create_session(
    agent: str = "",
    *,
    template: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    key: str | None = None,
    title: str | None = None,
    model: str | None = None,
    variant: str | None = None,
    mode: str | None = None,
    instructions: str | None = None,
    system_prompt: str | None = None,
    limits: TurnLimits | None = None,
    temperature: float | None = None,
    tools: Sequence[str] | None = None,
    client_tools: Sequence[ClientTool] = (),
    code_tools: Sequence[CodeTool] = (),
    permission_mode: PermissionMode = "default",
    permission_rules: Sequence[PermissionRule] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    labels: Mapping[str, str] | None = None,
    turn_timeout_seconds: float | None = None,
    repo: Repo | None = None,
    runtime: TaskRuntime | None = None,
    workspace: WorkspaceWish | None = None,
    setup: str | None = None,
) -> Call[Session]:
    """Create a session; a key that already names one of the same agent gives that one."""
    body = CreateSession(
        agent=agent,
        template=template,
        inputs=dict(inputs or {}),
        key=key,
        title=title,
        model=model,
        variant=variant,
        mode=mode,
        instructions=instructions,
        system_prompt=system_prompt,
        limits=limits or TurnLimits(),
        temperature=temperature,
        tools=None if tools is None else tuple(tools),
        client_tools=tuple(client_tools),
        code_tools=tuple(code_tools),
        permission_mode=permission_mode,
        permission_rules=tuple(permission_rules),
        env=dict(env or {}),
        cwd=cwd,
        labels=dict(labels or {}),
        turn_timeout_seconds=turn_timeout_seconds,
        repo=repo,
        runtime=runtime,
        workspace=workspace,
        setup=setup,
    )
    return post("/sessions", _session, body)


def get_session(session: str) -> Call[Session]:
    """One session, by id or key."""
    return get(f"/sessions/{segment(session)}", _session)


def update_session(
    session: str,
    *,
    model: str | None = None,
    variant: str | None = None,
    mode: str | None = None,
    permission_mode: PermissionMode | None = None,
    permission_rules: Sequence[PermissionRule] | None = None,
    title: str | None = None,
    labels: Mapping[str, str] | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    mcp_servers: Mapping[str, McpServer] | None = None,
) -> Call[Session]:
    """Change how the agent works from the next turn on, and how the session is listed; what is not given stays."""
    body = UpdateSession(
        model=model,
        variant=variant,
        mode=mode,
        permission_mode=permission_mode,
        permission_rules=None if permission_rules is None else tuple(permission_rules),
        title=title,
        labels=None if labels is None else dict(labels),
        pinned=pinned,
        archived=archived,
        mcp_servers=None if mcp_servers is None else dict(mcp_servers),
    )
    return patch(f"/sessions/{segment(session)}", _session, body)


def list_reads() -> Call[ReadMarks]:
    """What you have seen of the sessions, on whatever device."""
    return get("/reads", msgspec.json.Decoder(ReadMarks).decode)


def mark_read(session: str, *, turns: int | None = None, failed: bool | None = None) -> Call[ReadMark]:
    """Say that you have seen a session, by default all that there is now; it is read on all of your devices."""
    body = MarkRead(turns=turns, failed=failed)
    return post(f"/sessions/{segment(session)}/read", msgspec.json.Decoder(ReadMark).decode, body)


def delete_session(session: str) -> Call[None]:
    """End a session and remove everything of it."""
    return delete(f"/sessions/{segment(session)}")


def stop_session(session: str) -> Call[Session]:
    """End a session gracefully."""
    return post(f"/sessions/{segment(session)}/stop", _session)


def cancel_session(session: str) -> Call[Session]:
    """End a session by force."""
    return post(f"/sessions/{segment(session)}/cancel", _session)


def pause_session(session: str) -> Call[Session]:
    """Freeze the agent where it stands."""
    return post(f"/sessions/{segment(session)}/pause", _session)


def resume_session(session: str) -> Call[Session]:
    """Let a paused agent go on."""
    return post(f"/sessions/{segment(session)}/resume", _session)


def interrupt_session(session: str) -> Call[Interrupted]:
    """End the running turn; the session goes on."""
    return post(f"/sessions/{segment(session)}/interrupt", msgspec.json.Decoder(Interrupted).decode)


def go_on_session(session: str) -> Call[Session]:
    """Wait no longer for the end of a limit: what the server would do then by itself is done now."""
    return post(f"/sessions/{segment(session)}/go-on", _session)


def restart_session(session: str, *, force: bool = False) -> Call[Session]:
    """End the agent's process; the next turn begins a new one with its memory. `force` also ends a turn under way."""
    return post(f"/sessions/{segment(session)}/restart", _session, RestartSession(force=force))


def send_message(
    session: str, message: str | Sequence[InputPart], *, when_busy: WhenBusy = "queue"
) -> Call[PromptReceipt]:
    """Send a prompt: plain text, or parts with images and files."""
    body = (
        SendMessage(message=message, when_busy=when_busy)
        if isinstance(message, str)
        else SendMessage(parts=tuple(message), when_busy=when_busy)
    )
    return post(f"/sessions/{segment(session)}/messages", msgspec.json.Decoder(PromptReceipt).decode, body)


def list_messages(session: str, *, offset: int | None = None, limit: int | None = None) -> Call[MessageList]:
    """The transcript: items with all their deltas folded in."""
    decode = msgspec.json.Decoder(MessageList).decode
    return get(f"/sessions/{segment(session)}/messages", decode, offset=offset, limit=limit)


def get_queue(session: str) -> Call[Queue]:
    """The prompts that wait for the running turn to end."""
    return get(f"/sessions/{segment(session)}/queue", msgspec.json.Decoder(Queue).decode)


def unqueue_prompt(session: str, prompt_id: str) -> Call[None]:
    """Take one waiting prompt back."""
    return delete(f"/sessions/{segment(session)}/queue/{segment(prompt_id)}")


def clear_queue(session: str) -> Call[None]:
    """Take all waiting prompts back."""
    return delete(f"/sessions/{segment(session)}/queue")


def list_turns(session: str) -> Call[TurnList]:
    """All turns of a session."""
    return get(f"/sessions/{segment(session)}/turns", msgspec.json.Decoder(TurnList).decode)


def list_events(
    session: str, *, offset: int | None = None, limit: int | None = None, include_raw: bool | None = None
) -> Call[EventBatch]:
    """One page of events with a sequence above the offset."""
    path = f"/sessions/{segment(session)}/events"
    return get(path, decode_batch, offset=offset, limit=limit, include_raw=include_raw)


def list_logs(session: str, *, tail: int | None = None) -> Call[LogList]:
    """The newest log lines of a session, oldest first."""
    return get(f"/sessions/{segment(session)}/logs", msgspec.json.Decoder(LogList).decode, tail=tail)


def project_events(*, offset: int | None = None, limit: int | None = None) -> Call[EventBatch]:
    """One page of the events of all sessions; `next_offset` leads to the next."""
    return get("/events", decode_batch, offset=offset, limit=limit)


def list_asks(*, status: str | None = None, session: str | None = None) -> Call[AskList]:
    """What waits for a person, oldest first; status `all` shows decided ones too."""
    return get("/asks", msgspec.json.Decoder(AskList).decode, status=status, session=session)


def reply_permission(
    session: str, permission_id: str, reply: PermissionReply, *, message: str | None = None
) -> Call[AskView]:
    """Allow once, allow always in this session, or reject with a reason the agent hears."""
    path = f"/sessions/{segment(session)}/permissions/{segment(permission_id)}/reply"
    return post(path, _ask, ReplyPermission(reply=reply, message=message))


def answer_question(
    session: str, question_id: str, answers: Sequence[Sequence[str] | str] = (), *, result: Any = None
) -> Call[AskView]:
    """Answer each question with one text, or with several where several may be chosen; a call with its result."""
    given = tuple((each,) if isinstance(each, str) else tuple(each) for each in answers)
    path = f"/sessions/{segment(session)}/questions/{segment(question_id)}/reply"
    return post(path, _ask, ReplyQuestion(answers=given, result=result))


def reject_question(session: str, question_id: str, *, message: str | None = None) -> Call[AskView]:
    """Decline to answer."""
    path = f"/sessions/{segment(session)}/questions/{segment(question_id)}/reject"
    return post(path, _ask, RejectQuestion(message=message))
