"""Calls to the object store are counted, those that fail too."""

from pathlib import Path

import pytest

from ostler.base.clock import ObjectNumbers
from ostler.base.errors import StoreUnavailable
from ostler.server.objects.counting import CountedObjects
from ostler.server.objects.local import LocalObjects


def test_each_call_is_counted_by_what_it_does_and_whether_it_failed(tmp_path: Path) -> None:
    numbers = ObjectNumbers()
    objects = CountedObjects(LocalObjects(tmp_path), numbers)
    objects.put("uploads/one", b"12345")
    assert objects.create("uploads/two", b"12")
    assert not objects.create("uploads/two", b"123")
    assert objects.get("uploads/one") == b"12345"
    assert objects.get("uploads/none") is None
    assert objects.folders("") == {"uploads"}
    assert len(objects.entries("uploads")) == 2
    objects.remove("uploads/one")
    (tmp_path / "attachments").write_text("in the way")
    with pytest.raises(StoreUnavailable):
        objects.put("attachments/one", b"lost")
    counted = {verb: times.cumulative()[-1][1] for verb, times in numbers.times.items()}
    assert counted == {"put": 2, "create": 2, "get": 2, "list": 2, "remove": 1}
    assert +numbers.failed == {"put": 1}
    assert (numbers.read_bytes, numbers.written_bytes) == (5, 7)
