"""A workspace behind a command that leads elsewhere, such as `podman exec -i NAME` or `ssh HOST`.

The other side needs a POSIX shell with the usual small programs (`cat`, `find`, `grep`, `stat`, `readlink`, `base64`,
`timeout`), as Debian, Alpine and their like have. It gets scripts by its standard input, so nothing is quoted twice.
"""

import asyncio
import base64
import posixpath
import shlex
import subprocess
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

from ostler.agent.operations import QUIET, Found, Missing, ToolFailed, Unreachable, Wrap, replacing
from ostler.agent.processes import Command, Hear, started
from ostler.agent.workspace import outside, relative_to, too_large
from ostler.base.ids import ulid

_SECONDS = 30
_BROKEN = 128
"""From here on an exit code may be that of what leads there, such as 255 of ssh."""
_ANSWER = b"ostler-answers "
_MARK = "OSTLER_CALL"
_PLACE = """
place() { # the real place of $1, whose last parts may be missing; fails outside of the workspace
  at=$1 rest=
  while [ ! -e "$at" ] && [ ! -L "$at" ]; do rest="/${at##*/}$rest"; at=$(dirname -- "$at"); done
  real=$(readlink -f -- "$at") || return 1
  case "$real/" in "${top%/}"/*) printf '%s%s' "$real" "$rest" ;; *) return 1 ;; esac
}
answer() { printf 'ostler-answers %s\\n' "$*"; }
top=$(cd -- "$root" 2>/dev/null && pwd -P) || { answer gone; exit; }
cd -- "$top"
p=$(place "./$path") || { answer outside; exit; }
"""
_READ = """
[ -e "$p" ] || { answer missing; exit; }
[ -d "$p" ] && { answer folder; exit; }
[ -f "$p" ] || { answer special; exit; }
[ -r "$p" ] || { answer closed; exit; }
answer ok "$(wc -c < "$p")"
head -c "$most" < "$p"
"""
_WRITE = """
was=created mode=
if [ -e "$p" ]; then
  [ -f "$p" ] || { answer special; exit; }
  was=modified mode=$(stat -c %a -- "$p")
fi
mkdir -p -- "$(dirname -- "$p")" && fresh="$(dirname -- "$p")/.$name.new" && base64 -d > "$fresh" <<'CONTENT' || {
{content}
CONTENT
rm -f -- "$fresh"; answer failed; exit; }
[ -z "$mode" ] || chmod "$mode" "$fresh"
mv -f -- "$fresh" "$p" && answer ok "$was" || { rm -f -- "$fresh"; answer failed; }
"""
_LOCATE = """
[ -e "$p" ] || { answer missing; exit; }
answer ok
printf '%s\\0%s' "$top" "$p"
"""
_NAMES = """
[ -d "$p" ] || { answer missing; exit; }
answer ok
ls -1A -- "$p"
"""
_LIST = """
[ -e "$p" ] || { answer missing; exit; }
answer ok
cd -- "$p" && find . -name .git -prune -o ! -type d -exec stat -c '%Y %n' {} + 2>/dev/null
"""
_END = """
for each in /proc/[0-9]*; do
  tr '\\0' '\\n' < "$each/environ" 2>/dev/null | grep -qxF "{mark}" && kill -9 "${{each#/proc/}}" 2>/dev/null
done
printf 'ostler-answers ok\\n'
"""


