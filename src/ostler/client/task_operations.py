"""The operations on tasks, workspaces and files; `operations.py` has the others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ostler.client.calls import Call, delete, get, post, put, segment
from ostler.wire.delivery import DeliverSession, DeliveryPlan
from ostler.wire.events import PermissionMode
from ostler.wire.runners import DrainRunner, NewRunnerToken, RunnerInfo, RunnerList, RunnerTokenIssued
from ostler.wire.sessions import Page, Session, SnapshotList
from ostler.wire.tasks import (
    CreateTask,
    Delivered,
    HandoffSession,
    RuntimeList,
    TaskCreated,
    TaskProvider,
    UploadTicket,
)
from ostler.wire.workspaces import (
    AppliedChanges,
    ApplyChanges,
    ArchiveForm,
    ArtifactList,
    DeliveryMode,
    Difference,
    FileEntry,
    FileListing,
    FileMatches,
    FilePaths,
    FolderListing,
    ForgeKind,
    ForkSession,
    GitRefs,
    Ide,
    IdeCommands,
    MadeRepository,
    OpenIde,
    RepoCredential,
    RewindSession,
    Undone,
    UndoTurn,
    Upload,
    WorkspaceInfo,
)

T = TypeVar("T")
_LONG_SECONDS = 600.0
"""For what moves many files or waits for another server."""
_session = msgspec.json.Decoder(Session).decode


def _reads(kind: type[T]) -> Callable[[bytes], T]:
    return msgspec.json.Decoder(kind).decode


def _place(session: str, rest: str) -> str:
    return f"/sessions/{segment(session)}/{rest}"


def _patient(call: Call[T]) -> Call[T]:
    return msgspec.structs.replace(call, timeout=_LONG_SECONDS)


# Tasks


def create_task(task: CreateTask | Mapping[str, Any]) -> Call[TaskCreated]:
    """Order work; the body as the tasks API has it, as a struct or as plain data."""
    body = task if isinstance(task, CreateTask) else msgspec.convert(task, CreateTask)
    return post("/tasks", _reads(TaskCreated), body)


def list_tasks(
    *,
    status: str | None = None,
    agent: str | None = None,
    project_id: str | None = None,
    page: int | None = None,
    per_page: int | None = None,
) -> Call[Page[Session]]:
    """One page of the sessions that tasks started, newest first."""
    return get(
        "/tasks",
        _reads(Page[Session]),
        status=status,
        agent=agent,
        project_id=project_id,
        page=page,
        per_page=per_page,
    )


def get_task(session: str) -> Call[Session]:
    """The session that works on a task."""
    return get(f"/tasks/{segment(session)}", _session)


# Workspaces


def get_workspace(session: str) -> Call[WorkspaceInfo]:
    """Where the workspace of a session is, and what made it."""
    return get(_place(session, "workspace"), _reads(WorkspaceInfo))


def open_ide(session: str, ide: Ide) -> Call[IdeCommands]:
    """The commands that open the workspace in an editor."""
    return post(_place(session, "open/ide"), _reads(IdeCommands), OpenIde(ide=ide))


def list_snapshots(session: str) -> Call[SnapshotList]:
    """What was kept of the workspace: its beginning, and its state after every turn."""
    return get(_place(session, "snapshots"), _reads(SnapshotList))


def get_diff(
    session: str,
    *,
    old: str | None = None,
    new: str | None = None,
    turn: int | None = None,
    context: int | None = None,
    summary: bool = False,
) -> Call[Difference]:
    """The changed files: since the beginning, between two states, or of one turn."""
    decode = _reads(Difference)
    call = get(_place(session, "diff"), decode, old=old, new=new, turn=turn, context=context, summary=summary)
    return _patient(call)


def get_patch(session: str, *, old: str | None = None, new: str | None = None, turn: int | None = None) -> Call[bytes]:
    """The changes as a patch that `git apply` takes."""
    return _patient(get(_place(session, "patch"), bytes, old=old, new=new, turn=turn))


def rewind_session(session: str, turn: int) -> Call[Session]:
    """Go back to the end of a turn: files, conversation and the agent's memory."""
    return _patient(post(_place(session, "rewind"), _session, RewindSession(turn=turn)))


