"""A conversation with one running agent, as the cases hold it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from ostler.conformance.outcomes import Unmet
from ostler.conformance.sink import AskSink, OnAsk, allow
from ostler.conformance.world import World
from ostler.link.protocol import Connection
from ostler.wire.parts import ImagePart, PromptPart, TextPart
from ostler.wire.running import Draft, Prompt


class Driven:
    """Sends scripts to an agent and waits for its turns."""

    def __init__(
        self,
        connection: Connection,
        sink: AskSink,
        world: World,
        script: Callable[[Sequence[str]], str],
        *,
        process: int = 1,
    ) -> None:
        """`process` counts those of one session: a prompt's id is its own in all of them."""
        self.connection = connection
        self.sink = sink
        self.world = world
        self._script = script
        self._process = process
        self._prompts = self._turns = 0

    def path(self, name: str) -> str:
        """Where a file of the workspace lies."""
        return str(self.world.cwd / name)

    async def send(self, *script: str, parts: Sequence[PromptPart] = ()) -> int:
        """Begin a turn; returns where its events start."""
        since = len(self.sink.drafts)
        self._turns += 1
        await self.connection.prompt(self._prompt(script, parts))
        return since

    async def steer(self, *script: str) -> bool:
        """Add to the running turn; False if the agent cannot."""
        return await self.connection.steer(self._prompt(script, ()))

    def _prompt(self, script: Sequence[str], parts: Sequence[PromptPart]) -> Prompt:
        self._prompts += 1
        text = TextPart(text=self._script(script))
        images = {part.path: Path(part.path).read_bytes() for part in parts if isinstance(part, ImagePart)}
        return Prompt(
            prompt_id=f"prm_{self._process}_{self._prompts}",
            turn_id=f"trn_{self._turns}",
            parts=(text, *parts),
            images=images,
        )

    async def ended(self, since: int) -> list[Draft]:
        """The events of a turn, once it is over."""
        await self.sink.until(lambda draft: draft.type == "turn.ended", "the end of the turn", since)
        return self.sink.drafts[since:]

    async def turn(self, *script: str, on_ask: OnAsk = allow, parts: Sequence[PromptPart] = ()) -> list[Draft]:
        """One whole turn."""
        self.sink.on_ask = on_ask
        return await self.ended(await self.send(*script, parts=parts))

    async def remembered(self) -> str:
        """The agent's own id of the conversation, once whoever keeps it has it."""
        native = self.sink.native_session_id
        if native is None:
            raise Unmet("the agent has no id for its session, so nothing can go on with it")
        await self.world.known(native)
        return native
