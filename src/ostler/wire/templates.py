"""Templates: stored definitions of agents, their revisions, and what fills them."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from ostler.wire.prompts import NAME
from ostler.wire.struct import Answer, Body
from ostler.wire.texts import Line

MOST_FILES = 1000
MOST_BYTES = 10 * 2**20
"""Of all files of one revision."""
LATEST = "latest"
"""The tag that every push moves."""
PLACE = re.compile(r"\{\{\s*inputs\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
"""Where a text has the value of a variable."""
REVISION = r"^sha256:[0-9a-f]{64}$"

Tag = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": NAME})]
Inputs = dict[str, Any]
"""Values for the variables of a template."""
VariableType = Literal["string", "integer", "number", "boolean", "list"]


class TemplateFile(Body, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a template: its text, or its bytes in base64."""

    path: str
    """Below the template's folder, with `/` between names."""
    text: str | None = None
    base64: str | None = None
    executable: bool = False


class PushTemplate(Body, frozen=True, kw_only=True):
    """The whole folder of a template; the name is in its template.toml."""

    files: tuple[TemplateFile, ...]
    tags: tuple[Tag, ...] = ()
    """What this revision is called besides `latest`."""
    commit: Line | None = None
    """The git commit that the files are of."""
    check: bool = False
    """Only say whether it would be taken, and store nothing."""


class TagTemplate(Body, frozen=True, kw_only=True):
    """A tag to set; it moves if another revision has it."""

    tag: Tag
    revision: str
    """A revision or another tag."""


class TemplateVariable(Answer, frozen=True, kw_only=True):
    """What `inputs` may fill."""

    type: VariableType
    required: bool = False
    default: Any = None
    enum: tuple[Any, ...] = ()
    description: str | None = None


class TemplateRevision(Answer, frozen=True, kw_only=True):
    """An immutable state of a template."""

    name: str
    revision: str
    """`sha256:` and the digest of its files: the same files are the same revision."""
    created_at: str
    tags: tuple[str, ...] = ()
    description: str | None = None
    version: str | None = None
    license: str | None = None
    agent: str | None = None
    variables: dict[str, TemplateVariable] = msgspec.field(default_factory=dict)
    skills: tuple[str, ...] = ()
    code_tools: tuple[str, ...] = ()
    """Its tools that are programs."""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    files: int = 0
    size: int = 0
    """Of all files together, in bytes."""
    commit: str | None = None
    has_prompt: bool = False
    """Whether it says itself what to do, so that a schedule can use it."""


class TemplateList(Answer, frozen=True, kw_only=True):
    """The newest revision of each template, by name."""

    items: tuple[TemplateRevision, ...]


class TemplateRevisions(Answer, frozen=True, kw_only=True):
    """The revisions of a template, the newest first."""

    items: tuple[TemplateRevision, ...]


class TemplateFiles(Answer, frozen=True, kw_only=True):
    """A revision as it was pushed, byte for byte."""

    name: str
    revision: str
    files: tuple[TemplateFile, ...]


class TemplateChange(Answer, frozen=True, kw_only=True):
    """How one file differs."""

    path: str
    change: Literal["added", "removed", "changed"]
    diff: str | None = None
    """As a unified diff; absent for bytes that are no text."""


class TemplateDifference(Answer, frozen=True, kw_only=True):
    """What differs between two revisions of a template."""

    name: str
    old: str
    new: str
    changes: tuple[TemplateChange, ...]


def placed(text: str, values: Mapping[str, Any]) -> str:
    """A text of a template with the values of its variables in their places."""
    return PLACE.sub(lambda place: value_text(values.get(place["name"])), text)


def value_text(value: Any) -> str:
    """A value as texts have it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return ", ".join(map(value_text, value))
        case _:
            return str(value)