def restore_snapshot(session: str, snapshot: str) -> Call[Session]:
    """Put the files back to a snapshot; the conversation stays."""
    return _patient(post(_place(session, f"snapshots/{segment(snapshot)}/restore"), _session))


def undo_turn(
    session: str,
    turn: int | None = None,
    *,
    paths: Sequence[str] | None = None,
    lines: tuple[int, int] | None = None,
) -> Call[Undone]:
    """Take back what a turn changed in the files; the conversation, and what was changed since, stay.

    Without a turn, what was changed in these `paths` since the beginning; with `lines`, only there.
    """
    body = UndoTurn(turn=turn, paths=tuple(paths) if paths is not None else None, lines=lines)
    return _patient(post(_place(session, "undo"), _reads(Undone), body))


def apply_changes(session: str, paths: Sequence[str], *, lines: tuple[int, int] | None = None) -> Call[AppliedChanges]:
    """Bring files, or lines of one, into the folder that the workspace was made from; the rest may follow later."""
    body = ApplyChanges(paths=tuple(paths), lines=lines)
    return _patient(post(_place(session, "apply"), _reads(AppliedChanges), body))


def init_git(session: str) -> Call[MadeRepository]:
    """Make the session's own folder a git repository with a commit of what is there, for sessions that begin later."""
    return _patient(post(_place(session, "git"), _reads(MadeRepository)))


def fork_session(
    session: str, *, turn: int | None = None, key: str | None = None, title: str | None = None
) -> Call[Session]:
    """A new session that begins as this one was at the end of a turn."""
    return _patient(post(_place(session, "fork"), _session, ForkSession(turn=turn, key=key, title=title)))


def plan_delivery(session: str) -> Call[DeliveryPlan]:
    """What a delivery would be if nothing else is said, and what the last one was."""
    return _patient(get(_place(session, "delivery"), _reads(DeliveryPlan)))


def hand_over_session(
    session: str,
    agent: str,
    *,
    model: str | None = None,
    variant: str | None = None,
    mode: str | None = None,
    permission_mode: PermissionMode | None = None,
    provider: TaskProvider | None = None,
    message: str | None = None,
    fork: bool = False,
) -> Call[Session]:
    """Let another agent take the next turn, with the same files and what was said so far; gives the session it has."""
    body = HandoffSession(
        agent=agent,
        model=model,
        variant=variant,
        mode=mode,
        permission_mode=permission_mode,
        provider=provider,
        message=message,
        fork=fork,
    )
    return _patient(post(_place(session, "handoff"), _session, body))


def deliver_session(
    session: str,
    mode: DeliveryMode | None = None,
    *,
    target: str | None = None,
    branch: str | None = None,
    title: str | None = None,
    body: str | None = None,
    message: str | None = None,
    draft: bool = False,
    token: str | None = None,
    forge: ForgeKind | None = None,
    api_url: str | None = None,
    paths: Sequence[str] | None = None,
) -> Call[Delivered]:
    """Hand over what the workspace holds now; what is not given is as `delivery` shows it."""
    wanted = DeliverSession(
        mode=mode,
        target=target,
        branch=branch,
        title=title,
        body=body,
        message=message,
        draft=draft,
        credential=RepoCredential(token=token) if token is not None else None,
        forge=forge,
        api_url=api_url,
        paths=tuple(paths) if paths is not None else None,
    )
    return _patient(post(_place(session, "deliver"), _reads(Delivered), wanted))


def merge_session(session: str) -> Call[Session]:
    """Have the forge merge the session's pull request."""
    return _patient(post(_place(session, "merge"), _session))


# Files


def list_files(session: str, path: str = "", *, limit: int | None = None) -> Call[FileListing]:
    """What is in a folder of the workspace."""
    return get(_place(session, "files"), _reads(FileListing), path=path, limit=limit)


def stat_file(session: str, path: str) -> Call[FileEntry]:
    """What a name is."""
    return get(_place(session, "files/stat"), _reads(FileEntry), path=path)


def read_file(session: str, path: str) -> Call[bytes]:
    """The content of a file."""
    return _patient(get(_place(session, "files/content"), bytes, path=path))


