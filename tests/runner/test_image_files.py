"""Images of a prompt come as bytes; the agent gets them so, or as a file of its home."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from ostler.agents import say
from ostler.agents.adapter import Output, Ready, Send
from ostler.agents.claude_code.translator import ClaudeCodeTranslator
from ostler.base.errors import StoreUnavailable
from ostler.runner.execution.images import placed
from ostler.runner.processes.journal import Journal, Prompted, read_calls
from ostler.wire.parts import ImagePart, TextPart
from ostler.wire.running import AgentSpec, Prompt
from tests.runner.test_connection import running, spec_in
from tests.support.patience import until
from tests.support.runner_parts import Recorder, TinyAdapter, TinyTranslator

SERVERS = "/nowhere/on/this/machine/dot.png"
CONTENT = b"\x89PNG \x00\xff"
PROMPT = Prompt(
    prompt_id="prm_1",
    turn_id="t",
    parts=(TextPart(text="look"), ImagePart(path=SERVERS), ImagePart(path=SERVERS)),
    images={SERVERS: CONTENT},
)


class Looking(TinyTranslator):
    """Has the agent say what it was shown."""

    def prompt(self, prompt: Prompt) -> Sequence[Output]:
        images = [part for part in prompt.parts if isinstance(part, ImagePart)]
        lines = [f"say {part.path} {' '.join(say.image(prompt, part))}" for part in images]
        (send,) = super().prompt(Prompt(prompt_id="", turn_id="", parts=(_text(*lines, "done completed"),)))
        return (send,)


class LookingAdapter(TinyAdapter):
    def translator(self, spec: AgentSpec) -> Looking:
        return Looking(spec)


def _text(*lines: str) -> TextPart:
    return TextPart(text="\n".join(lines))


async def test_an_image_reaches_the_agent_as_bytes_and_as_a_file_of_its_home(tmp_path: Path) -> None:
    sink, spec = Recorder(), spec_in(tmp_path)
    async with running(LookingAdapter()) as runner:
        connection = await runner.connect(spec, sink)
        await connection.prompt(PROMPT)
        await until(lambda: sink.turns_ended() == 1)
    file = f"{spec.home}/.ostler/images/prm_1/0.png"
    assert sink.texts() == [f"{file} image/png {b64encode(CONTENT).decode()}"] * 2
    assert Path(file).read_bytes() == CONTENT


async def test_a_link_in_the_home_leads_no_image_out_of_it(tmp_path: Path) -> None:
    sink, spec, outside = Recorder(), spec_in(tmp_path), tmp_path / "outside"
    outside.mkdir()
    async with running(LookingAdapter()) as runner:
        connection = await runner.connect(spec, sink)
        (Path(spec.home) / ".ostler").symlink_to(outside)
        with pytest.raises(StoreUnavailable):
            await connection.prompt(PROMPT)
    assert list(outside.iterdir()) == []


def test_the_journal_says_the_same_again_with_its_images(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    journal = Journal(tmp_path)
    journal.add(Prompted(PROMPT), at=0)
    journal.close()
    (entry,) = read_calls(tmp_path)
    assert entry.call == Prompted(PROMPT)
    frames = [
        ClaudeCodeTranslator(spec, Ready()).prompt(placed(prompt, spec.home)) for prompt in (PROMPT, entry.call.prompt)
    ]
    assert frames[0] == frames[1]
    assert isinstance(frames[0][0], Send)
    assert b64encode(CONTENT) in frames[0][0].frame
