"""The templates of a project: pushed, listed, compared and given back."""

import difflib
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from ostler.base.clock import Clock
from ostler.base.errors import InvalidRequest
from ostler.base.errors.templates import RevisionNotFound, TemplateInvalid, TemplateNotFound
from ostler.server.store.templates import RevisionRow, TagRow, Templates
from ostler.server.templates import folders
from ostler.server.templates.folders import Blob, Faults, Folder
from ostler.server.templates.reading import Definition, definition_of
from ostler.wire.prompts import NAME
from ostler.wire.templates import (
    LATEST,
    PushTemplate,
    TagTemplate,
    TemplateChange,
    TemplateDifference,
    TemplateFiles,
    TemplateRevision,
)

_NAME = re.compile(NAME)
_NO_TAG = "is no tag: use lower-case letters, digits and ._-"
_MOST_DIFF_LINES = 5000
_about = msgspec.json.Decoder(TemplateRevision).decode


class Pushed(NamedTuple):
    """A revision, and whether it was not there before."""

    revision: TemplateRevision
    is_new: bool


async def push(store: Templates, project: str, wanted: PushTemplate, clock: Clock) -> Pushed:
    """Store a folder as a revision, unless something is wrong with it: then all of that is told."""
    faults: Faults = []
    folder = folders.folder_of(wanted.files, faults)
    definition = definition_of(folder, faults)
    faults.extend((f"tags: {tag}", _NO_TAG) for tag in _no_tags(wanted.tags))
    if faults:
        raise _refused(faults)
    about = _described(folder, definition, clock.now(), wanted.commit)
    row = RevisionRow(
        project=project,
        name=about.name,
        revision=about.revision,
        about=msgspec.json.encode(about),
        created_at=about.created_at,
    )
    if wanted.check:
        return Pushed(about, is_new=False)
    is_new = await store.add(row, folders.packed(folder), (LATEST, *wanted.tags))
    return Pushed(await one(store, project, about.name, about.revision), is_new)


def _no_tags(tags: Sequence[str]) -> list[str]:
    return [tag for tag in tags if not _NAME.fullmatch(tag)]


def _refused(faults: Faults) -> TemplateInvalid:
    errors: dict[str, list[str]] = {}
    for place, reason in faults:
        errors.setdefault(place, []).append(reason)
    first, reason = faults[0]
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return TemplateInvalid(first=f"{first} {reason}", more=more, errors=errors)


def _described(folder: Folder, definition: Definition, now: str, commit: str | None) -> TemplateRevision:
    manifest = definition.manifest
    return TemplateRevision(
        name=manifest.name,
        revision=folders.revision_of(folder),
        created_at=now,
        description=manifest.description,
        version=manifest.version,
        license=manifest.license,
        agent=definition.agent.agent,
        variables=definition.variables,
        skills=tuple(skill.name for skill in definition.skills),
        code_tools=tuple(tool.name for tool in definition.code_tools),
        metadata=manifest.metadata,
        files=len(folder),
        size=folders.size_of(folder),
        commit=commit,
        has_prompt=bool(manifest.prompt),
    )


async def newest(store: Templates, project: str) -> tuple[TemplateRevision, ...]:
    """The revision that `latest` names, of each template."""
    tags = await store.tags(project)
    latest = {tag.name: tag.revision for tag in tags if tag.tag == LATEST}
    rows = [row for row in await store.revisions(project) if latest.get(row.name) == row.revision]
    return tuple(_shown(row, tags) for row in sorted(rows, key=lambda row: row.name))


async def revisions(store: Templates, project: str, name: str) -> tuple[TemplateRevision, ...]:
    """Those of one template, the newest first."""
    rows, tags = await store.revisions(project, name), await store.tags(project, name)
    if not rows:
        raise TemplateNotFound(name=name)
    return tuple(_shown(row, tags) for row in rows)


