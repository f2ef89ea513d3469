"""Clients that show a certificate which one of the server's authorities signed."""

from collections.abc import Sequence

from ostler.base.setting_groups.identity import ClaimRule
from ostler.server.auth.authenticator import AuthRequest
from ostler.server.auth.claims import grants_of
from ostler.server.auth.directory import Directory
from ostler.server.auth.scope import Scope


class ShownCertificates:
    """Implements Authenticator: the names in a certificate are a claim. Who shows a token is who the token says."""

    def __init__(self, rules: Sequence[ClaimRule], directory: Directory) -> None:
        self._rules = tuple(rules)
        self._directory = directory

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """The scope of a certificate; None for one that no rule knows, such as those of runners."""
        if not request.names or request.token is not None:
            return None
        grants = grants_of({"names": list(request.names)}, self._rules)
        found = self._directory.granted(f"cert:{request.names[0]}", grants, None)
        if found is not None:
            self._directory.seen(found, request.names[0])
        return found
