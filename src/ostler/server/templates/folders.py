"""The files of a template: what a folder may hold, its digest, and how it is stored."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import msgspec

from ostler.wire.templates import MOST_BYTES, MOST_FILES, TemplateFile

LONGEST_PATH = 512
Faults = list[tuple[str, str]]
"""Where something is wrong, and what."""


class Blob(msgspec.Struct, frozen=True, array_like=True):
    """One file as it is stored."""

    path: str
    executable: bool
    content: bytes


Folder = Mapping[str, Blob]
"""Files by their paths."""
_decoder = msgspec.msgpack.Decoder(list[Blob])


def folder_of(files: Iterable[TemplateFile], faults: Faults) -> Folder:
    """The files that were sent; what cannot be in a template goes to the faults."""
    found: dict[str, Blob] = {}
    lowered: dict[str, str] = {}
    for file in files:
        if (reason := _path_fault(file.path)) is not None:
            faults.append((file.path or "files", reason))
            continue
        if (other := lowered.setdefault(file.path.casefold(), file.path)) != file.path or file.path in found:
            faults.append((file.path, f"is the same name as {other} on some machines"))
            continue
        if (content := _content(file)) is None:
            faults.append((file.path, "needs either text or base64"))
            continue
        found[file.path] = Blob(file.path, file.executable, content)
    _check_size(found, faults)
    return found


def _path_fault(path: str) -> str | None:
    parts = path.split("/")
    if not path or len(path) > LONGEST_PATH or not path.isprintable() or "\\" in path:
        return "is no path of a file"
    if path.startswith("/") or any(part in {"", ".", ".."} for part in parts):
        return "must be below the template's folder"
    return "belongs to git and cannot be part of a template" if ".git" in parts else None


def _content(file: TemplateFile) -> bytes | None:
    if (file.text is None) == (file.base64 is None):
        return None
    if file.text is not None:
        return file.text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(file.base64 or "", validate=True)
    except ValueError:  # also for letters that base64 does not have
        return None


def _check_size(folder: Folder, faults: Faults) -> None:
    if len(folder) > MOST_FILES:
        faults.append(("files", f"are {len(folder)}, and a template has at most {MOST_FILES}"))
    if (size := size_of(folder)) > MOST_BYTES:
        faults.append(("files", f"have {size} bytes together, and a template has at most {MOST_BYTES}"))


def size_of(folder: Folder) -> int:
    """How many bytes the files have together."""
    return sum(len(blob.content) for blob in folder.values())


def revision_of(folder: Folder) -> str:
    """The name of this state: the same files always have the same."""
    digest = hashlib.sha256()
    for path in sorted(folder):
        blob = folder[path]
        mark = "x" if blob.executable else "-"
        digest.update(f"{path}\0{mark}\0{hashlib.sha256(blob.content).hexdigest()}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def packed(folder: Folder) -> bytes:
    """The files for the store, as they are."""
    return msgspec.msgpack.encode([folder[path] for path in sorted(folder)])


def unpacked(content: bytes) -> Folder:
    """The files out of the store."""
    return {blob.path: blob for blob in _decoder.decode(content)}


def sent(blob: Blob) -> TemplateFile:
    """A file for a client."""
    try:
        return TemplateFile(path=blob.path, text=blob.content.decode(), executable=blob.executable)
    except UnicodeDecodeError:
        return TemplateFile(path=blob.path, base64=base64.b64encode(blob.content).decode(), executable=blob.executable)


def skill_of(path: str) -> str | None:
    """The skill that a file describes."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) == 3 and parts[0] == "skills" and parts[2] == "SKILL.md" else None
