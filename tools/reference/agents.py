"""The table of agents and what each can do, as the conformance suite found it."""

from collections.abc import Sequence

from ostler.agents.adapter import Adapter
from ostler.agents.coverage import coverage_of, examined
from ostler.conformance.behaviours import BEHAVIOURS, REQUIRED, WITHOUT_BEHAVIOUR, Behaviour
from ostler.conformance.matrix import stability_from
from ostler.conformance.rows import row_of
from ostler.wire.agents import Capabilities, Coverage
from tools.reference.markdown import code, page, table

_SHORT: dict[Coverage, str] = {"converted": "yes", "native": "native", "none": ""}
_WORDS = {
    "command_execution": "output of commands while they run",
    "error_events": "errors as such",
    "file_attachments": "files with a prompt",
    "file_changes": "changed files with their diffs",
    "images": "pictures with a prompt",
    "item_started": "a step is shown when it begins",
    "mcp_tools": "MCP servers of the session",
    "permissions": "asks before it acts",
    "plan_mode": "plans before it works",
    "questions": "asks questions",
    "reasoning": "its thoughts",
    "resume": "goes on with its own memory",
    "session_lifecycle": "the agent tells when it begins and ends",
    "shared_process": "one process for several sessions",
    "status": "what it is doing now",
    "steering": "takes a message in the middle of a turn",
    "streaming_deltas": "words as they come",
    "subagents": "helpers of its own",
    "text_messages": "messages",
    "tool_calls": "its tools",
    "tool_results": "what tools answered",
    "variants": "effort of the model",
}
"""What each capability is to a reader."""
_VERDICTS = {"passes": "passes", "fails": "no", None: "-"}


def agent_table(adapters: Sequence[Adapter]) -> str:
    """One column per agent, one row per capability."""
    covered = [coverage_of(adapter.info.id) for adapter in adapters]
    rows = [
        (_WORDS[name], *(_SHORT[coverage.get(name, "none")] for coverage in covered))
        for name in Capabilities.__struct_fields__
    ]
    return table(("", *(f"{adapter.info.name} ({code(adapter.info.id)})" for adapter in adapters)), rows)


def matrix_page(adapters: Sequence[Adapter]) -> str:
    """The matrix, every behaviour behind it, and the reasons for what is missing."""
    return page(
        "What each agent can do",
        "Every cell is a result of the conformance suite: `make conformance` runs it on the real programs and writes "
        "the results, `make schema` prints this page from them. **yes**: the agent has it and Ostler converts it. "
        "**native**: the agent has it, but Ostler does not convert it. Empty: the agent does not offer it to programs.",
        agent_table(adapters),
        "## Versions",
        "**stable**: at least four of five behaviours pass. **experimental**: fewer do.",
        table(("agent", "examined version", "stability"), [_version(adapter) for adapter in adapters]),
        "## Native, but not converted",
        table(("agent", "capability", "why"), _unconverted(adapters)),
        "## Behaviours",
        "What a capability means: an agent has it when all its behaviours pass. `ostler agents conform` runs the same "
        "cases on any agent. An agent of the table must have what is required; a test holds it.",
        table(("behaviour", "what must be true", "capability", "needed"), _behaviours()),
        f"No behaviour shows these: {_unshown()}.",
        "## Results",
        "**passes**, **no**, or - where the suite cannot show it.",
        table(("", *(code(adapter.info.id) for adapter in adapters)), _results(adapters)),
        "## Left out",
        table(("agent", "behaviour", "why"), _left_out(adapters)),
    )


def _version(adapter: Adapter) -> tuple[str, str, str]:
    found = examined().get(adapter.info.id)
    version = (found.version if found else None) or "this one"
    return adapter.info.name, version, stability_from(adapter, found.results if found else {})


def _unconverted(adapters: Sequence[Adapter]) -> list[tuple[str, str, str]]:
    return [(one.info.name, code(name), why) for one in adapters for name, why in one.info.unconverted.items()]


def _behaviours() -> list[tuple[str, str, str, str]]:
    return [(code(each.id), each.sentence, code(each.capability), _needed(each)) for each in BEHAVIOURS]


def _needed(behaviour: Behaviour) -> str:
    return "required" if behaviour.capability in REQUIRED else "optional"


def _unshown() -> str:
    return "; ".join(f"{code(name)}, {why}" for name, why in WITHOUT_BEHAVIOUR.items())


def _results(adapters: Sequence[Adapter]) -> list[tuple[str, ...]]:
    found = [examined()[adapter.info.id].results if adapter.info.id in examined() else {} for adapter in adapters]
    return [(code(each.id), *(_VERDICTS[results.get(each.id)] for results in found)) for each in BEHAVIOURS]


def _left_out(adapters: Sequence[Adapter]) -> list[tuple[str, str, str]]:
    return [(one.info.name, code(name), why) for one in adapters for name, why in row_of(one).without.items()]
