"""Signing in and out in a browser: there, back, and out."""

from html import escape
from typing import Annotated, Any, cast

from litestar import Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.params import QueryParameter

from ostler.base.errors import NotFound, OstlerError, Unauthorized
from ostler.server.api.described import answer
from ostler.server.api.edge.door import cookie_named
from ostler.server.api.edge.senders import headers_of
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.problems import error_body, problem_headers
from ostler.server.api.requests import ANY_QUERY
from ostler.server.api.services import Services
from ostler.server.auth.scope import Scope, note_refusal
from ostler.server.auth.sign_ins import BEGUN_SECONDS, Back, SignIns
from ostler.wire.access import SignedOut

_TAGS = ["access"]
_CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_NEVER_STORED = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1rem }}</style>
<main><h1>{title}</h1><p>{detail}</p><p><a href="/">Back to Ostler</a></p></main></html>
"""
Asking = Request[Any, Any, Any]
Page = Annotated[str, QueryParameter(name="next", pattern="^/", description="The page of this server to show then.")]
_SENT_ON = answer("A browser is sent on.", {}, ("Location", "Where it goes."))
_BACK = {"code": "code", "state": "state", "issuer": "iss", "error": "error"}


@get(
    "/sign-in/{way:str}",
    operation_id="sign-in.begin",
    tags=_TAGS,
    status_code=303,
    role="anyone",
    answers={"303": _SENT_ON},
)
async def begin(services: Services, request: Asking, way: str, page: Page = "/") -> Response[Any]:
    """Send a browser to a provider, where its user signs in."""
    sign_ins = _sign_ins(services)
    try:
        found = sign_ins.way(way)
        begun = sign_ins.begin(found, page)
        place = await found.begin(begun, _callback(sign_ins, request, way))
    except OstlerError as error:
        return _problem(error, request, sign_ins)
    return _sent_on(place, _cookie(sign_ins, sign_ins.begun_cookie, sign_ins.written(begun), BEGUN_SECONDS))


@get(
    "/sign-in/{way:str}/done",
    operation_id="sign-in.finish",
    tags=_TAGS,
    status_code=303,
    role="anyone",
    opt={ANY_QUERY: True},
    answers={"303": _SENT_ON},
)
async def finish(services: Services, request: Asking, way: str) -> Response[Any]:
    """A browser comes back from a provider: it is signed in from now on, and sees the page that it wanted."""
    sign_ins = _sign_ins(services)
    try:
        found = sign_ins.way(way)
        back = Back(**{name: request.query_params.get(key, "") for name, key in _BACK.items()})
        shown, client = _cookie_of(request, sign_ins.begun_cookie), client_of(request.scope)
        begun, person = await sign_ins.came_back(client, shown, found, back, _callback(sign_ins, request, way))
        secret, scope = await sign_ins.finish(found, person, request.scope.get("user"))
    except OstlerError as error:
        note_refusal(request.scope, error)
        return _problem(error, request, sign_ins)
    await _note(services, request, scope, "sign-in.finish")
    cookie = _cookie(sign_ins, sign_ins.cookie, secret, sign_ins.seconds)
    return _sent_on(begun.next, cookie, _cookie(sign_ins, sign_ins.begun_cookie, "", 0))


@post("/sign-out", operation_id="sign-in.end", tags=_TAGS, status_code=200, role="anyone", audited=False)
async def sign_out(services: Services, request: Asking) -> Response[SignedOut]:
    """Sign out in this browser: its cookie is good no more, and what was opened with it ends."""
    sign_ins = _sign_ins(services)
    caller: Scope = request.scope["user"]
    if caller.sign_in is None:
        raise Unauthorized(reason="Nobody is signed in with a cookie here, so nobody can sign out.")
    way = await services.directory.sign_ins.end(caller.sign_in)
    await _note(services, request, caller, "sign-in.end")
    after = f"{_address(sign_ins, request)}/"
    place = await sign_ins.ways[way].leave(after) if way in sign_ins.ways else None
    gone = _cookie(sign_ins, sign_ins.cookie, "", 0)
    return Response(SignedOut(next=place), cookies=[gone], headers=_NEVER_STORED)


def _sign_ins(services: Services) -> SignIns:
    if services.sign_ins is None:
        hint = "The operator gives one with --oidc-client-id; without it send a token."
        raise NotFound(what="way to sign in", value="in the browser", hint=hint)
    return services.sign_ins


def _address(sign_ins: SignIns, request: Asking) -> str:
    return sign_ins.address(request.headers.get("host", ""))


def _callback(sign_ins: SignIns, request: Asking, way: str) -> str:
    return f"{_address(sign_ins, request)}/api/v1/sign-in/{way}/done"


def _cookie_of(request: Asking, name: str) -> str:
    return cookie_named(name, headers_of(cast(Any, request.scope)))


def _cookie(sign_ins: SignIns, name: str, value: str, seconds: int) -> Cookie:
    return Cookie(
        key=name, value=value, path="/", max_age=seconds, secure=sign_ins.is_secure, httponly=True, samesite="lax"
    )


def _sent_on(place: str, *cookies: Cookie) -> Response[None]:
    return Response(None, status_code=303, headers={"location": place, **_NEVER_STORED}, cookies=cookies)


def _problem(error: OstlerError, request: Asking, sign_ins: SignIns) -> Response[Any]:
    """What went wrong, as a page for who reads pages."""
    headers = {**_NEVER_STORED, **problem_headers(error)}
    over = [_cookie(sign_ins, sign_ins.begun_cookie, "", 0)]
    if "text/html" not in request.headers.get("accept", ""):
        media_type, body = error_body(error, request.url.path)
        return Response(body, status_code=error.status, media_type=media_type, headers=headers, cookies=over)
    page = _PAGE.format(title=escape(error.title), detail=escape(str(error)))
    headers["content-security-policy"] = _CSP
    return Response(page, status_code=error.status, media_type="text/html", headers=headers, cookies=over)


async def _note(services: Services, request: Asking, who: Scope, action: str) -> None:
    line = services.audit.line(
        tenant=who.tenant,
        project=who.project,
        actor=who.actor,
        action=action,
        outcome="done",
        status=200,
        target="",
        client=client_of(request.scope),
    )
    await services.audit.written(line)


HANDLERS = (begin, finish, sign_out)
