"""Every error Ostler raises on purpose: a stable code, an HTTP status, and a sentence with the next step."""

from ostler.base.errors import (  # noqa: F401  parts of the table
    access,
    commands,
    delivery,
    fleets,
    prompts,
    runners,
    schedules,
    servers,
    templates,
    triggers,
    turns,
    webhooks,
)
from ostler.base.errors.error import OstlerError as OstlerError


class InvalidRequest(OstlerError):
    """The request does not have the shape the operation needs."""

    code, status, title = "invalid_request", 400, "Invalid request"
    template = "{reason}"


class Unauthorized(OstlerError):
    """No token, or a wrong one."""

    code, status, title = "token_invalid", 401, "Token missing or wrong"
    template = "{reason} Send `Authorization: Bearer <token>`; the token is the one given to `ostler serve --token`."


class Forbidden(OstlerError):
    """Whoever asks is known but may not do this."""

    code, status, title = "forbidden", 403, "Not allowed"
    template = "{actor} is {role} here, and this needs {needed}. Ask an admin, or use another credential."


class ForeignHost(OstlerError):
    """The Host or Origin header names a site this server does not answer for."""

    code, status, title = "foreign_origin", 403, "Foreign host or origin"
    template = "The {header} header names '{value}', which this server does not answer for. {hint}"


class NotFound(OstlerError):
    """No such route."""

    code, status, title = "not_found", 404, "Not found"
    template = "There is no {what} '{value}'. {hint}"


class SessionNotFound(OstlerError):
    """No such session in this project."""

    code, status, title = "session_not_found", 404, "Session not found"
    template = "There is no session '{session}'. List sessions with `ostler sessions list`."


class AskNotFound(OstlerError):
    """The session never asked that."""

    code, status, title = "ask_not_found", 404, "Ask not found"
    template = "Session '{session}' has no {kind} '{ask}'. List open asks with `ostler asks list`."


class QueueEntryNotFound(OstlerError):
    """The prompt is not waiting any more, or never was."""

    code, status, title = "queue_entry_not_found", 404, "Not in the queue"
    template = "No waiting prompt '{prompt}' in session '{session}'; it may have started already."


class UnsupportedAgent(OstlerError):
    """No agent of that name is known."""

    code, status, title = "unsupported_agent", 404, "Unknown agent"
    template = "There is no agent '{agent}'. Known agents: {known}."


class WorkspaceNotFound(OstlerError):
    """No such workspace on this runner."""

    code, status, title = "workspace_not_found", 404, "Workspace not found"
    template = "There is no workspace '{workspace}' on this runner. It may have been deleted just now."


class WorkspaceLost(WorkspaceNotFound):
    """Somebody removed files of a workspace from outside."""

    code, status, title = "workspace_lost", 410, "Workspace lost"
    template = (
        "The files of workspace '{workspace}' are gone: {missing} is missing. The session's log is still there. "
        "Fork a turn that was kept, or delete the session."
    )


class WorkspaceRemoved(OstlerError):
    """A workspace was removed because its session had ended and room was needed."""

    code, status, title = "workspace_removed", 410, "Workspace removed"
    template = (
        "The workspace of session '{session}' was removed at {when}: {why}. The session and its log are still there. "
        "The settings kept_workspaces, kept_workspaces_days and kept_workspaces_bytes say what is kept."
    )


class SnapshotNotFound(OstlerError):
    """The workspace has no such snapshot."""

    code, status, title = "snapshot_not_found", 404, "Snapshot not found"
    template = "There is no snapshot '{snapshot}'. List the snapshots of the workspace to see which there are."


class TurnNotKept(OstlerError):
    """There is no snapshot of that turn."""

    code, status, title = "turn_not_kept", 404, "Turn not kept"
    template = "Session '{session}' has no snapshot of turn {turn}; the last one is of turn {last}."


class NotInConversation(OstlerError):
    """A rewind took that turn out of the conversation."""

    code, status, title = "turn_rewound", 409, "Turn was rewound"
    template = "Turn {turn} of session '{session}' was rewound, so there is no way back to it. Fork it instead."


class FileMissing(OstlerError):
    """Nothing has that name in the workspace."""

    code, status, title = "file_not_found", 404, "File not found"
    template = "There is no {what} '{path}' in the workspace."


class RangeNotSatisfiable(OstlerError):
    """A file has no such bytes."""

    code, status, title = "range_not_satisfiable", 416, "Range not satisfiable"
    template = "The range '{range}' lies outside of the file, which has {size} bytes."


class PathRefused(OstlerError):
    """A path of a client or a link of an agent leads out of the workspace."""

    code, status, title = "path_refused", 403, "Path refused"
    template = "The path '{path}' {reason}. Give the path of an ordinary file or folder inside the workspace."


class PathTaken(OstlerError):
    """Something is there already, and was not to be replaced."""

    code, status, title = "path_taken", 409, "Something is there"
    template = "There is a file or folder '{path}' already. Choose another name, or send `overwrite`."


class RepositoryRefused(OstlerError):
    """The policy of this server does not allow that repository."""

    code, status, title = "repository_refused", 422, "Repository refused"
    template = "'{url}' cannot be used: {reason}"


