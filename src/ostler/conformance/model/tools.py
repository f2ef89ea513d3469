"""Binds an action of the script to a tool that the agent offers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from ostler.conformance.model.actions import Call, ScriptError
from ostler.conformance.model.conversation import Json, Tool

# For each kind of action, the names its tool goes by in the agents we know,
# best first (compared without case, "_" and "-").
TOOL_NAMES: dict[str, list[str]] = {
    kind: names.split()
    for kind, names in {
        "bash": "bash exec_command shell_command shell local_shell run_shell_command terminal"
        " execute_bash run_command execute_command run_terminal_cmd",
        "read": "read read_file view view_file str_replace_editor file_editor",
        "write": "write write_file create_file create apply_patch str_replace_editor file_editor",
        "edit": "edit replace edit_file str_replace str_replace_file search_replace apply_patch"
        " str_replace_editor file_editor multi_edit",
        "ask": "ask_user_question request_user_input question ask_user ask_question ask_followup_question",
        "plan": "exit_plan_mode plan_exit present_plan",
        "todo": "todo_write update_plan write_todos set_todo_list todo_list todo task_tracker"
        " task_create update_todo manage_todo_list",
        "delegate": "agent task spawn_agent delegate run_subagent",
    }.items()
}


# Preferred values for enum-typed arguments, per kind (multi-command editors, statuses...).
ENUM_CHOICE: dict[str, tuple[str, ...]] = {
    "read": ("view", "read"),
    "write": ("create", "write", "overwrite"),
    "edit": ("str_replace", "replace", "edit"),
    "todo": ("plan", "write", "pending", "not_started", "medium"),
    "ask": ("choice", "single_select"),
    "bash": ("low",),
    "delegate": ("general-purpose", "general", "default", "sync"),
}


def _canonical(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def find_tool(kind: str, tools: list[Tool]) -> Tool:
    by_name = {_canonical(t.name): t for t in reversed(tools)}
    for name in TOOL_NAMES[kind]:
        if tool := by_name.get(_canonical(name)):
            return tool
    offered = ", ".join(t.name for t in tools) or "none"
    raise ScriptError(f"no {kind} tool among: {offered}")


def bind(kind: str, rest: str, tools: list[Tool]) -> Call:
    """A call of the agent's own tool for this kind of action."""
    if kind == "tool":
        return _named(rest, tools)
    values = _values(kind, rest)
    try:
        tool = find_tool(kind, tools)
    except ScriptError:
        return _without(kind, rest, values, tools)
    if _canonical(tool.name) == "applypatch":
        patch = _patch(kind, values)
        values = dict.fromkeys(("input", "patch", "patchText"), patch)
        return Call(tool, patch if tool.freeform else fill(tool.schema, values, kind))
    if kind == "delegate" and tool.name == "task" and "subagent_type" in tool.schema.get("properties", {}):
        values["subagent_type"] = "general"  # OpenCode's name for it
    return Call(tool, fill(tool.schema, values, kind))


def _named(rest: str, tools: list[Tool]) -> Call:
    """A call of a tool by its name, with literal arguments."""
    name, _, raw = rest.partition(" ")
    tool = next((t for t in tools if t.name == name), None)
    # Agents put the server's name before the names of MCP tools.
    tool = tool or next((t for t in tools if re.search(rf"[^A-Za-z0-9]{re.escape(name)}$", t.name)), None)
    if tool and tool.freeform:
        return Call(tool, raw)
    try:
        arguments = json.loads(raw or "{}")
    except ValueError as exc:
        raise ScriptError(f"arguments of {name} are not JSON: {exc}") from exc
    if tool is None and (code_tool := _code_tool(tools)):
        return Call(code_tool, _code(name, arguments))
    if tool is None and (search := next((t for t in tools if t.finds_tools), None)):
        return Call(search, {"query": name})
    return Call(tool or Tool(name), arguments)


