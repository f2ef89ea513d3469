"""What this machine is called, in the words of agents' vendors."""

import platform
import struct
from pathlib import Path

_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_PT_INTERP = 3


def this_platform(shell: Path = Path("/bin/sh")) -> str:
    """The name of the machine we run on."""
    return platform_name(platform.system(), platform.machine(), musl=is_musl(shell))


def platform_name(system: str, machine: str, *, musl: bool = False) -> str:
    """Such as linux-x64 or linux-arm64-musl."""
    processor = _MACHINES.get(machine.lower(), machine.lower())
    return f"{system.lower()}-{processor}" + ("-musl" if musl and system == "Linux" else "")


def is_musl(program: Path) -> bool:
    """Whether a program of the machine, such as its shell, is linked with musl."""
    return "/ld-musl-" in (loader_of(program) or "")


def loader_of(program: Path) -> str | None:
    """The dynamic loader that a 64-bit ELF program names, or None for any other file."""
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return None
            offset, size, count = _program_headers(head)
            file.seek(offset)
            place = _interpreter(file.read(size * count), size)
            file.seek(place[0])
            return file.read(place[1]).rstrip(b"\0").decode(errors="replace") or None
    except (OSError, ValueError, struct.error):
        return None


def _program_headers(head: bytes) -> tuple[int, int, int]:
    (offset,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    return offset, size, count


def _interpreter(headers: bytes, size: int) -> tuple[int, int]:
    """Offset and length of the loader's name; a static program has none."""
    for start in range(0, len(headers), size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", headers, start)
        if kind == _PT_INTERP:
            return offset, length
    return 0, 0
