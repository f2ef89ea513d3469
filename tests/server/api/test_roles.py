"""Every handler names the role that it needs, and it is compared with who asks after routing."""

from typing import Any, cast

import pytest
from litestar import Router
from litestar.handlers import BaseRouteHandler
from litestar.routes import HTTPRoute

from ostler.base.errors import Forbidden, Stopping, Unauthorized
from ostler.server.api import app as composed
from ostler.server.api import routes
from ostler.server.api.routes import dialects
from ostler.server.api.services import Services
from ostler.server.auth.scope import LOCAL, Scope, authorise, identify, roles_up_to

ROLES = {"anyone", "viewer", "operator", "admin"}
FOR_ANYONE = {
    "/healthz": "orchestrators look there before anybody has a token",
    "/readyz": "orchestrators look there before anybody has a token",
    "/api/v1/healthz": "the same",
    "/api/v1/readyz": "the same",
    "/api/v1/providers": "people ask there before they have a token",
    "/api/v1/sign-in/{way:str}": "people sign in there before anybody knows them",
    "/api/v1/sign-in/{way:str}/done": "the same",
    "/api/v1/sign-out": "whoever signed in may sign out; strangers are refused before",
    "/api/v1/uploads/{ticket:str}": "the address is the permission",
    "/api/v1/triggers/{trigger:str}/deliveries": "the signature of an event is the permission",
    "/.well-known/oauth-protected-resource/mcp": "MCP clients read there where they get a token",
    "/api/v1/runners/register": "the token that a runner brings is the permission",
}


OF_THEIR_OWN = {
    "/api/v1/sessions/{session:str}/read": "what somebody has seen is theirs alone",
    "/api/v1/members/sign-out": "who signed in may sign out; for others the handler asks for an admin of the tenant",
}


def _handlers(app: Router) -> list[tuple[str, str, BaseRouteHandler]]:
    found: list[tuple[str, str, BaseRouteHandler]] = []
    for route in app.routes:
        if isinstance(route, HTTPRoute):
            by_method = route.route_handler_map
            found += [(route.path, method, pair[0]) for method, pair in by_method.items() if method != "OPTIONS"]
        else:
            found.append((route.path, "any", route.route_handler))
    return found


@pytest.fixture(scope="module")
def handlers() -> list[tuple[str, str, BaseRouteHandler]]:
    return _handlers(composed._litestar(cast(Services, object())))


def test_every_handler_names_a_role(handlers: list[tuple[str, str, BaseRouteHandler]]) -> None:
    assert [(path, method) for path, method, handler in handlers if handler.opt.get("role") not in ROLES] == []


def test_every_handler_of_the_source_is_in_the_route_table(
    handlers: list[tuple[str, str, BaseRouteHandler]],
) -> None:
    walked = {str(handler.fn) for _, _, handler in handlers}
    places = [getattr(folder, name) for folder in (routes, dialects) for name in dir(folder)]
    modules = [module for module in places if hasattr(module, "HANDLERS")]
    assert len(modules) > 15
    written = [handler for module in modules for handler in module.HANDLERS if not isinstance(handler, Router)]
    assert {str(handler.fn) for handler in written} <= walked


def test_only_these_need_nobody(handlers: list[tuple[str, str, BaseRouteHandler]]) -> None:
    assert {path for path, _, handler in handlers if handler.opt["role"] == "anyone"} == set(FOR_ANYONE)


def test_nothing_that_changes_something_is_open_to_viewers(
    handlers: list[tuple[str, str, BaseRouteHandler]],
) -> None:
    of_viewers = [(path, method) for path, method, handler in handlers if handler.opt["role"] == "viewer"]
    assert {method for path, method in of_viewers if path not in OF_THEIR_OWN} <= {"GET", "HEAD"}


@pytest.mark.parametrize(
    ("role", "needed", "allowed"),
    [
        ("viewer", "viewer", True),
        ("viewer", "operator", False),
        ("operator", "viewer", True),
        ("operator", "admin", False),
        ("admin", "admin", True),
    ],
)
def test_a_role_may_what_the_lower_ones_may(role: Any, needed: Any, allowed: bool) -> None:
    scope: dict[str, Any] = {}
    identify(scope, Scope(actor="key:1", roles=roles_up_to(role)))
    if allowed:
        authorise(scope, needed)
    else:
        with pytest.raises(Forbidden, match=f"key:1 is {role} here, and this needs {needed}"):
            authorise(scope, needed)


def test_who_was_not_recognised_may_only_what_anyone_may() -> None:
    scope: dict[str, Any] = {}
    identify(scope, Stopping())
    authorise(scope, "anyone")
    with pytest.raises(Stopping):
        authorise(scope, "viewer")
    with pytest.raises(Unauthorized):
        authorise({}, "viewer")


def test_the_local_operator_may_everything() -> None:
    scope: dict[str, Any] = {}
    identify(scope, LOCAL)
    for needed in ("viewer", "operator", "admin"):
        authorise(scope, needed)
