"""Signing in at an OpenID provider: the authorization code flow with PKCE."""

import base64
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from ostler.base.errors import Unauthorized
from ostler.base.errors.access import ProviderAway, SignInFailed
from ostler.base.logs import Log
from ostler.base.redaction import printable
from ostler.base.settings import Settings
from ostler.server.auth.asking import ProviderAnswer, Trust, Unusable, asked, is_safe
from ostler.server.auth.claims import Person
from ostler.server.auth.oidc import Oidc
from ostler.server.auth.sign_ins import Back, Begun, mark_of
from ostler.server.auth.signing_keys import about_provider

log = Log(__name__)
_GOOD_SECONDS = 300.0
_PAUSE_SECONDS = 10


class OidcWay:
    """Implements Way."""

    id = "oidc"
    setting = "oidc_claims"

    def __init__(
        self,
        settings: Settings,
        people: Oidc,
        trust: Trust,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`people` checks what the provider signed."""
        self._issuer, self._client = settings.oidc_issuer or "", settings.oidc_client_id or ""
        self._secret = settings.oidc_client_secret
        self._scopes = settings.oidc_scopes
        self._people = people
        self._trust = trust
        self._monotonic = monotonic
        self._about: Mapping[str, Any] | None = None
        self._read_at = 0.0
        self.name = urlsplit(self._issuer).netloc
        self.mark = mark_of(self._issuer, self._client, settings.oidc_claims)

    async def begin(self, begun: Begun, callback: str) -> str:
        """At its authorization endpoint."""
        query = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": callback,
            "scope": self._scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": begun.challenge,
            "code_challenge_method": "S256",
        }
        return _with(await self._place("authorization_endpoint"), query)

    async def finish(self, begun: Begun, back: Back, callback: str) -> Person:
        """By the id token that it gives for the code."""
        about = await self._known()
        named = back.issuer or about.get("authorization_response_iss_parameter_supported") is True
        if named and back.issuer != self._issuer:
            raise SignInFailed(reason="The answer does not come from the provider that was asked.")
        if back.error or not back.code:
            raise SignInFailed(reason=f"{self.name} says: {printable(back.error) or 'nothing'}.")
        found = await self._exchanged(about, back.code, begun.verifier, callback)
        try:
            answer = found.object()
        except Unusable as error:
            if found.status >= 500:
                raise self._away("end the sign-in") from error
            raise SignInFailed(reason=f"{self.name} does not take its own code any more: {_reason(found)}.") from error
        try:
            tokens = str(answer.get("id_token", "")), str(answer.get("access_token", ""))
            return await self._people.person(tokens[0], self._client, begun.nonce, tokens[1])
        except Unauthorized as error:
            raise SignInFailed(reason=str(error.fields["reason"])) from error

    async def leave(self, after: str) -> str | None:
        """At its end-session endpoint, which asks them again: we keep no token of theirs."""
        try:
            place = str((await self._known()).get("end_session_endpoint", ""))
        except ProviderAway:  # they are signed out here all the same
            return None
        query = {"client_id": self._client, "post_logout_redirect_uri": after}
        return _with(place, query) if place and is_safe(place) else None

    async def _exchanged(self, about: Mapping[str, Any], code: str, verifier: str, callback: str) -> ProviderAnswer:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": verifier,
            "client_id": self._client,
        }
        headers: dict[str, str] = {}
        if self._secret is not None:
            if "client_secret_basic" in about.get("token_endpoint_auth_methods_supported", ["client_secret_basic"]):
                pair = f"{quote_plus(self._client)}:{quote_plus(self._secret)}"
                headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            else:
                form["client_secret"] = self._secret
        try:
            return await asked(await self._place("token_endpoint"), self._trust, form=form, headers=headers)
        except Unusable as error:
            raise self._away("end the sign-in") from error

    async def _place(self, name: str) -> str:
        place = str((await self._known()).get(name, ""))
        if not is_safe(place):
            log.warning("oidc.place_not_safe", issuer=self._issuer, name=name)
            raise self._away("let people sign in")
        return place

    async def _known(self) -> Mapping[str, Any]:
        """What it says of itself; what it content last stays good while it is away."""
        if self._about is None or self._monotonic() - self._read_at > _GOOD_SECONDS:
            try:
                self._about = await about_provider(self._issuer, self._trust)
            except Unusable as error:
                log.warning("oidc.provider_not_read", issuer=self._issuer, reason=str(error))
                if self._about is None:
                    raise self._away("let people sign in") from error
            self._read_at = self._monotonic()
        return self._about

    def _away(self, what: str) -> ProviderAway:
        return ProviderAway(issuer=self._issuer, what=what, retry_after=_PAUSE_SECONDS)


def _with(place: str, query: Mapping[str, str]) -> str:
    return f"{place}{'&' if '?' in place else '?'}{urlencode(query)}"


def _reason(found: ProviderAnswer) -> str:
    content = found.content if isinstance(found.content, dict) else {}
    return printable(
        str(content.get("error_description") or content.get("error") or f"it answers {found.status}")
    ).rstrip(".")
