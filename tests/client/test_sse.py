"""The SSE parser gives the same messages for every way the bytes may be cut."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ostler.client.sse import SseMessage, SseParser

WIRE = (
    b"\xef\xbb\xbf: hello\n\nid: 1\ndata: one\n\n\n\nid: 2\r\ndata: two\r\ndata:  lines\r\n\r\n"
    b"retry: 5\nid: 7\n\ndata\n\nevent: x\nid: 3\ndata:{}\n\r\n: beat\n\n"
    b"id: a\0b\ndata: four\r\rdata: \xc3\xa9\n\ndata: cut"
)
MESSAGES = [
    SseMessage("1", b"one"),
    SseMessage("2", b"two\n lines"),
    SseMessage("7", b""),
    SseMessage("3", b"{}"),
    SseMessage("3", b"four"),
    SseMessage("3", b"\xc3\xa9"),
]


def test_line_ends_comments_ids_and_several_data_lines_are_understood() -> None:
    assert SseParser().feed(WIRE) == MESSAGES


@given(st.lists(st.integers(0, len(WIRE)), max_size=40))
def test_any_cut_gives_the_same_messages(cuts: list[int]) -> None:
    parser = SseParser()
    edges = [0, *sorted(cuts), len(WIRE)]
    found = [message for a, b in pairwise(edges) for message in parser.feed(WIRE[a:b])]
    assert found == MESSAGES


def test_one_byte_at_a_time_gives_the_same_messages() -> None:
    parser = SseParser()
    assert [message for byte in WIRE for message in parser.feed(bytes([byte]))] == MESSAGES


def test_a_message_of_many_megabytes_in_small_chunks_arrives_whole() -> None:
    parser, payload = SseParser(), b"x" * (8 * 2**20)
    wire = b"id: 9\ndata: " + payload + b"\n\n"
    found = [message for at in range(0, len(wire), 4096) for message in parser.feed(wire[at : at + 4096])]
    assert found == [SseMessage("9", payload)]
