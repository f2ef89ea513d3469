"""The loop: a turn is a call of the model, the tools that it wants, and again, until it wants no more."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ostler.agent.asking import Gate
from ostler.agent.calling import Calls
from ostler.agent.channel import BELOW, Inbox, write
from ostler.agent.compaction import first_remaining, is_full, order, summary_of
from ostler.agent.continuing import Left, ids_of, left_of, message_parts, say_again
from ostler.agent.entries import (
    AnyEntry,
    Assistant,
    Block,
    Call,
    Compaction,
    Ended,
    Picture,
    Result,
    Step,
    Text,
    Tokens,
    User,
    calls_of,
    conversation,
)
from ostler.agent.journal import Journal
from ostler.agent.mcp.servers import Servers
from ostler.agent.models.asking import Answer, ModelFailed, Question, ToolSpec
from ostler.agent.models.client import Model
from ostler.agent.models.endpoint import Endpoint, endpoint, without_keys
from ostler.agent.models.known import Fitted, fitted, known
from ostler.agent.operations import Operations
from ostler.agent.pictures import objection, type_of
from ostler.agent.prompts import PLANNING, SUB_AGENT, system_prompt
from ostler.agent.skills import skills
from ostler.agent.speaking import Spoken, ask_quietly, speak
from ostler.agent.tools.code import code_tools
from ostler.agent.tools.foreign import client_tools
from ostler.agent.tools.people import PLAN
from ostler.agent.tools.table import chosen, of_sub_agent
from ostler.agent.tools.tool import Output
from ostler.base.ids import ulid
from ostler.wire.own_agent import Done, Message, MessageEnded, ModelChosen, Noted, Outcome, Prompted, Start, Used

_MOST_BAD_INPUTS = 3
_MOST_REPETITIONS = 5
_MOST_SUB_AGENTS = 4
_MOST_TURNS_BELOW = 25


class Ending(Exception):
    """The turn ends, although the model did not say so."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class Loop:
    """One conversation with a model; a turn at a time."""

    def __init__(
        self,
        start: Start,
        journal: Journal,
        inbox: Inbox,
        workspace: Operations,
        environ: Mapping[str, str],
        servers: Servers | None,
        gate: Gate | None = None,
    ) -> None:
        """`gate` is that of the agent whose sub-agent this is."""
        self._start = start
        self._journal = journal
        self._inbox = inbox
        self._environ = environ
        self._servers = servers
        self._workspace = workspace
        self._gate = gate or Gate(start, inbox)
        self._tools = chosen(start.tools, plans=gate is None and self._gate.plans) | client_tools(start.client_tools)
        self._tools |= code_tools(start.code_tools)
        self._of_servers: set[str] = set()
        """Those of the MCP servers."""
        self._specs: tuple[ToolSpec, ...] = ()
        self._room = asyncio.Semaphore(_MOST_SUB_AGENTS)
        self._calls = Calls(self._tools, self._gate, inbox, journal, workspace, without_keys(environ), self._delegate)
        self._calls.granted |= {path for entry in journal.entries if isinstance(entry, User) for path in entry.files}
        found = skills(workspace, Path(environ.get("HOME") or "."))
        self._calls.granted |= {skill.path for skill in found if skill.path.startswith("/")}  # of its home
        self._system = system_prompt(workspace, found, base=start.system_prompt, instructions=start.instructions)
        self._open: tuple[Endpoint, Model, Fitted] | None = None
        self._used = Tokens()
        self._last: list[tuple[str, str]] = []

    async def turn(self, prompt: Prompted) -> None:
        """One turn, up to its end, or the rest of one whose process died. Raises ModelFailed."""
        begun = self._journal.turn_of(prompt.id)
        if begun is None:
            left = self._begin(prompt)
        elif isinstance(ended := begun[-1], Ended):
            say_again(begun, self._start)
            self._used = left_of(begun).used
            self._tell_end(ended)
            return
        else:
            left = self._go_on(begun)
        await self._offer()
        if self._start.rebooted:
            self._doubt(left)
        try:
            reason = await self._work(left)
        except Ending as ending:
            write(Noted(message=str(ending), code=ending.reason))
            reason = ending.reason
        self.end("completed", reason)

    async def _offer(self) -> None:
        """The tools that the model has: all requests of this turn begin with them."""
        if self._servers is not None:
            for name in self._of_servers:
                del self._tools[name]
            self._of_servers = set()
            offered = await self._servers.tools(self._tools)
            self._tools |= offered
            self._of_servers = set(offered)
        self._specs = tuple(self._tools[name].spec() for name in sorted(self._tools))

    def _begin(self, prompt: Prompted) -> Left:
        if self._start.heard or self._start.begun:
            raise ModelFailed("What the agent did in this turn is not in its memory any more.", code="memory")
        self._journal.begin_turn()
        self._used, self._last, self._calls.bad_inputs = Tokens(), [], 0
        self._hear_steered()  # what came when the turn before was just over
        self._hear(prompt, note=PLANNING if PLAN.name in self._tools and self._gate.plans else "")
        return Left()

    def _go_on(self, begun: list[AnyEntry]) -> Left:
        known = {entry.prompt for entry in begun if isinstance(entry, User)}
        self._inbox.forget(known)
        self._journal.go_on()
        left = left_of(begun)
        going_on = [self._journal.below(call.id) for call in left.calls if self._journal.has_below(call.id)]
        say_again(begun, self._start, {each for journal in going_on for each in ids_of(journal.entries)})
        self._used, self._last = left.used, list(left.made[: len(left.made) - len(left.calls)])
        return left

    def _doubt(self, left: Left) -> None:
        """The machine stopped: the command that was next may have begun, although nothing on disk says so."""
        changing = (call for call in left.calls if call.name in self._tools)
        first = next((call for call in changing if self._tools[call.name].changes == "anything"), None)
        if first is not None:
            self._journal.claim(first.id).begin()

    def end(self, outcome: Outcome, reason: str) -> None:
        """The turn is over."""
        self._tell_end(self._journal.add(Ended, outcome=outcome, reason=reason))

    def _tell_end(self, ended: Ended) -> None:
        write(Done(outcome=ended.outcome, reason=ended.reason))
        self._journal.end_turn()
        self._start = replace(self._start, heard=(), begun=(), rebooted=False)

    async def close(self) -> None:
        """Close what is open."""
        if self._open is not None:
            await self._open[1].close()
        self._journal.close()

    # The turn

    async def _work(self, left: Left) -> str:
        answer: Answer | Assistant | None = left.answer
        asked, calls = left.asked, list(left.calls)
        while True:
            if answer is None:
                answer = await self._ask()
                calls = calls_of(answer.blocks)
                asked += 1
            if calls and asked == self._start.max_turns:
                self._calls.refuse(calls, "Not run: this turn may not call the model again.", "skipped")
                raise Ending("max_turn_requests", f"Stopped after {asked} model calls, which is this session's limit.")
            if calls:
                await self._run(calls, answer)
            elif not self._inbox.steered:
                return _concluded(answer)
            answer = None

    async def _ask(self) -> Answer | Assistant:
        place, _, fit = self._opened()
        if self._journal.has_answer(place.api) and (stored := self._stored_answer()) is not None:
            return stored
        self._hear_steered()
        if is_full(self._journal.entries, self._window(place), fit.max_tokens):
            await self._compact()
        try:
            spoken = await self._speak()
        except ModelFailed as failed:
            if failed.code != "context_overflow":
                raise
            spoken = await self._speak_shortened()
        answer = spoken.answer
        self._keep(spoken.id, answer)
        self._count(answer.tokens, place)
        return answer

    async def _speak(self) -> Spoken:
        place, model, _ = self._opened()
        question = self._question(conversation(self._journal.entries))
        return await speak(model, question, self._keep_cut, lambda reader: self._journal.recorded(reader, place.api))

    async def _speak_shortened(self) -> Spoken:
        try:
            await self._compact(shortened=True)
            return await self._speak()
        except ModelFailed as failed:
            if failed.code != "context_overflow":
                raise
            words = f"{failed}. Begin a new session, or name a model with a larger window."
            raise ModelFailed(words, code=failed.code, status=failed.status) from failed

    def _stored_answer(self) -> Answer | None:
        """What the model had answered in whole when the process before this one died."""
        place, model, _ = self._opened()
        answer = self._journal.answered(model.reader(), place.api)
        if answer is not None:
            entry = self._keep(ulid(), answer)
            if content := message_parts(entry.blocks):
                write(MessageEnded(id=entry.id, content=content))
            self._count(answer.tokens, place)
        return answer

    def _question(self, steps: list[Step]) -> Question:
        place, _, fit = self._opened()
        return Question(
            model=place.model,
            system=self._system,
            steps=steps,
            tools=self._specs,
            picture=self._journal.content,
            max_tokens=fit.max_tokens,
            temperature=fit.temperature,
            effort=fit.effort,
            budget=fit.budget,
            thinks=fit.thinks,
            key=self._journal.conversation,
        )

    async def _compact(self, *, shortened: bool = False) -> None:
        """Have the model sum up what is long ago. Raises ModelFailed."""
        place, model, _ = self._opened()
        entries = self._journal.entries
        write(Noted(message="The conversation fills the model's window; it is being summarised.", code="compaction"))
        steps = order(conversation(entries), shortened=shortened)
        try:
            answer = await ask_quietly(model, self._question(steps))
        except ModelFailed as failed:
            if shortened or failed.code != "context_overflow":
                raise
            answer = await ask_quietly(model, self._question(order(conversation(entries), shortened=True)))
        if not (summary := summary_of(answer)):
            raise ModelFailed("The model's window is full, and it wrote no summary.", code="context_overflow")
        first = first_remaining(entries, self._window(place))
        self._journal.add(Compaction, summary=summary, first=first)
        self._count(answer.tokens, place)
        words = "The model goes on with a summary of what was long ago. Everything is still in the log."
        write(Noted(message=words, code="compacted", severity="info"))

    def _window(self, place: Endpoint) -> int | None:
        given = self._environ.get("OSTLER_AGENT_WINDOW", "")
        return int(given) if given.isdecimal() and int(given) else known(place.model).window

    def _keep(self, entry_id: str, answer: Answer) -> Assistant:
        place, answered = self._opened()[0], self._journal.entries[-1]
        entry = self._journal.add(
            Assistant,
            entry_id=entry_id,
            api=place.api,
            model=place.model,
            blocks=answer.blocks,
            stop=answer.stop,
            tokens=answer.tokens,
        )
        self._journal.sync()
        self._journal.forget_answer(answered.id, place.api)
        return entry

    def _keep_cut(self, entry_id: str, blocks: tuple[Block, ...]) -> None:
        """The model was interrupted: its words stay, what it was about to do does not."""
        if self._inbox.is_closed:  # the next process asks anew
            return
        self._keep(entry_id, Answer(blocks=blocks, stop="interrupted", tokens=Tokens()))

    async def _delegate(self, call: Call, task: str, may_change: bool) -> Output:
        """Have a sub-agent do something; one that was begun by an earlier process goes on."""
        journal = self._journal.below(call.id)
        has_begun = journal.turn_of(call.id) is not None
        known = ids_of(journal.entries)
        start = replace(
            self._start,
            tools=of_sub_agent(self._tools, may_change=may_change),
            client_tools=(),
            max_turns=min(self._start.max_turns or _MOST_TURNS_BELOW, _MOST_TURNS_BELOW),
            instructions="\n\n".join(filter(None, [SUB_AGENT, self._start.instructions])),
            heard=self._start.heard if has_begun else (),
            begun=tuple(each for each in self._start.begun if each in known),
        )
        servers = self._servers if may_change else None
        loop = Loop(start, journal, Inbox(self._inbox), self._workspace, self._environ, servers, self._gate)
        async with self._room:
            BELOW.set(call.id)  # a call is a task of its own
            try:
                await loop.turn(Prompted(text=task, id=call.id))
            except ModelFailed as failed:
                return Output(text=f"The sub-agent failed: {failed}", failed=True, tokens=loop.used)
            finally:
                BELOW.set(None)
                await loop.close()
        words, reason = loop.outcome()
        ending = "" if reason == "end_turn" else f"\n[it was ended: {reason}]"
        return Output(text=f"{words}{ending}", failed=not words, tokens=loop.used)

    @property
    def used(self) -> Tokens:
        """Tokens of the turn so far."""
        return self._used

    def outcome(self) -> tuple[str, str]:
        """What the model said last in the last turn, and why that ended."""
        *_, ended = self._journal.entries
        answers = [entry for entry in self._journal.entries if isinstance(entry, Assistant)]
        blocks = answers[-1].blocks if answers else ()
        words = "\n\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)
        return words, ended.reason if isinstance(ended, Ended) else ""

    async def _run(self, calls: Sequence[Call], answer: Answer | Assistant) -> None:
        before = len(self._journal.entries)
        await self._calls.run(calls, was_cut=answer.stop == "max_tokens")
        self._journal.sync()
        for entry in self._journal.entries[before:]:
            if isinstance(entry, Result):
                self._used = self._used.plus(entry.tokens)
        if self._calls.bad_inputs >= _MOST_BAD_INPUTS:
            raise Ending(
                "bad_calls", f"Stopped: the model made {self._calls.bad_inputs} calls in a row that make no sense."
            )
        self._last += [(call.name, call.input) for call in calls]
        if len(self._last) >= _MOST_REPETITIONS and len(set(self._last[-_MOST_REPETITIONS:])) == 1:
            raise Ending("loop", f"Stopped: the model made the same call {_MOST_REPETITIONS} times in a row.")

    def _opened(self) -> tuple[Endpoint, Model, Fitted]:
        """The model, found when it is needed first; people then hear what it cannot be told."""
        if self._open is None:
            place, start = endpoint(self._start, self._environ), self._start
            if start.model is None:
                write(ModelChosen(model=place.full_name))
                self._tell_model(place.full_name)
            fit = fitted(
                place.model,
                place.api,
                max_tokens=start.max_tokens,
                temperature=start.temperature,
                effort=start.effort,
            )
            for notice in fit.notices:
                write(Noted(message=notice, code="setting_dropped"))
            self._open = place, Model(place), fit
        return self._open

    def _tell_model(self, name: str) -> None:
        """Once in a conversation: people pay for it."""
        if not any(isinstance(entry, Assistant) for entry in self._journal.entries):
            words = f"No model was named, so it is {name}; name another with `--model`, or `model` in the API."
            write(Noted(message=words, code="model", severity="info"))

    # What is heard and counted

    def _hear_steered(self) -> None:
        while self._inbox.steered:
            self._hear(self._inbox.steered.popleft(), steered=True)

    def _hear(self, message: Message, *, note: str = "", steered: bool = False) -> None:
        pictures = tuple(self._pictures(message))
        self._calls.granted |= set(message.files)
        self._journal.add(
            User,
            text=message.text,
            pictures=pictures,
            files=message.files,
            note=note,
            steered=steered,
            prompt=message.id,
        )

    def _pictures(self, message: Message) -> Iterator[Picture]:
        for image in message.images:
            mime, why = type_of(image.data), objection(image.data)
            if mime is None or why is not None:
                write(Noted(message=f"An image of the prompt is not shown to the model: {why}.", code="image"))
            else:
                yield self._journal.put(mime, image.data)

    def _count(self, tokens: Tokens, place: Endpoint) -> None:
        self._used = self._used.plus(tokens)
        write(
            Used(
                input=self._used.input,
                output=self._used.output,
                cached=self._used.cached,
                reasoning=self._used.reasoning,
                context=tokens.input + tokens.output,
                window=self._window(place),
            )
        )


def _concluded(answer: Answer | Assistant) -> str:
    """How a turn ends whose last answer wants no tool."""
    match answer.stop:
        case "refusal":
            raise Ending("refusal", "The model refused to answer. Its refusal is not told to it again.")
        case "max_tokens":
            raise Ending("max_tokens", "The model's answer was cut off at the limit of its output. Ask it to go on.")
        case _ if not answer.blocks:
            raise Ending("end_turn", "The model answered nothing.")
        case _:
            return "end_turn"
