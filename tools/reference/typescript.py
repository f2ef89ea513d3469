"""The table of operations that the TypeScript SDK calls by; its types come from the same document."""

from typing import Any

_HEAD = """\
// Written by `make schema` from the OpenAPI document.

/** The version of the SDK and of the server it was made with. */
export const VERSION = "{version}";

/** Every operation by its id: its method, and its path with the names of its parameters. */
export const OPERATIONS = {
"""


def operations_table(openapi: dict[str, Any]) -> str:
    """The table; an operation that is another's alias is left out."""
    rows = sorted(
        (operation["operationId"], method.upper(), path)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
        if isinstance(operation, dict) and "operationId" in operation and "x-alias-of" not in operation
    )
    head = _HEAD.replace("{version}", openapi["info"]["version"])
    return head + "".join(f'  "{name}": "{method} {path}",\n' for name, method, path in rows) + "} as const;\n"
