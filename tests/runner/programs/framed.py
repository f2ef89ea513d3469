"""A tiny agent with Content-Length headers both ways: says hello, then repeats what it is told, with noise between."""

import json
import sys
from typing import Any

OUT = sys.stdout.buffer


def tell(frame: dict[str, Any]) -> None:
    body = json.dumps(frame, ensure_ascii=False).encode()
    OUT.write(b"Content-Type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    OUT.flush()


def hear() -> Any:
    header = sys.stdin.buffer.readline()
    if not header:
        sys.exit(0)
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(int(header.partition(b":")[2])))


tell({"ready": "native"})
while True:
    told = hear()["prompt"]
    OUT.write(b"a line that is no frame\n")
    tell({"say": told})
    tell({"done": "completed"})
