"""What people type to open a workspace in their editor."""

import shlex
from urllib.parse import quote

from ostler.wire.workspaces import Devcontainer, Ide, IdeCommands, Workspace

_PROGRAMS: dict[Ide, str] = {"vscode": "code", "cursor": "cursor", "windsurf": "windsurf"}
_HERE = "Run locally on a machine with access to the workspace mount."
_INSIDE = "The workspace is mounted for its own processes only; run this on the runner's machine, it enters first."


def open_commands(
    ide: Ide, workspace: Workspace, entry: tuple[str, ...], container: Devcontainer | None
) -> IdeCommands:
    """Commands in the order they are worth trying."""
    program = _PROGRAMS[ide]
    plain = f"{program} --folder-uri file://{quote(workspace.path)}"
    if not workspace.visible:
        return IdeCommands(ide=ide, commands=(f"{shlex.join(entry)} {plain} --new-window --wait",), notes=_INSIDE)
    if container is not None:
        opened = f"devcontainer open --workspace-folder {shlex.quote(workspace.path)}"
        return IdeCommands(ide=ide, commands=(opened, plain), notes=_HERE)
    return IdeCommands(ide=ide, commands=(plain,), notes=_HERE)
