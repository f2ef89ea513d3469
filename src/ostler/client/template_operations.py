"""The operations on templates; part of the table."""

from collections.abc import Iterable

import msgspec

from ostler.client.calls import Call, delete, get, post, segment
from ostler.wire.templates import (
    PushTemplate,
    TagTemplate,
    TemplateDifference,
    TemplateFile,
    TemplateFiles,
    TemplateList,
    TemplateRevision,
    TemplateRevisions,
)

_revision = msgspec.json.Decoder(TemplateRevision).decode


def list_templates() -> Call[TemplateList]:
    """All templates, each as its tag `latest` has it."""
    return get("/templates", msgspec.json.Decoder(TemplateList).decode)


def push_template(
    files: Iterable[TemplateFile], *, tags: Iterable[str] = (), commit: str | None = None, check: bool = False
) -> Call[TemplateRevision]:
    """Store the files of a template as a revision; with `check` only say whether they would be taken."""
    return post("/templates", _revision, PushTemplate(files=tuple(files), tags=tuple(tags), commit=commit, check=check))


def show_template(name: str) -> Call[TemplateRevision]:
    """A template as its tag `latest` has it."""
    return get(f"/templates/{segment(name)}", _revision)


def list_revisions(name: str) -> Call[TemplateRevisions]:
    """The revisions of a template, the newest first."""
    return get(f"/templates/{segment(name)}/revisions", msgspec.json.Decoder(TemplateRevisions).decode)


def show_revision(name: str, revision: str) -> Call[TemplateRevision]:
    """One revision, by its name or a tag."""
    return get(f"/templates/{segment(name)}/revisions/{segment(revision)}", _revision)


def export_revision(name: str, revision: str = "latest") -> Call[TemplateFiles]:
    """The files of a revision as they were pushed."""
    path = f"/templates/{segment(name)}/revisions/{segment(revision)}/files"
    return get(path, msgspec.json.Decoder(TemplateFiles).decode)


def tag_revision(name: str, tag: str, revision: str) -> Call[TemplateRevision]:
    """Give a revision a tag; it moves if another one has it."""
    return post(f"/templates/{segment(name)}/tags", _revision, TagTemplate(tag=tag, revision=revision))


def diff_revisions(name: str, old: str, new: str = "latest") -> Call[TemplateDifference]:
    """What differs between two revisions."""
    decode = msgspec.json.Decoder(TemplateDifference).decode
    return get(f"/templates/{segment(name)}/diff", decode, old=old, new=new)


def remove_template(name: str) -> Call[None]:
    """Forget a template with all its revisions."""
    return delete(f"/templates/{segment(name)}")
