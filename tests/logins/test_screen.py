"""Addresses and codes are found in what login commands print, whatever is around them."""

import pytest

from ostler.runner.logins.screen import Screen

CODEX = (
    b"Follow these steps to sign in:\r\n\r\n1. Open this link\r\n   \x1b[94mhttps://auth.example.com/codex/device\x1b[0m\r\n"
    b"\r\n2. Enter this one-time code \x1b[90m(expires in 15 minutes)\x1b[0m\r\n   \x1b[94mABCD-12345\x1b[0m\r\n"
)
CLAUDE = (
    b"If the browser didn't open, visit: https://claude.example/oauth?code=true&state=a-B\r\n\r\nPaste code here > "
)
LINK = b"\x1b]8;;https://example.com/x?a=1\x07Click here\x1b]8;;\x07\r\n"


@pytest.mark.parametrize(
    ("output", "url", "code", "asks"),
    [
        (CODEX, "https://auth.example.com/codex/device", "ABCD-12345", False),
        (CLAUDE, "https://claude.example/oauth?code=true&state=a-B", None, True),
        (LINK, "https://example.com/x?a=1", None, False),
        (b"Starting...\r\n", None, None, False),
        (b"Go to https://example.com/device. Code: WDJB-MJHT\n", "https://example.com/device", "WDJB-MJHT", False),
        (b"\xff\xfe\x1b[", None, None, True),
    ],
)
def test_what_a_person_needs_is_found(output: bytes, url: str | None, code: str | None, asks: bool) -> None:
    screen = Screen()
    for byte in output:
        screen.feed(bytes([byte]))
    assert (screen.url, screen.code, screen.asks) == (url, code, asks)


def test_the_last_words_hide_their_secrets() -> None:
    screen = Screen()
    screen.hide("typed")
    screen.feed(b"x" * 200_000 + b"\r\n\x1b[31m> typed: https://example.com/?token=s3cr3t\x1b[0m\r\n\r\n")
    assert screen.last_line() == "> [hidden]: https://example.com/?token=[hidden]"
