"""Writes everything that is derived: schema/, docs/reference/, the matrix and the table of agents."""

import json
import sys
from pathlib import Path
from typing import Any

from ostler.agents import ADAPTERS
from ostler.cli import root
from ostler.server.api.app import build_openapi, declared_needs
from tools.reference.agents import matrix_page
from tools.reference.cli import cli_page
from tools.reference.http_api import http_page
from tools.reference.roles import roles_page
from tools.reference.status import open_page, requirements, status_page
from tools.reference.tables import errors_page, settings_page
from tools.reference.typescript import operations_table
from tools.reference.wire import events_page, wire_schema
from tools.sync_client import sync_client

ROOT = Path(__file__).resolve().parent.parent


def outputs() -> dict[str, str]:
    """Every generated file by its path from the root; the same code always gives the same text."""
    openapi, rows = build_openapi(), requirements(ROOT / "tests" / "requirements.toml")
    return {
        "schema/wire.json": _json(wire_schema()),
        "schema/openapi.json": _json(openapi),
        "docs/agents/matrix.md": matrix_page(ADAPTERS),
        "docs/reference/events.md": events_page(),
        "docs/reference/errors.md": errors_page(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/http-api.md": http_page(openapi),
        "docs/reference/roles.md": roles_page(declared_needs()),
        "docs/reference/cli.md": cli_page(root),
        "docs/reference/status.md": status_page(rows),
        "docs/reference/open-issues.md": open_page(rows),
        "src/ostler/client/sync.py": sync_client(ROOT / "src/ostler/client/aio.py"),
        "sdk/typescript/src/operations.ts": operations_table(openapi),
    }


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write what changed and say so."""
    for name, text in outputs().items():
        file = ROOT / name
        if not file.exists() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
