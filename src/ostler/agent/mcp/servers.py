"""The tools of a session's MCP servers, which a helper process speaks with; it is started when there are servers."""

import asyncio
import hashlib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec

from ostler.agent.channel import write
from ostler.agent.mcp.frames import Answered, AnyFromHelper, AnyToHelper, Asked, Called, Dropped, Offer, Offered, Wanted
from ostler.agent.operations import ToolFailed
from ostler.agent.pictures import objection, type_of
from ostler.agent.tools.foreign import Arguments, ForeignTool, shortened
from ostler.agent.tools.tool import CallContext, Output
from ostler.base.ids import ulid
from ostler.wire.own_agent import Noted
from ostler.wire.providers import McpServer

_LONGEST_LINE = 2**28
_LONGEST_NAME = 64
_END_SECONDS = 5.0
_MOST_TOOLS = 128
"""That some providers take in one request."""
_LONGEST_DESCRIPTION = 4_096
_GONE = "The helper that speaks with the MCP servers has ended. Whether this was done is unknown. It is started anew."
_CUT_OFF = (
    "[cut off: the agent was started anew while this ran. Whether it was done is unknown; it was not called again]"
)
_Kind = TypeVar("_Kind")
_decoder: msgspec.json.Decoder[AnyFromHelper] = msgspec.json.Decoder(AnyFromHelper)