class Through:
    """A folder on the other side of a command. What runs there is ended there, at the latest after its time."""

    def __init__(self, command: Sequence[str], root: str) -> None:
        """`root` is the folder there."""
        self._command = tuple(command)
        self.root = posixpath.normpath(root)
        self.machine = f"a machine that is reached through `{shlex.join(self._command)}`"

    def relative(self, path: str) -> str:
        """A path as it is called from the root; raises ToolFailed for one that leads out."""
        found = relative_to(path, (self.root,))
        if found is None:
            raise outside(path, self.root)
        return found

    def place(self, path: str) -> str:
        """Where a path really is, from the root. Raises ToolFailed."""
        _, rest = self._asked(_LOCATE, path)
        top, _, found = rest.decode(errors="surrogateescape").partition("\0")
        return posixpath.relpath(found, top)

    def read(self, path: str, most: int, *, granted: Collection[str] = ()) -> bytes:
        """The content of a file. Raises ToolFailed."""
        if path in granted:
            return Path(path).read_bytes()[: most + 1]
        words, content = self._asked(_READ, path, most=str(most + 1))
        if (size := int(words[0])) > most:
            raise too_large(path, size, most)
        return content

    def write(self, path: str, content: bytes) -> bool:
        """Put a file there, whole or not at all; says whether there was one. Raises ToolFailed."""
        encoded = base64.encodebytes(content).decode().rstrip()
        words, _ = self._asked(_WRITE.replace("{content}", encoded), path, name=ulid())
        return words == ["modified"]

    def names(self, path: str) -> list[str]:
        """What is in a folder. Raises ToolFailed."""
        _, listed = self._asked(_NAMES, path)
        return listed.decode(errors="replace").splitlines()

    def files(self, path: str) -> Iterator[Found]:
        """All files below a folder but those of `.git`. Raises ToolFailed."""
        _, listed = self._asked(_LIST, path)
        for line in listed.decode(errors="replace").splitlines():
            seconds, _, name = line.partition(" ")
            if seconds.isdecimal():
                yield Found(name.removeprefix("./"), float(seconds))

    def run(
        self,
        command: str,
        hear: Hear,
        *,
        environ: Mapping[str, str],
        seconds: float,
        wrap: Wrap = replacing,
        alone: bool = False,
    ) -> AbstractAsyncContextManager[Command]:
        """Run a command in the root; what runs there is ended there when the block is left before its end."""
        return self._running(command, hear, environ, seconds, wrap, alone=alone)

    @asynccontextmanager
    async def _running(
        self, command: str, hear: Hear, environ: Mapping[str, str], seconds: float, wrap: Wrap, *, alone: bool
    ) -> AsyncIterator[Command]:
        mark = f"{_MARK}={ulid()}"
        visible = {name: value for name, value in environ.items() if QUIET.get(name) == value}
        script = (
            f"cd -- {shlex.quote(self.root)} || exit 126\n"
            f"export {mark} {' '.join(f'{name}={shlex.quote(value)}' for name, value in visible.items())}\n"
            "shell=$(command -v bash || command -v sh)\n"
            f'exec timeout -k 1 {int(seconds) + 1} "$shell" -c {shlex.quote(command)} </dev/null\n'
        )
        end = ulid()
        here = f"{shlex.join((*self._command, 'sh', '-s'))} <<'{end}'\n{script}{end}\n"
        plain = {name: value for name, value in environ.items() if name not in QUIET}
        argv = ("sh", "-c", here) if wrap is replacing else wrap(here)
        has_ended = False
        try:
            async with started(argv, hear, cwd="/", environ=plain, alone=alone) as running:
                yield running
                has_ended = running.has_ended and 0 <= await running.ended() < _BROKEN  # else only the way there has
        finally:
            if not has_ended:
                await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(self._end, mark)))

    def _end(self, mark: str) -> None:
        """End all that has this mark in its variables there."""
        with suppress(Unreachable):  # it ends by itself when its time is over
            self._answer(_END.format(mark=mark))

    def _asked(self, script: str, path: str, **values: str) -> tuple[list[str], bytes]:
        """What a script says about a path. Raises ToolFailed."""
        given = {"root": self.root, "path": self.relative(path), **values}
        names = "".join(f"{name}={shlex.quote(value)}\n" for name, value in given.items())
        (status, *words), rest = self._answer(names + _PLACE + script)
        match status:
            case "ok":
                return words, rest
            case "outside":
                raise outside(path, self.root)
            case "missing":
                raise Missing(f"'{path}' is not there.")
            case "folder":
                raise ToolFailed(f"'{path}' is a folder. Use `find` to see what is in it.")
            case "special":
                raise ToolFailed(f"'{path}' is no ordinary file.")
            case "gone":
                raise ToolFailed(f"The folder {self.root} is not on {self.machine}.")
            case _:
                raise ToolFailed(f"'{path}' may not be read or written there.")

    def _answer(self, script: str) -> tuple[list[str], bytes]:
        """What the other side answers. Raises Unreachable."""
        try:
            done = subprocess.run(
                [*self._command, "sh", "-s"],
                input=script.encode(errors="surrogateescape"),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unreachable(f"{self.machine} does not answer: {error}.") from error
        head, _, rest = done.stdout.partition(b"\n")
        if not head.startswith(_ANSWER):
            words = " ".join(done.stderr.decode(errors="replace").split())[:300] or f"it ended with {done.returncode}"
            raise Unreachable(f"{self.machine} does not answer: {words}.")
        return head.removeprefix(_ANSWER).decode().split(), rest
