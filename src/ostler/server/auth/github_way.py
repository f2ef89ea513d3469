"""Signing in at GitHub, whose OAuth is not OpenID: it is asked who somebody is, and of which organisations."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from ostler.base.errors.access import ProviderAway, SignInFailed
from ostler.base.logs import Log
from ostler.base.redaction import printable
from ostler.base.settings import Settings
from ostler.server.auth.asking import ProviderAnswer, Trust, Unusable, asked
from ostler.server.auth.claims import Person, person_of
from ostler.server.auth.sign_ins import Back, Begun, mark_of

log = Log(__name__)
_PAGE, _MOST_PAGES = 100, 10
_PAUSE_SECONDS = 10


class GitHubWay:
    """Implements Way. What GitHub gives for the code is used for these questions and then forgotten."""

    id = "github"
    setting = "github_claims"

    def __init__(self, settings: Settings, trust: Trust) -> None:
        self._url, self._api = settings.github_url.rstrip("/"), settings.github_api_url.rstrip("/")
        self._client, self._secret = settings.github_client_id or "", settings.github_client_secret or ""
        self._rules = settings.github_claims or ()
        self._trust = trust
        host = urlsplit(self._url).netloc
        self.name = "GitHub" if host == "github.com" else f"GitHub at {host}"
        self.mark = mark_of(self._url, self._client, self._rules)

    async def begin(self, begun: Begun, callback: str) -> str:
        """At its page for that."""
        query = {
            "client_id": self._client,
            "redirect_uri": callback,
            "scope": "read:org",
            "state": begun.state,
            "code_challenge": begun.challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._url}/login/oauth/authorize?{urlencode(query)}"

    async def finish(self, begun: Begun, back: Back, callback: str) -> Person:
        """By their number there, which stays theirs, while their name may become another's."""
        if back.error or not back.code:
            raise SignInFailed(reason=f"{self.name} says: {printable(back.error) or 'nothing'}.")
        form = {
            "client_id": self._client,
            "client_secret": self._secret,
            "code": back.code,
            "redirect_uri": callback,
            "code_verifier": begun.verifier,
        }
        found = await self._asked(f"{self._url}/login/oauth/access_token", form=form)
        content = found.content if isinstance(found.content, dict) else {}
        token = content.get("access_token")
        if found.status != 200 or not isinstance(token, str):  # refusals come with status 200 too
            reason = printable(
                str(content.get("error_description") or content.get("error") or f"it answers {found.status}")
            )
            raise SignInFailed(reason=f"{self.name} does not take its own code any more: {reason.rstrip('.')}.")
        return await self._person(token)

    async def leave(self, after: str) -> str | None:
        """It has no page for that."""
        del after
        return None

    async def _person(self, token: str) -> Person:
        user = await self._read(f"{self._api}/user", token)
        if not isinstance(user, dict) or not isinstance(user.get("id"), int) or not isinstance(user.get("login"), str):
            raise self._away("answers no person")
        memberships = [found async for found in self._memberships(token)]
        claims = {
            "login": user["login"].lower(),
            "id": str(user["id"]),
            "name": user.get("name") or user["login"],
            "orgs": [org for org, _ in memberships],
            "memberships": [f"{org}:{role}" for org, role in memberships],
        }
        return person_of(f"github:{user['id']}", claims, self._rules)

    async def _memberships(self, token: str) -> AsyncIterator[tuple[str, str]]:
        """Organisations in lower case, as tenants are, and whether somebody is `member` or `admin` there."""
        for number in range(1, _MOST_PAGES + 1):
            query = urlencode({"state": "active", "per_page": _PAGE, "page": number})
            rows = await self._read(f"{self._api}/user/memberships/orgs?{query}", token)
            if not isinstance(rows, list):
                raise self._away("answers no organisations")
            for row in rows:
                match row:
                    case {"state": "active", "role": str(role), "organization": {"login": str(org)}}:
                        yield org.lower(), role
            if len(rows) < _PAGE:
                return

    async def _read(self, place: str, token: str) -> Any:
        headers = {"authorization": f"Bearer {token}", "x-github-api-version": "2022-11-28"}
        found = await self._asked(place, headers=headers)
        if found.status != 200:
            raise self._away(f"answers {found.status}")
        return found.content

    async def _asked(
        self, place: str, *, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderAnswer:
        try:
            found = await asked(place, self._trust, form=form, headers=headers)
        except Unusable as error:
            raise self._away(str(error)) from error
        if found.status >= 500:
            raise self._away(f"answers {found.status}")
        return found

    def _away(self, reason: str) -> ProviderAway:
        log.warning("github.not_read", reason=reason)
        return ProviderAway(issuer=self.name, what="tell who you are", retry_after=_PAUSE_SECONDS)