class AddressRefused(OstlerError):
    """The rules of this server do not allow that address of the network."""

    code, status, title = "address_refused", 422, "Address refused"
    template = "{field}: the address '{address}' cannot be used: {reason}"


class RepositoryFailed(OstlerError):
    """A repository could not be fetched."""

    code, status, title = "repository_failed", 502, "Repository not available"
    template = "The repository '{url}' could not be fetched: {reason}"


class ArchiveRefused(OstlerError):
    """An uploaded archive holds something that is not unpacked."""

    code, status, title = "archive_refused", 422, "Archive refused"
    template = "The archive was not unpacked: {reason}"


class ProviderUnavailable(OstlerError):
    """No snapshot provider fits."""

    code, status, title = "provider_unavailable", 422, "No snapshot provider"
    template = "No workspace could be made with {wanted}: {reasons}"


class WorkspaceBusy(OstlerError):
    """Something still runs in the workspace."""

    code, status, title = "workspace_busy", 409, "Workspace busy"
    template = "Workspace '{workspace}' is in use by {count} processes. Stop the agent first, then {verb} it."


class NoWorkspace(OstlerError):
    """The session works in a folder as it is, or its workspace is not there yet."""

    code, status, title = "no_workspace", 409, "No workspace"
    template = "Session '{session}' has no workspace{why}"


class SetupFailed(OstlerError):
    """The setup command of a workspace did not succeed."""

    code, status, title = "setup_failed", 422, "Setup failed"
    template = "The setup command failed with {exit}. Its last words: {output}"


class TaskFailed(OstlerError):
    """The agent did not come to the end of a task."""

    code, status, title = "task_failed", 422, "Task failed"
    template = "The task was not done: {reason}"


class RuntimeRefused(OstlerError):
    """The policy of this server or its machine does not allow that runtime."""

    code, status, title = "runtime_refused", 422, "Runtime refused"
    template = "The runtime '{runtime}' cannot be used: {reason}"


class DeliveryFailed(OstlerError):
    """The result could not be handed over."""

    code, status, title = "delivery_failed", 502, "Delivery failed"
    template = "The {what} was not delivered: {reason}"


class NothingToDeliver(OstlerError):
    """The workspace is as it was in the beginning."""

    code, status, title = "nothing_to_deliver", 422, "Nothing to deliver"
    template = "Workspace '{workspace}' has no changes{but}, so there is nothing to deliver."


class MethodNotAllowed(OstlerError):
    """The route exists, the method does not."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"
    template = "{method} is not possible on {path}."


class NotAcceptable(OstlerError):
    """The client takes no form of answer that the operation has."""

    code, status, title = "not_acceptable", 406, "Not acceptable"
    template = "The Accept header '{given}' names nothing this answers with. Accept {possible}."


class RequestTimeout(OstlerError):
    """The request's body did not arrive in time."""

    code, status, title = "request_timeout", 408, "Request timed out"
    template = "The request was not complete within {seconds} seconds. Send it again."


class SessionEndedError(OstlerError):
    """The session is over."""

    code, status, title = "session_ended", 409, "Session ended"
    template = "Session '{session}' is {status}; it takes no more {what}. Create a new session."


class SessionBusy(OstlerError):
    """A turn is under way and the client asked not to wait."""

    code, status, title = "session_busy", 409, "Session busy"
    template = "Session '{session}' is working on turn {turn}. Use when_busy queue, steer or interrupt, or wait."


class LogFull(OstlerError):
    """The events of a session take as much room as they may."""

    code, status, title = "log_full", 409, "Log full"
    template = (
        "The log of session '{session}' has {size} bytes; the setting max_log_bytes allows {limit}. "
        "Create a new session, or raise the setting and start the server again."
    )


class SettingsInUse(OstlerError):
    """A message or a client wants other settings of the agent while it works, or while messages wait."""

    code, status, title = "settings_in_use", 409, "Settings in use"
    template = (
        "{fields} cannot be changed now: session '{session}' is working or has messages that wait. "
        "Wait until it is idle, or interrupt its turn, and send this again."
    )


class SettingsFixed(OstlerError):
    """A later message wants something else than the session was created with."""

    code, status, title = "settings_fixed", 409, "Settings fixed"
    template = "{field} of session '{session}' is '{value}' and cannot be changed. Leave it out, or use a new session."


class InvalidTransition(OstlerError):
    """The session's status does not allow this."""

    code, status, title = "invalid_transition", 409, "Not possible now"
    template = "Session '{session}' is {status}; it cannot {verb}."


class SessionAlreadyExists(OstlerError):
    """The key is taken by a session of another agent."""

    code, status, title = "session_already_exists", 409, "Key already used"
    template = "Key '{key}' belongs to a session of agent '{agent}'. Choose another key."


class AskResolved(OstlerError):
    """Somebody else answered first."""

    code, status, title = "ask_resolved", 409, "Already answered"
    template = "The {kind} '{ask}' was already decided: {outcome}."


