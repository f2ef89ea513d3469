"""The small page at `/`, made of static files."""

from importlib.resources import files

from litestar import Response, get

_CSP = (
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'"
)
_HEADERS = {"content-security-policy": _CSP, "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
_TYPES = {"index.html": "text/html", "welcome.css": "text/css", "welcome.js": "text/javascript"}


def _static(name: str) -> Response[bytes]:
    content = files("ostler.server.api").joinpath("welcome", name).read_bytes()
    return Response(
        content, media_type=f"{_TYPES[name]}; charset=utf-8", headers={**_HEADERS, "cache-control": "no-cache"}
    )


@get("/", include_in_schema=False, sync_to_thread=False)
def page() -> Response[bytes]:
    """The page."""
    return _static("index.html")


@get("/welcome.css", include_in_schema=False, sync_to_thread=False)
def style() -> Response[bytes]:
    """Its style."""
    return _static("welcome.css")


@get("/welcome.js", include_in_schema=False, sync_to_thread=False)
def script() -> Response[bytes]:
    """Its script."""
    return _static("welcome.js")


HANDLERS = (page, style, script)
