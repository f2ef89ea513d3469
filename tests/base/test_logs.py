"""Whoever writes a log line, no secret is in it."""

import io
import json
import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ostler.base.logs import Log, configure_logs, never_log
from ostler.base.redaction import Secrets, redacted
from tests.support.serving import clean_env

SECRET = "sekret-2Wq3-very-private"


@pytest.fixture(params=["text", "json"])
def stream(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    """What is logged, in both forms and at the chattiest level."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    hook, thread_hook = sys.excepthook, threading.excepthook
    written = io.StringIO()
    configure_logs(level="debug", form=request.param, stream=written)
    yield written
    root.handlers[:] = before
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hook, thread_hook
    logging.captureWarnings(capture=False)


LEAKS = [
    f"HTTP Request: POST http://127.0.0.1:3551/?t={SECRET} 200",
    f"HTTP Request: POST https://hooks.example.com/services/{SECRET} 200",
    f"GET https://user:{SECRET}@example.com/a",
    f"GET https://{SECRET}@example.com:8080/a#x",
    f"ssh://git@{SECRET}@example.com/a",
    f"headers {{'Authorization': 'Bearer {SECRET}'}}",
    f"headers [(b'authorization', b'Basic {SECRET}'), (b'host', b'x')]",
    f"> x-api-key: {SECRET}",
    f"PRIVATE-TOKEN={SECRET}",
    f'{{"api_key": "{SECRET}"}}',
    f"cookie: {SECRET}",
    f"Bearer {SECRET}",
]


@pytest.mark.parametrize("text", LEAKS)
@pytest.mark.parametrize("name", ["httpx", "uvicorn.access", "uvicorn.error", "asyncio", "somebody.else"])
def test_a_librarys_line_is_without_secrets(stream: io.StringIO, name: str, text: str) -> None:
    logging.getLogger(name).warning("%s", text)
    error = ValueError(text)
    logging.getLogger(name).error("crashed", exc_info=error)
    Log("ostler.test").error("crashed", exc_info=error)
    assert SECRET not in stream.getvalue()
    assert "***" in stream.getvalue()


def test_our_own_line_is_without_secrets_and_still_says_where(stream: io.StringIO) -> None:
    never_log("a-token-known-to-us", "short")
    url = f"https://u:{SECRET}@example.com/repo.git?x={SECRET}"
    inner = {"authorization": SECRET, "list": [url]}
    Log("ostler.test").info("sample", url=url, token=SECRET, count=3, said="short a-token-known-to-us", inner=inner)
    assert SECRET not in stream.getvalue()
    assert "a-token-known-to-us" not in stream.getvalue()
    assert "https://example.com/repo.git?***" in stream.getvalue()
    assert "short ***" in stream.getvalue()


def test_a_line_of_json_stays_json_and_a_line_of_text_stays_one(stream: io.StringIO) -> None:
    never_log('quo"ted-\\secret')
    Log("ostler.test").warning("sample", said='quo"ted-\\secret\nforged line \x1b[2J')
    (line,) = stream.getvalue().splitlines()
    assert "secret" not in line
    assert "\x1b" not in line
    if line.startswith("{"):
        assert json.loads(line)["said"] == "***\nforged line \x1b[2J"


def test_a_request_that_we_make_is_not_told(stream: io.StringIO) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200))
    httpx.Client(transport=transport).post(f"http://example.com/{SECRET}?t={SECRET}")
    assert stream.getvalue() == ""


def test_what_nobody_caught_is_without_secrets(tmp_path: Path) -> None:
    program = f"""
        import threading
        from ostler.base.logs import configure_logs
        configure_logs(level="info", form="text")
        def fail():
            raise ValueError("https://example.com/?t={SECRET}")
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        fail()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=clean_env(tmp_path / "home"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("ValueError: https://example.com/") == 2
    shown = [line for line in done.stderr.splitlines() if SECRET in line and "raise ValueError" not in line]
    assert shown == []


def test_long_text_is_cleaned_quickly() -> None:
    for text in ("a" * 200_000, "token" * 40_000, "http://" * 20_000, "http://" + "@" * 100_000, "-" * 200_000):
        redacted(text, Secrets())
