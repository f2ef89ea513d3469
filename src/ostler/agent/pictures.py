"""Which images providers take: one that they refuse would stay in the history and spoil every later call."""

MOST_BYTES = 3_750_000
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def type_of(content: bytes) -> str | None:
    """What kind of image it is, whatever others say; None if it is none that providers take."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC.items() if content.startswith(magic)), None)


def objection(content: bytes) -> str | None:
    """Why an image cannot be shown to a model; None if it can."""
    if type_of(content) is None:
        return "it is no PNG, JPEG, GIF or WebP"
    return f"it has {len(content)} bytes, and at most {MOST_BYTES} are taken" if len(content) > MOST_BYTES else None
