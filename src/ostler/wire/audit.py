"""The audit log: one line for each change, each refused attempt and each use of a secret, chained by hashes."""

import hashlib
from typing import Literal

import msgspec

from ostler.wire.struct import Answer

AuditOutcome = Literal["done", "failed", "refused"]
BEGINNING = "0" * 64
"""What the first line of a tenant has as the hash of the one before it."""


class AuditLine(Answer, frozen=True, kw_only=True):
    """Something that an actor did, or tried to do."""

    tenant: str
    number: int
    """Counts the lines of a tenant from 1 without gaps."""
    id: str
    at: str
    project: str
    """The id of the project that it was about."""
    actor: str
    """`local`, `token`, `key:` and the id of an API key, `trigger`, `runner`; `unknown` without a credential."""
    action: str
    """The operation, such as `keys.create`; the method and path for what was refused before there was one."""
    outcome: AuditOutcome
    """`failed`: the server could not finish it, and may have changed something."""
    status: int
    """How the request was answered; 0 for what the server did without one."""
    target: str = ""
    """What it was about: the ids in the path, or the id of what was made."""
    client: str = ""
    """The address that asked."""
    count: int = 1
    """How many refused attempts of the same kind the line stands for."""
    previous: str
    """The hash of the line before it; 64 zeros for the first."""
    hash: str
    """SHA-256, in hexadecimal digits, of the line as it is sent, without `hash`: fields sorted by name, no spaces."""


class AuditHead(Answer, frozen=True, kw_only=True):
    """The newest line of a tenant: who kept an earlier one elsewhere can tell that nothing before it was changed."""

    number: int
    hash: str


class AuditPage(Answer, frozen=True, kw_only=True):
    """Lines, the newest first."""

    items: tuple[AuditLine, ...]
    head: AuditHead
    removed: AuditHead
    """The last line that was removed because of its age (`audit_days`): the first that is kept follows it. Number 0 if
    none was."""
    next_before: int | None = None
    """The `before` of the next page; absent at the end."""


def hash_of(line: AuditLine) -> str:
    """The hash that a line must have."""
    fields = msgspec.to_builtins(line)
    del fields["hash"]
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()


class Chain:
    """Goes along the lines of one tenant, from the first to the newest, and says what is wrong with them."""

    def __init__(self, removed: AuditHead | None = None) -> None:
        """`removed` is the last line that was removed because of its age."""
        self.head = removed or AuditHead(number=0, hash=BEGINNING)
        self.begins_after = self.head.number

    def fault(self, line: AuditLine) -> str | None:
        """Why a line is not the one that was written after those before it; None if it is."""
        number = self.head.number + 1
        if line.number != number:
            return f"Line {number} is not there: line {line.number} follows line {number - 1}."
        if line.previous != self.head.hash:
            return f"Line {number} does not follow line {number - 1}: one of them was changed or put in."
        if hash_of(line) != line.hash:
            return f"Line {number} was changed: its hash does not fit."
        self.head = AuditHead(number=number, hash=line.hash)
        return None

    def fault_of_end(self, head: AuditHead) -> str | None:
        """Why these are not all lines up to a head; None if they are."""
        if self.head.number < head.number:
            return f"The lines after line {self.head.number} are not there: there were {head.number}."
        return None if head == self.head else f"Line {self.head.number} is not the newest that was written."
