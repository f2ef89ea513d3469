"""Messages behind a Content-Length header come out whole, whatever stands between them and however they were cut."""

import hashlib
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostler.agents.adapter import Installation, Launch
from ostler.runner.execution.frames import FRAMINGS, ContentLengthSplitter, Frame, Overlong
from ostler.runner.execution.limits import Limits
from ostler.runner.local import LocalRunner
from ostler.wire.events import ItemDeltaData
from ostler.wire.parts import TextPart
from ostler.wire.running import AgentSpec, Prompt
from tests.support.patience import until
from tests.support.runner_parts import HERE, PATIENCE, PROGRAMS, Recorder, TinyAdapter


def split(chunks: list[bytes], limit: int = 1000) -> list[Frame]:
    splitter = ContentLengthSplitter(limit, limit)
    frames = [frame for chunk in chunks for frame in splitter.feed(chunk)]
    return [*frames, *splitter.end()]


def overlong(seen: bytes) -> Overlong:
    return Overlong(size=len(seen), sha256=hashlib.sha256(seen).hexdigest(), head=seen)


@pytest.mark.parametrize(
    ("output", "frames"),
    [
        (b"", []),
        (b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n[1]", [b"{}", b"[1]"]),
        (b"content-length:2\n\n{}", [b"{}"]),
        (b"Content-Type: x\r\nContent-Length: 2\r\nContent-Type: y\r\n\r\n{}", [b"{}"]),
        (b"Content-Length: 4\r\n\r\na\n\r\nContent-Length: 0\r\n\r\nContent-Length: 1\r\n\r\nb", [b"a\n\r\n", b"b"]),
        (b"\r\n\nContent-Length: 1\r\n\r\na\n", [b"a"]),
        (b"noise\nContent-Length: 1\r\n\r\na", [b"noise", b"a"]),
        (b"noiseContent-Length: 1\r\n\r\na", [b"noise", b"a"]),
        (b"Content-Length: 1\r\nnoise\n\r\na", [b"noise", b"a"]),
        (b"Content-Length: x\r\n\r\n", [b"Content-Length: x\r"]),
        (b"Content-Length: 9\r\n\r\ncut off", [b"cut off"]),
        (b"Content-Len", [b"Content-Len"]),
    ],
)
def test_bodies_and_what_is_none_come_out_in_order(output: bytes, frames: list[Frame]) -> None:
    assert split([output]) == frames


def test_what_is_too_long_is_reported_once_and_memory_stays_small() -> None:
    splitter = ContentLengthSplitter(100, 100)
    assert splitter.feed(b"Content-Length: 1000101\r\n\r\n" + b"x" * 101) == [overlong(b"x" * 100)]
    assert [frame for _ in range(1000) for frame in splitter.feed(b"x" * 1000)] == []
    assert splitter.feed(b"Content-Length: 4\r\n\r\nnext") == [b"next"]
    assert splitter.feed(b"y" * 101) == [overlong(b"y" * 100)]
    assert [frame for _ in range(1000) for frame in splitter.feed(b"y" * 1000)] == []
    assert splitter.feed(b"\nContent-Length: 4\r\n\r\nnext") == [b"next"]


_wrap = FRAMINGS["content-length"].wrap
_lines = st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"") + b"\n")
_pieces = st.one_of(
    st.binary(min_size=1, max_size=40).map(_wrap), _lines, st.just(b"\r\n"), st.just(b"Content-Length: ")
)


@given(st.lists(_pieces, max_size=20), st.data())
def test_any_chunking_gives_the_same_frames(pieces: list[bytes], data: st.DataObject) -> None:
    output = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=10)))
    chunks = [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    assert split(chunks, limit=30) == split([output], limit=30)


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=10))
def test_what_was_wrapped_comes_out_as_it_was(bodies: list[bytes]) -> None:
    assert split([b"".join(map(_wrap, bodies))]) == bodies


class FramedAdapter(TinyAdapter):
    """Starts programs/framed.py."""

    def prepare(self, spec: AgentSpec, installation: Installation) -> Launch:
        program = str(PROGRAMS / "framed.py")
        return Launch(argv=(sys.executable, "-I", "-S", program), framing="content-length")


async def test_a_process_that_speaks_with_headers_is_heard_and_its_noise_is_recorded(tmp_path: Path) -> None:
    limits = Limits(
        start_timeout=PATIENCE, turn_timeout=0, interrupt_grace=PATIENCE, stop_grace=0.2, max_frame_bytes=2**20
    )
    runner = LocalRunner([FramedAdapter()], folder=Path(tempfile.mkdtemp()), environ={}, search=[HERE], limits=limits)
    spec = AgentSpec(
        session_id="ses_1",
        agent="tiny",
        start=1,
        cwd=str(tmp_path),
        home=str(tmp_path / "home"),
        env={},
        permission_mode="default",
    )
    sink = Recorder()
    try:
        connection = await runner.connect(spec, sink)
        await connection.prompt(Prompt(prompt_id="p", turn_id="t", parts=(TextPart(text="Grüße\nan alle"),)))
        await until(lambda: sink.turns_ended() == 1)
    finally:
        await runner.close()
    (grown,) = (draft.data for draft in sink.drafts if draft.type == "item.delta")
    assert isinstance(grown, ItemDeltaData)
    assert grown.delta == TextPart(text="Grüße\nan alle")
    assert [draft.raw for draft in sink.drafts if draft.type == "agent.unparsed"] == [b'"a line that is no frame"']