class TooLarge(OstlerError):
    """The body is larger than the server takes."""

    code, status, title = "too_large", 413, "Request too large"
    template = "The body is larger than {limit} bytes. Send less, or raise the setting `{setting}`."


class TooManyWrongTokens(OstlerError):
    """An address has sent wrong tokens, wrong signatures to triggers or wrong answers of a provider too often."""

    code, status, title = "too_many_wrong_tokens", 429, "Too many wrong tokens"
    template = (
        "More than {limit} wrong tokens came from this address within a minute. "
        "Try again in {retry_after} seconds with the right one."
    )


class TooManyStreams(OstlerError):
    """A client has as many event streams open as it may."""

    code, status, title = "too_many_streams", 429, "Too many streams"
    template = (
        "The client {client} has {limit} event streams open. Close one, or raise the setting `max_streams_per_client`."
    )


class HeadersTooLarge(OstlerError):
    """The request line and headers are longer or more than the server takes."""

    code, status, title = "headers_too_large", 431, "Headers too large"
    template = "The request has more than {limit} {what}. {hint}"


class UnsupportedMedia(OstlerError):
    """The body's content type is not one the operation reads."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"
    template = "Cannot read a body of type '{given}'. Send {possible}."


class Unprocessable(OstlerError):
    """The request is well formed but asks for something impossible."""

    code, status, title = "unprocessable", 422, "Cannot be done"
    template = "{reason}"


class IdempotencyConflict(OstlerError):
    """An Idempotency-Key came back with another body."""

    code, status, title = "idempotency_conflict", 422, "Idempotency key reused"
    template = "Idempotency-Key '{key}' was used before with another request. Use a new key."


class AgentNotInstalled(OstlerError):
    """The agent's program is not there."""

    code, status, title = "agent_not_installed", 424, "Agent not installed"
    template = (
        "Agent '{agent}' is not installed (looked in {looked_in}). Install it with `ostler agents install {agent}`."
    )


class InstallFailed(OstlerError):
    """Installing an agent did not work."""

    code, status, title = "install_failed", 502, "Installation failed"
    template = "Could not install '{agent}': {reason}"


class VersionNotOffered(InstallFailed):
    """The wanted version of an agent cannot be had."""

    code, status, title = "version_not_offered", 422, "Version not offered"
    template = "Version '{version}' of agent '{agent}' is not on offer; {installed} is installed."


class AgentStartFailed(OstlerError):
    """The agent's process did not come up."""

    code, status, title = "agent_start_failed", 502, "Agent did not start"
    template = "Agent '{agent}' did not start: {reason}"


class AgentExited(OstlerError):
    """The agent's process ended in the middle of its work."""

    code, status, title = "agent_process_exited", 502, "Agent exited"
    template = "Agent '{agent}' exited with {exit} during a turn. The next prompt starts it again."


class AgentLost(OstlerError):
    """A process of an earlier server cannot be gone on with."""

    code, status, title = "agent_lost", 502, "Agent lost"
    template = "The agent of this turn was lost: {reason} Send the prompt again to go on."


class StoreUnavailable(OstlerError):
    """Nothing can be written now."""

    code, status, title = "store_unavailable", 503, "Cannot write"
    template = "The server cannot write: {reason}. Nothing was changed. See to its disk or database and try again."


class StoreUnreadable(StoreUnavailable):
    """Nothing can be read now, as while the database is away."""

    code, title = "store_unreadable", "Cannot read"
    template = "The server cannot read from its database: {reason}. Try again in a moment, or see to the database."


class Stopping(OstlerError):
    """The server is going down."""

    code, status, title = "stopping", 503, "Server is stopping"
    template = "The server is stopping. Try again in a moment."


class TimedOut(OstlerError):
    """Something did not answer in time."""

    code, status, title = "timeout", 504, "Timed out"
    template = "{what} did not answer within {seconds} seconds. {hint}"


class InternalError(OstlerError):
    """A bug of ours."""

    code, status, title = "internal_error", 500, "Internal error"
    template = "Something went wrong in the server (reference {reference}). The server's log has the details."


class NotSupported(OstlerError):
    """A part of a protocol that this server does not have."""

    code, status, title = "not_supported", 501, "Not supported"
    template = "{reason}"


class SettingsError(OstlerError):
    """A setting has a value that cannot work."""

    code, status, title = "settings_error", 500, "Bad setting"
    template = "Setting {name}={value}: {reason}"


class DatabaseInUse(OstlerError):
    """Another server has the database."""

    code, status, title = "database_in_use", 500, "Database in use"
    template = "Another Ostler server{holder} uses {path}. Stop it, or choose another folder with --state-dir."


class DatabaseTooNew(OstlerError):
    """The database was written by a newer version."""

    code, status, title = "database_too_new", 500, "Database too new"
    template = (
        "{path} has schema {found}, this version knows {known}. Install a newer Ostler, or use another --state-dir."
    )


def _subclasses(kind: type[OstlerError]) -> list[type[OstlerError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _subclasses(child))]


ERRORS: tuple[type[OstlerError], ...] = tuple(_subclasses(OstlerError)[1:])