class Helper:
    """One helper process, from its first line to its end."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._was_asked = False
        self._answers: dict[str, asyncio.Future[Answered]] = {}
        self._offered: asyncio.Future[Offered] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def started(cls, wanted: Wanted, environ: Mapping[str, str]) -> "Helper":
        """A process that begins to speak with the servers."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-X", "utf8", "-m", "ostler.agent.mcp"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=dict(environ),
            limit=_LONGEST_LINE,
            start_new_session=True,
        )
        helper = cls(process)
        helper.send(wanted)
        return helper

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be asked of it any more."""
        return self._reading.done()

    async def offered(self) -> Offered:
        """What the servers have. Raises ToolFailed."""
        return await asyncio.shield(self._offered)

    async def offered_now(self) -> Offered:
        """The same, asked anew if it has been told before. Raises ToolFailed."""
        if self._offered.done() and self._was_asked:
            self._offered = asyncio.get_running_loop().create_future()
            self.send(Asked())
        self._was_asked = True
        if self.has_ended:
            raise ToolFailed(_GONE)
        return await self.offered()

    async def call(self, server: str, tool: str, arguments: msgspec.Raw) -> Answered:
        """Call a tool. Raises ToolFailed if the helper ends before it has answered."""
        await self.offered()
        if self.has_ended:
            raise ToolFailed(_GONE)
        call = Called(id=ulid(), server=server, tool=tool, arguments=arguments)
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._answers[call.id] = answer
        self.send(call)
        try:
            return await answer
        except asyncio.CancelledError:
            self.send(Dropped(id=call.id))
            raise
        finally:
            self._answers.pop(call.id, None)

    def send(self, frame: AnyToHelper) -> None:
        """Tell it something; one that is gone does not hear it."""
        assert self._process.stdin is not None  # noqa: S101  asked for above
        self._process.stdin.write(msgspec.json.encode(frame) + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  asked for above
        try:
            while line := await self._process.stdout.readline():
                self._take(line)
        except (msgspec.DecodeError, ValueError):
            pass  # it does not speak as it should: another takes its place
        finally:
            self._fail(self._offered)
            for answer in self._answers.values():
                self._fail(answer)

    @staticmethod
    def _fail(waiting: "asyncio.Future[_Kind]") -> None:
        if not waiting.done():
            waiting.set_exception(ToolFailed(_GONE))
            waiting.exception()  # looked at, also when nobody waits

    def _take(self, line: bytes) -> None:
        match _decoder.decode(line):
            case Offered() as offered if not self._offered.done():
                self._offered.set_result(offered)
            case Answered() as answered if (waiting := self._answers.get(answered.id)) and not waiting.done():
                waiting.set_result(answered)
            case _:
                pass

    async def close(self) -> None:
        """End it, and with it the servers that are programs."""
        assert self._process.stdin is not None  # noqa: S101  asked for above
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _END_SECONDS)
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await asyncio.wait({self._reading})


class Servers:
    """The servers of a session."""

    def __init__(self, wanted: Mapping[str, McpServer], environ: Mapping[str, str]) -> None:
        """`environ` is that of commands, without the keys of the agent."""
        self._wanted = Wanted(servers=dict(wanted), environ=dict(environ))
        self._environ = environ
        self._failed: dict[str, str] = {}
        self._left_out = 0
        self._starting: asyncio.Task[Helper] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        """Helpers in whose place is another one."""

    def start(self) -> None:
        """Begin to start the helper, which takes longer than the agent itself."""
        if self._wanted.servers:
            self._starting = asyncio.create_task(Helper.started(self._wanted, self._environ))

    async def tools(self, others: Collection[str]) -> dict[str, ForeignTool]:
        """What the servers that work have now, beside these other tools; people hear of servers that do not."""
        if self._starting is None:
            return {}
        try:
            offered = await (await self._helper()).offered_now()
        except ToolFailed:
            write(Noted(message="The MCP servers cannot be used: their helper has ended.", code="mcp"))
            return {}
        for name, why in sorted(offered.failed.items() - self._failed.items()):
            write(Noted(message=f"The MCP server '{name}' cannot be used: {why}.", code="mcp"))
        self._failed = offered.failed
        return self._named(offered.offers, others)

    def _named(self, offers: Sequence[Offer], others: Collection[str]) -> dict[str, ForeignTool]:
        """As many as a model takes, under names of their own: none takes the place of another tool."""
        tools: dict[str, ForeignTool] = {}
        room = max(0, _MOST_TOOLS - len(others))
        for offer in offers[:room]:
            name = _name(offer)
            if name in tools or name in others:
                name = _shortened(name, f"{offer.server}\0{offer.name}")
            if name not in tools and name not in others:
                tools[name] = self._tool(name, offer)
        if (left_out := len(offers) - room) > max(0, self._left_out):
            words = f"The MCP servers offer {len(offers)} tools, and {left_out} of them are left out"
            write(Noted(message=f"{words}: a model takes {_MOST_TOOLS}. Name fewer servers.", code="mcp"))
        self._left_out = left_out
        return tools

    async def _helper(self) -> Helper:
        """The one that runs, started anew if it has ended; one that is only deaf is ended."""
        now = self._starting
        if now is None or (now.done() and now.result().has_ended):
            if now is not None:
                self._ending.add(asyncio.create_task(now.result().close()))
            now = self._starting = asyncio.create_task(Helper.started(self._wanted, self._environ))
        return await asyncio.shield(now)

    def _tool(self, name: str, offer: Offer) -> ForeignTool:
        return ForeignTool(
            name=name,
            description=offer.description[:_LONGEST_DESCRIPTION],
            schema=offer.schema,
            input=Arguments,
            run=partial(self._run, offer),
            changes="anything",
        )

    async def _run(self, offer: Offer, given: Arguments, context: CallContext) -> Output:
        if context.claim.left() is not None:
            return Output(text=_CUT_OFF, failed=True, how="cut_off")
        context.claim.begin()
        answered = await (await self._helper()).call(offer.server, offer.name, given.json)
        refused = [
            f"[an image that cannot be shown: {why}]" for image in answered.images if (why := objection(image.data))
        ]
        pictures = tuple(
            context.keep(mime, image.data)
            for image in answered.images
            if (mime := type_of(image.data)) is not None and objection(image.data) is None
        )
        words = shortened("\n".join(filter(None, [answered.text, *refused])))
        return Output(text=words, failed=answered.failed, pictures=pictures)

    async def close(self) -> None:
        """End the helper, and those before it."""
        if self._starting is not None:
            await (await asyncio.shield(self._starting)).close()
        await asyncio.gather(*self._ending)


def _name(offer: Offer) -> str:
    """As models take it: short, and without signs."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{offer.server}__{offer.name}")
    return name if len(name) <= _LONGEST_NAME else _shortened(name, name)


def _shortened(name: str, meant: str) -> str:
    digest = hashlib.sha256(meant.encode()).hexdigest()[:8]
    return f"{name[: _LONGEST_NAME - 9]}_{digest}"