def _without(kind: str, rest: str, values: Json, tools: list[Tool]) -> Call:
    """What an agent does that has no tool of this kind."""
    if code_tool := _code_tool(tools):
        return Call(code_tool, _code_for(kind, values))
    if kind == "read":  # with its shell
        return bind("bash", f"cat {rest}", tools)
    if kind == "delegate" and any(tool.finds_tools for tool in tools):  # Codex offers it to those who search for it
        return _named(f"spawn_agent {json.dumps({'message': values['message']})}", tools)
    offered = ", ".join(tool.name for tool in tools) or "none"
    raise ScriptError(f"no {kind} tool among: {offered}")


def _code_tool(tools: list[Tool]) -> Tool | None:
    return next((tool for tool in tools if tool.name == "exec" and tool.freeform), None)


def _values(kind: str, rest: str) -> Json:
    """What the action says, under every argument name agents use for it."""
    return VALUES[kind](rest)


def _command_values(rest: str) -> Json:
    described = _aliases("Run a scripted command", "description explanation summary title reason")
    return _aliases(rest, "command cmd script") | described


def _path_values(kind: str, path: str) -> Json:
    described = _aliases(f"{kind} a scripted file", "description explanation summary instruction title")
    return _aliases(path, "file_path filePath path filename file absolute_path") | described


def _read_values(rest: str) -> Json:
    return _path_values("read", rest.partition(" ")[0])


def _write_values(rest: str) -> Json:
    path, _, content = rest.partition(" ")
    return _path_values("write", path) | _aliases(content, "content contents text file_text file_content")