def show_image(session: str, path: str) -> Call[bytes]:
    """A picture that the session names: in its folder, or of one of its prompts."""
    return _patient(get(_place(session, "files/image"), bytes, path=path))


def write_file(session: str, path: str, content: bytes, *, executable: bool | None = None) -> Call[FileEntry]:
    """Write a file whole; folders are made."""
    call = put(_place(session, "files/content"), _reads(FileEntry), content, path=path, executable=executable)
    return _patient(call)


def remove_file(session: str, path: str) -> Call[None]:
    """Remove a file or an empty folder."""
    return msgspec.structs.replace(delete(_place(session, "files/content")), params=(("path", path),))


def search_files(
    session: str, text: str = "", *, name: str | None = None, ignore_case: bool = False, limit: int | None = None
) -> Call[FileMatches]:
    """Lines that hold a text; without a text, files by name."""
    decode = _reads(FileMatches)
    return get(_place(session, "files/search"), decode, text=text, name=name, ignore_case=ignore_case, limit=limit)


def list_paths(session: str, *, limit: int | None = None) -> Call[FilePaths]:
    """The paths of all files, but for those that tools make."""
    return get(_place(session, "files/paths"), _reads(FilePaths), limit=limit)


def archive_files(session: str, form: ArchiveForm = "tar") -> Call[bytes]:
    """The whole workspace without its .git."""
    return _patient(get(_place(session, "files/archive"), bytes, form=form))


def list_artifacts(session: str) -> Call[ArtifactList]:
    """The files that the agent wrote or edited with its tools."""
    return get(_place(session, "artifacts"), _reads(ArtifactList))


# What tasks can be ordered with


def list_runtimes() -> Call[RuntimeList]:
    """What agents can run in."""
    return get("/runtimes", _reads(RuntimeList))


def list_folders(path: str = "", *, limit: int | None = None) -> Call[FolderListing]:
    """The folders of the machine that sessions may use; without a path, where one may begin."""
    return get("/folders", _reads(FolderListing), path=path, limit=limit)


def list_refs(url: str) -> Call[GitRefs]:
    """The branches and tags of a repository."""
    return _patient(get("/git/refs", _reads(GitRefs), url=url))


def create_upload() -> Call[UploadTicket]:
    """An address to send an archive to."""
    return post("/uploads", _reads(UploadTicket))


def send_upload(ticket: UploadTicket | str, content: bytes) -> Call[Upload]:
    """Send an archive; its ticket's token then goes into repo.upload."""
    token = ticket if isinstance(ticket, str) else ticket.token
    return _patient(put(f"/uploads/{segment(token)}", _reads(Upload), content))


# The machines that run agents


def list_runners() -> Call[RunnerList]:
    """The machines that run agents."""
    return get("/runners", _reads(RunnerList))


def get_runner(runner: str) -> Call[RunnerInfo]:
    """One runner, by its id or its name."""
    return get(f"/runners/{segment(runner)}", _reads(RunnerInfo))


def create_runner_token(
    *, labels: Mapping[str, str] | None = None, uses: int | None = 1, expires_in_seconds: float | None = 86400.0
) -> Call[RunnerTokenIssued]:
    """A token that new runners register with; its labels are theirs. None is no limit."""
    wanted = NewRunnerToken(labels=dict(labels or {}), uses=uses, expires_in_seconds=expires_in_seconds)
    return post("/runners/tokens", _reads(RunnerTokenIssued), wanted)


def drain_runner(runner: str, *, deadline_seconds: float | None = None) -> Call[RunnerInfo]:
    """Place no more sessions on a runner, and move those that it has; None is the server's own deadline."""
    wanted = DrainRunner(deadline_seconds=deadline_seconds)
    return post(f"/runners/{segment(runner)}/drain", _reads(RunnerInfo), wanted)


def resume_runner(runner: str) -> Call[RunnerInfo]:
    """Place sessions on a runner again."""
    return post(f"/runners/{segment(runner)}/resume", _reads(RunnerInfo))


def remove_runner(runner: str) -> Call[None]:
    """Revoke the key of a runner."""
    return delete(f"/runners/{segment(runner)}")
