"""How the events of a session look in a terminal: a table of small functions, one per event type."""

from collections.abc import Callable
from typing import Any

from ostler.base.writing import Writing
from ostler.cli.output import clean
from ostler.cli.terminal.lines import Lines
from ostler.cli.terminal.text import (
    UNICODE,
    Marks,
    cut,
    file_gist,
    item_call,
    item_result,
    item_text,
    item_thoughts,
    limit_line,
    permission_gist,
    plan_line,
    questions_of,
    result_gist,
    seconds_between,
    tool_title,
    usage_gist,
)
from ostler.client import SessionEvent
from ostler.wire import events as ev
from ostler.wire.items import Item, PlanEntry
from ostler.wire.parts import ReasoningPart, TextPart, ToolCallPart


class Renderer:
    """Turns events into text, in order; remembers only what the next event needs."""

    def __init__(self, *, marks: Marks = UNICODE, colour: bool = True, show_prompts: bool = False) -> None:
        self.marks = marks
        self._lines = Lines(colour=colour)
        self._show_prompts = show_prompts
        self._seen: set[str] = set()
        self._writing = Writing()
        """Items that were shown as they grew or opened."""
        self._printed: set[str] = set()
        """Tool calls whose output was shown as it came."""
        self._plan: tuple[PlanEntry, ...] = ()
        self._usage: ev.UsageUpdatedData | None = None
        self._turn_started: str | None = None

    def feed(self, event: SessionEvent) -> str:
        """The text this event adds to what is on the screen."""
        shown = _TABLE.get(event.type)
        return shown(self, event) if shown is not None and not isinstance(event, ev.UnknownEvent) else ""

    def close(self) -> str:
        """End the unfinished line, if there is one."""
        return self._lines.close()

    def item_started(self, event: ev.ItemStarted) -> str:
        """Show a tool call as soon as it is known."""
        item = event.data.item
        return self._tool_call(item.item_id, self._writing.begin(item)) if item.kind == "tool_call" else ""

    def item_delta(self, event: ev.ItemDelta) -> str:
        """Show words and thoughts while they come."""
        delta = event.data.delta
        if isinstance(delta, ToolCallPart):
            return self._tool_call(event.data.item_id, self._writing.grow(event.data.item_id, delta))
        self._seen.add(event.data.item_id)
        match delta:
            case TextPart():
                return self._lines.grow("text", clean(delta.text))
            case ReasoningPart():
                return self._lines.grow("thought", clean(delta.text), dim=True)
            case _:
                return ""

    def item_completed(self, event: ev.ItemCompleted) -> str:
        """Show what was not shown while it grew."""
        item = event.data.item
        match item.kind:
            case "tool_call":
                return self._tool_call(item.item_id, self._writing.end(item) or item_call(item))
            case "tool_result":
                return self._tool_result(item)
            case "message" if item.role == "user":
                return self._prompt(item)
            case _:
                return self._rest_of_message(item)

    def _tool_call(self, item_id: str, call: ToolCallPart | None) -> str:
        """Shown once, with all arguments."""
        if call is None or item_id in self._seen:
            return ""
        self._seen.add(item_id)
        return self._lines.line(f"{self.marks.tool} {tool_title(call)}", fg="cyan")

    def _tool_result(self, item: Item) -> str:
        failed = item.status == "failed"
        gist = "done" if item.parent_id in self._printed else result_gist(item_result(item))
        sign = self.marks.bad if failed else self.marks.good
        return self._lines.line(f"  {sign} {gist}", fg="red" if failed else "green")

    def _prompt(self, item: Item) -> str:
        return self._lines.line(f"{self.marks.user} {clean(item_text(item))}", bold=True) if self._show_prompts else ""

    def _rest_of_message(self, item: Item) -> str:
        if item.item_id in self._seen:
            return self._lines.close()
        thoughts, words = clean(item_thoughts(item)), clean(item_text(item))
        return self._lines.grow("thought", thoughts, dim=True) + self._lines.grow("text", words) + self._lines.close()

    def terminal(self, event: ev.TerminalOutput) -> str:
        """Show the output of a running command behind a bar."""
        if event.data.item_id:
            self._printed.add(event.data.item_id)
        bar = f"  {self.marks.bar} "
        text = clean(event.data.data)
        body = text.removesuffix("\n").replace("\n", "\n" + bar) + ("\n" if text.endswith("\n") else "")
        return self._lines.grow(
            "terminal", body if self._lines.growing == "terminal" or not body else bar + body, dim=True
        )

    def file_changed(self, event: ev.FileChanged) -> str:
        """Show which file changed and by how much."""
        return self._lines.line(f"  {self.marks.file} {file_gist(event.data)}", fg="yellow")

    def plan(self, event: ev.PlanUpdated) -> str:
        """Show a new plan whole, and of a known one only the steps that moved."""
        steps = [entry.content for entry in event.data.entries]
        known = steps == [entry.content for entry in self._plan]
        moved = [entry for entry in event.data.entries if not (known and entry in self._plan)]
        self._plan = event.data.entries
        lines = [*([] if known else ["Plan"]), *(plan_line(entry, self.marks) for entry in moved)]
        return self._lines.line("\n".join(lines), fg="blue") if lines else ""

    def usage(self, event: ev.UsageUpdated) -> str:
        """Keep the numbers for the end of the turn."""
        self._usage = event.data
        return ""

    def permission(self, event: ev.PermissionRequested) -> str:
        """Show what the agent wants to do."""
        return self._lines.line(f"{self.marks.ask} May I? {permission_gist(event.data)}", fg="magenta", bold=True)

    def permission_resolved(self, event: ev.PermissionResolved) -> str:
        """Show the decision."""
        words = {"accept": "allowed once", "accept_for_session": "always allowed", "reject": "rejected"}
        reason = f": {cut(event.data.message)}" if event.data.message else ""
        return self._lines.line(f"  {words.get(event.data.status, event.data.status)}{reason}", dim=True)

    def question(self, event: ev.QuestionRequested) -> str:
        """Show the questions and what can be chosen."""
        lines = []
        for question in questions_of(event.data):
            lines.append(f"{self.marks.ask} {clean(question.question)}")
            for number, option in enumerate(question.options, 1):
                more = f" - {cut(option.description)}" if option.description else ""
                lines.append(f"  {number}. {cut(option.label)}{more}")
        return self._lines.line("\n".join(lines), fg="magenta", bold=True)

    def question_resolved(self, event: ev.QuestionResolved) -> str:
        """Show the answers."""
        answers = "; ".join(", ".join(each) for each in event.data.answers or ())
        return self._lines.line(f"  {cut(answers) if event.data.status == 'answered' else 'declined'}", dim=True)

    def error(self, event: ev.ErrorRaised) -> str:
        """Show what went wrong."""
        return self._lines.line(f"{self.marks.bad} {clean(event.data.message)}", fg="red")

    def notice(self, event: ev.Notice | ev.SessionLimit) -> str:
        """Show what people should know."""
        words = clean(event.data.message) if isinstance(event, ev.Notice) else limit_line(event.data)
        return self._lines.line(f"! {words}", fg="yellow")

    def unparsed(self, event: ev.AgentUnparsed) -> str:
        """Show that the agent said something we do not understand."""
        return self._lines.line(f"! Not understood: {cut(event.data.error)}", dim=True)

    def queue(self, event: ev.QueueUpdated) -> str:
        """Show how many prompts wait."""
        waiting = len(event.data.entries)
        return self._lines.line(f"  {waiting} waiting", dim=True) if waiting else ""

    def status(self, event: ev.SessionStatusChanged) -> str:
        """Show a status that people wonder about."""
        quiet = event.data.status in {"queued", "provisioning", "running", "stopping"}
        return "" if quiet else self._lines.line(f"  session is {event.data.status}", dim=True)

    def turn_started(self, event: ev.TurnStarted) -> str:
        """Begin to count."""
        self._turn_started, self._usage = event.time, None
        return ""

    def turn_ended(self, event: ev.TurnEnded) -> str:
        """Sum the turn up."""
        took = f"{seconds_between(self._turn_started, event.time):.1f} s" if self._turn_started else ""
        spent = usage_gist(self._usage) if self._usage else ""
        colours = {"completed": "green", "interrupted": "yellow", "failed": "red"}
        sign = self.marks.good if event.data.outcome == "completed" else self.marks.bad
        text = ", ".join(filter(None, (event.data.outcome, took, spent)))
        return self._lines.line(f"{sign} {text}", fg=colours[event.data.outcome])


_TABLE: dict[str, Callable[[Renderer, Any], str]] = {
    "item.started": Renderer.item_started,
    "item.delta": Renderer.item_delta,
    "item.completed": Renderer.item_completed,
    "terminal.output": Renderer.terminal,
    "file.changed": Renderer.file_changed,
    "plan.updated": Renderer.plan,
    "usage.updated": Renderer.usage,
    "permission.requested": Renderer.permission,
    "permission.resolved": Renderer.permission_resolved,
    "question.requested": Renderer.question,
    "question.resolved": Renderer.question_resolved,
    "error": Renderer.error,
    "notice": Renderer.notice,
    "agent.unparsed": Renderer.unparsed,
    "queue.updated": Renderer.queue,
    "session.status": Renderer.status,
    "session.limit": Renderer.notice,
    "turn.started": Renderer.turn_started,
    "turn.ended": Renderer.turn_ended,
}
