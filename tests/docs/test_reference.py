"""Everything a user can meet stands in the reference."""

import json
from pathlib import Path

import msgspec
import pytest

from ostler.base.errors import ERRORS
from ostler.base.settings import Settings
from ostler.server.api.app import build_openapi
from ostler.wire.events import EVENTS
from tests.support.http_helpers import api_document

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def _routes() -> list[str]:
    paths = api_document()["paths"]
    methods = ("get", "post", "put", "patch", "delete")
    return [f"{method.upper()} {path}" for path, item in paths.items() for method in methods if method in item]


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_is_described(event: str) -> None:
    assert f"\n### {event}\n" in (REFERENCE / "events.md").read_text()


@pytest.mark.parametrize("code", [error.code for error in ERRORS])
def test_every_error_is_described(code: str) -> None:
    assert f"\n| `{code}` |" in (REFERENCE / "errors.md").read_text()


@pytest.mark.parametrize("setting", [field.name for field in msgspec.structs.fields(Settings)])
def test_every_setting_is_described(setting: str) -> None:
    assert f"\n| `{setting}` |" in (REFERENCE / "settings.md").read_text()


@pytest.mark.parametrize("route", _routes())
def test_every_route_is_described(route: str) -> None:
    assert f"\n`{route}`\n" in (REFERENCE / "http-api.md").read_text()


def test_the_committed_openapi_document_is_the_one_the_server_serves() -> None:
    assert api_document() == json.loads(json.dumps(build_openapi())), "make schema writes it anew"
