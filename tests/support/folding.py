"""The transcript that a log adds up to, event by event: what every quicker way must give as well."""

import json
from typing import Any

import msgspec

from ostler.server.sessions.log.transcript import Transcript
from ostler.wire.events import decode_event


def folded(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a log, as the API shows them."""
    transcript = Transcript()
    transcript.add(decode_event(json.dumps(event)) for event in events)
    messages: list[dict[str, Any]] = json.loads(msgspec.json.encode(transcript.messages()))
    return messages