def _edit_values(rest: str) -> Json:
    path, _, change = rest.partition(" ")
    old, _, new = change.partition(" => ")
    return (
        _path_values("edit", path)
        | _aliases(old, "old_string oldString old_str oldText old_text old search")
        | _aliases(new, "new_string newString new_str newText new_text new replace")
        | {"content": f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"}
    )


def _ask_values(rest: str) -> Json:
    head, *options = _split(rest)
    labels = options or ["Yes", "No"]
    return (
        _aliases(head, "question prompt text")
        | _aliases("Choice", "header title")
        | {"id": "choice", "label": labels, "description": labels, "value": labels}
        | {"options": labels, "choices": labels}
    )


def _delegate_values(rest: str) -> Json:
    orders = _aliases(f"SCRIPT: {rest}", "prompt message task instructions") | {"description": "sub"}
    return orders | _aliases("general-purpose", "subagent_type agent_type") | {"run_in_background": False}


def _plan_values(rest: str) -> Json:
    head = _split(rest)[0]
    return {"plan": head, "summary": head, "actions": ["exit_only"]}


def _todo_values(rest: str) -> Json:
    items = _split(rest)
    return _aliases(items, "content description step title activeForm subject") | {
        "id": [str(i + 1) for i in range(len(items))],
        "status": "pending",
        "priority": "medium",
    }


def _split(rest: str) -> list[str]:
    return [part.strip() for part in rest.split("|")]


VALUES: dict[str, Callable[[str], Json]] = {
    "bash": _command_values,
    "read": _read_values,
    "write": _write_values,
    "edit": _edit_values,
    "ask": _ask_values,
    "delegate": _delegate_values,
    "plan": _plan_values,
    "todo": _todo_values,
}


def _aliases(value: Any, names: str) -> Json:
    return dict.fromkeys(names.split(), value)


def fill(schema: Json, values: Json, kind: str) -> Json:
    """An instance of a tool's input schema: known argument names get their value,
    required unknown ones a neutral value, the rest is left out."""
    return Filler(schema, values, kind).object(schema)


class Filler:
    """Builds an instance of a JSON schema out of named values."""

    def __init__(self, root: Json, values: Json, kind: str) -> None:
        self.root, self.values, self.kind = root, values, kind

    def object(self, schema: Json, index: int | None = None) -> Json:
        required = set(schema.get("required", ()))
        out: Json = {}
        for name, given in schema.get("properties", {}).items():
            prop = self.resolve(given)
            known = name in self.values or self.holds_known(prop) or self.preferred(prop)
            if known or name in required:
                out[name] = self.value(name, prop, index)
        return out

    def resolve(self, prop: Json) -> Json:
        """The schema itself: `$ref` looked up, the first non-null variant of a union."""
        if ref := prop.get("$ref"):
            target = self.root
            for step in ref.removeprefix("#/").split("/"):
                target = target.get(step, {})
            return self.resolve(target)
        for given in prop.get("anyOf") or prop.get("oneOf") or ():
            variant = self.resolve(given)
            if variant.get("type") != "null" and variant:
                return {**prop, **variant, "anyOf": None, "oneOf": None}
        return prop

    def holds_known(self, prop: Json) -> bool:
        items = self.resolve(prop.get("items") or {})
        return any(name in self.values for name in items.get("properties", {}))

    def preferred(self, prop: Json) -> str | None:
        """The enum member this kind of action wants, if there is one."""
        choices = prop.get("enum") or ()
        return next((p for p in ENUM_CHOICE.get(self.kind, ()) if p in choices), None)

    def value(self, name: str, prop: Json, index: int | None) -> Any:
        given = prop.get("type") or ()
        kinds = {kind.lower() for kind in ([given] if isinstance(given, str) else given)}
        if "const" in prop:
            return prop["const"]
        if choices := prop.get("enum"):
            return self.preferred(prop) or choices[0]
        known = self.values.get(name)
        if "array" in kinds:
            return self.array(name, self.resolve(prop.get("items") or {}), known, index)
        if isinstance(known, list):
            known = known[index or 0] if known else ""
        if isinstance(known, str) and (not kinds or "string" in kinds):
            return known
        return self.neutral(prop, kinds, index)

    def neutral(self, prop: Json, kinds: set[str], index: int | None) -> Any:
        """A value of the right type that says nothing."""
        if "boolean" in kinds:
            return False
        if kinds & {"integer", "number"}:
            return prop.get("default", prop.get("minimum", 1))
        return self.object(prop, index) if "object" in kinds else ""

    def array(self, name: str, items: Json, known: Any, index: int | None) -> list[Any]:
        if items.get("properties"):
            if name in ("options", "choices"):
                count = len(self.values.get("options", ()))
            else:
                count = _list_length(items["properties"], self.values) if index is None else 1
            return [self.object(items, i) for i in range(count)]
        if isinstance(known, list):
            return known
        return ["bash", "-lc", known] if self.kind == "bash" and known else []


def _list_length(props: Json, values: Json) -> int:
    """How many items a list argument gets: one per listed value (todos), else one
    (questions, edits), where a question's own option list does not count."""
    if "options" in props or "question" in props:
        return 1
    lists = [len(values[n]) for n in props if isinstance(values.get(n), list)]
    return max(lists, default=1)


def _code(name: str, argument: Json | str) -> str:
    """Codex "code mode": the model's one tool runs JavaScript that calls the real tools."""
    return f"const result = await tools.{name}({json.dumps(argument)});\ntext(result);"


def _code_for(kind: str, values: Json) -> str:
    if kind == "bash":
        return _code("exec_command", {"cmd": values["cmd"]})
    if kind == "read":
        return _code("exec_command", {"cmd": f"cat {values['path']}"})
    if kind in ("write", "edit"):
        return _code("apply_patch", _patch(kind, values))
    raise ScriptError(f"no {kind} tool in code mode")


def _patch(kind: str, values: Json) -> str:
    """The action in the apply_patch format."""
    path = values["path"]
    if kind == "write":
        lines = "".join(f"+{line}\n" for line in values["content"].splitlines())
        return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch"
    old = "".join(f"-{line}\n" for line in values["old"].splitlines())
    new = "".join(f"+{line}\n" for line in values["new"].splitlines())
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{old}{new}*** End Patch"