async def one(store: Templates, project: str, name: str, revision: str) -> TemplateRevision:
    """One revision, by a tag or its own name."""
    row, tags = await _row(store, project, name, revision)
    return _shown(row, tags)


async def files(store: Templates, project: str, name: str, revision: str) -> TemplateFiles:
    """A revision as it was pushed."""
    row, _ = await _row(store, project, name, revision)
    folder = await _folder(store, row)
    return TemplateFiles(name=name, revision=row.revision, files=tuple(map(folders.sent, folder.values())))


async def found(store: Templates, project: str, reference: str) -> tuple[RevisionRow, Definition]:
    """What `name`, `name@tag` or `name@sha256:...` names."""
    name, _, revision = reference.partition("@")
    row, _ = await _row(store, project, name, revision or LATEST)
    return row, definition_of(await _folder(store, row), [])


async def tag(store: Templates, project: str, name: str, wanted: TagTemplate) -> TemplateRevision:
    """Set a tag."""
    if _no_tags((wanted.tag,)) or wanted.tag == LATEST:
        reason = "is set by every push" if wanted.tag == LATEST else _NO_TAG
        raise InvalidRequest(reason=f"tag '{wanted.tag[:80]}' {reason}.", errors={"tag": [reason]})
    row, _ = await _row(store, project, name, wanted.revision)
    await store.tag(project, name, wanted.tag, row.revision)
    return await one(store, project, name, row.revision)


async def remove(store: Templates, project: str, name: str) -> None:
    """Forget a template with all its revisions; sessions that began with it go on."""
    if not await store.remove(project, name):
        raise TemplateNotFound(name=name)


async def difference(store: Templates, project: str, name: str, old: str, new: str) -> TemplateDifference:
    """What differs between two revisions."""
    before, after = [(await _row(store, project, name, which))[0] for which in (old, new)]
    left, right = await _folder(store, before), await _folder(store, after)
    paths = sorted({*left, *right})
    changes = [_change(path, left.get(path), right.get(path)) for path in paths if left.get(path) != right.get(path)]
    return TemplateDifference(name=name, old=before.revision, new=after.revision, changes=tuple(changes))


def _change(path: str, old: Blob | None, new: Blob | None) -> TemplateChange:
    texts = [_lines(blob) for blob in (old, new)]
    diff = None
    if texts[0] is not None and texts[1] is not None and len(texts[0]) + len(texts[1]) <= _MOST_DIFF_LINES:
        diff = "".join(difflib.unified_diff(texts[0], texts[1], f"a/{path}", f"b/{path}"))
    change: Literal["added", "removed", "changed"] = "added" if old is None else "removed" if new is None else "changed"
    return TemplateChange(path=path, change=change, diff=diff)


def _lines(blob: Blob | None) -> list[str] | None:
    try:
        return [] if blob is None else blob.content.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        return None


async def _row(store: Templates, project: str, name: str, which: str) -> tuple[RevisionRow, list[TagRow]]:
    rows, tags = await store.revisions(project, name), await store.tags(project, name)
    if not rows:
        raise TemplateNotFound(name=name)
    tagged = next((tag.revision for tag in tags if tag.tag == which), None)
    wanted = tagged or which
    for row in rows:
        if row.revision == wanted:
            return row, tags
    known = ", ".join(tag.tag for tag in tags)
    raise RevisionNotFound(name=name, revision=which[:80], known=known)


async def _folder(store: Templates, row: RevisionRow) -> Folder:
    content = await store.content(row.project, row.name, row.revision)
    if content is None:  # removed a moment ago
        raise TemplateNotFound(name=row.name)
    return folders.unpacked(content)


def _shown(row: RevisionRow, tags: list[TagRow]) -> TemplateRevision:
    mine = tuple(tag.tag for tag in tags if tag.name == row.name and tag.revision == row.revision)
    return msgspec.structs.replace(_about(row.about), tags=mine)
