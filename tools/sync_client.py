"""Writes the synchronous client from the asynchronous one."""

from pathlib import Path
from tempfile import TemporaryDirectory

from unasync import Rule, unasync_files  # type: ignore[import-untyped]

_RENAMED = {
    "AsyncAnswer": "Answer",
    "AsyncClient": "Client",
    "AsyncDecide": "Decide",
    "AsyncReply": "Reply",
    "aclose": "close",
    "async_decided": "decided",
    "async_answered": "answered",
    "async_returned": "returned",
    "ostler.client.async_http": "ostler.client.sync_http",
}
_FIRST_LINE = '"""The synchronous client; `make schema` writes it from aio.py, so change that."""'


def sync_client(asynchronous: Path) -> str:
    """The text of sync.py."""
    text = asynchronous.read_text().replace("`async with`", "`with`")
    with TemporaryDirectory() as folder:
        source, target = Path(folder, "async", "client.py"), Path(folder, "sync")
        source.parent.mkdir()
        source.write_text(text)
        rule = Rule(f"{source.parent}/", f"{target}/", additional_replacements=_RENAMED)
        unasync_files([str(source)], [rule])
        _, rest = (target / source.name).read_text().split("\n", 1)
    return f"{_FIRST_LINE}\n{rest}"
