"""Tenants, projects, API keys and limits as this server knows them: in memory, so that no request waits for them."""

import asyncio
import re
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

from msgspec.structs import astuple, replace

from ostler.base.clock import Clock, stamped
from ostler.base.errors import InvalidRequest, NotFound, StoreUnavailable, Unauthorized
from ostler.base.errors.access import NameTaken
from ostler.base.ids import new_id
from ostler.base.logs import Log, never_log
from ostler.base.redaction import printable
from ostler.link.keys import hashed
from ostler.server.auth.authenticator import AuthRequest
from ostler.server.auth.claims import Grant
from ostler.server.auth.known_sign_ins import PREFIX, KnownSignIns
from ostler.server.auth.scope import REACHES, Scope, reach_of, roles_up_to
from ostler.server.store.access import Access, AccessRows, ApiKeyRow, LimitsRow, PersonRow, ProjectRow, TenantRow
from ostler.wire.access import Role

log = Log(__name__)
DEFAULT = "default"
_BEGINNING = "ostler_"
_PREFIX = 15
"""Letters of a key that are shown: enough to find it by, and too few to guess the rest."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LONGEST_KEY_NAME = 100
_FOREVER_AGO = "1970-01-01T00:00:00.000Z"
_DEFAULT_TENANT = TenantRow(name=DEFAULT, created_at=_FOREVER_AGO)
_DEFAULT_PROJECT = ProjectRow(id=DEFAULT, tenant=DEFAULT, name=DEFAULT, created_at=_FOREVER_AGO)
_WIDE = frozenset({"tenant", "server"})
_LOOK_SECONDS, _ALONE_SECONDS = 1.0, 30.0


class Directory:
    """Everything that says who may come in; what one server changes the others see within two seconds."""

    def __init__(self, access: Access, clock: Clock, *, is_shared: bool) -> None:
        """`is_shared` says that other servers may change the rows too."""
        self._access = access
        self._clock = clock
        self._pause = _LOOK_SECONDS if is_shared else _ALONE_SECONDS
        self._rows = AccessRows()
        self._asked = self._taken = 0
        self._by_hash: dict[str, ApiKeyRow] = {}
        self._scopes: dict[str, Scope] = {}
        """By the ids of keys, but for those whose project or tenant is gone."""
        self.sign_ins = KnownSignIns(access, clock, self.refresh, is_shared=is_shared)
        self._tenants: dict[str, str] = {}
        self.limits: dict[tuple[str, str], LimitsRow] = {}
        """By scope and id."""
        self._used: dict[str, str] = {}
        self._seen: dict[tuple[str, str, str], PersonRow] = {}
        self._following: asyncio.Task[None] | None = None
        self._open: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)

    async def refresh(self) -> None:
        """Read the rows again, and end what was opened with keys that are good no more."""
        self._asked += 1
        number = self._asked
        rows = await self._access.all()
        if number < self._taken:  # newer ones came first
            return
        self._rows, self._taken = rows, number
        self._by_hash = {key.hash: key for key in self._rows.keys}
        self._tenants = {project.id: project.tenant for project in self._rows.projects}
        self._scopes = {key.id: self._scope_of(key) for key in _keys_in_use(self._rows)}
        self.limits = {(row.scope, row.id): row for row in self._rows.limits}
        self.sign_ins.take(self._rows.sign_ins)
        for key in self._rows.keys:
            if key.revoked_at is not None:
                self._end(key.id)
        for gone in self.sign_ins.over(self._open):
            self._end(gone)

    def start(self) -> None:
        """Look for changes of other servers and note when keys were used, until it is closed."""
        self._following = asyncio.create_task(self._follow())

    async def close(self) -> None:
        """Look no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._pause)
            try:
                used, self._used = self._used, {}
                for key, at in used.items():
                    await self._access.key_used(key, at)
                people, self._seen = self._seen, {}
                for person in people.values():
                    await self._access.person_seen(person)
                if used or people or self._pause == _LOOK_SECONDS:
                    await self.refresh()
            except StoreUnavailable as error:  # what is known stays good until the database is back
                log.warning("access.not_read", reason=str(error))
            except Exception as error:  # else no key that another server revokes would end here
                log.error("access.failed", exc_info=error)

    # Who asks

    async def authenticate(self, request: AuthRequest) -> Scope | None:
        """The scope of an API key; None for what is none."""
        if request.token is None or not request.token.startswith(_BEGINNING):
            return None
        key = self._by_hash.get(hashed(request.token))
        if key is None or key.revoked_at is not None:
            raise Unauthorized(reason="There is no such API key, or it was revoked.")
        if (scope := self._scopes.get(key.id)) is None:
            raise Unauthorized(reason="The project or tenant of this API key was removed.")
        now = self._clock.now()
        if key.expires_at is not None and key.expires_at <= now:
            raise Unauthorized(reason=f"This API key expired at {key.expires_at}.")
        self._used[key.id] = now
        return scope

    def _scope_of(self, key: ApiKeyRow) -> Scope:
        return Scope(
            tenant=key.tenant,
            project=key.project or self.project(key.tenant, DEFAULT).id,
            actor=f"key:{key.id}",
            roles=roles_up_to(key.role),
            reach=reach_of(key.tenant, key.project),
        )

    def granted(
        self, actor: str, grants: Sequence[Grant], expires_at: float | None, sign_in: str | None = None
    ) -> Scope | None:
        """The scope of somebody with these grants; None if they are all of tenants or projects that are not there."""
        scopes = [
            Scope(
                tenant=project.tenant,
                project=project.id,
                actor=actor,
                roles=roles_up_to(grant.role),
                reach=reach_of(grant.tenant, grant.project),
                expires_at=expires_at,
                sign_in=sign_in,
            )
            for grant in grants
            if (project := self._named(grant.tenant, grant.project or DEFAULT)) is not None
        ]
        if not scopes:
            return None
        first = replace(scopes[0], also=tuple(scopes[1:]))
        return self.within(first, first.project)

    def seen(self, scope: Scope, name: str) -> None:
        """Somebody came with a token of their provider, and is called so there."""
        now, shown = self._clock.now(), printable(name)
        for each in _all_of(scope):
            project = each.project if each.reach == "project" else ""
            self._seen[each.actor, each.tenant, project] = PersonRow(
                actor=each.actor,
                tenant=each.tenant,
                project=project,
                role=each.role,
                name=shown,
                first_seen_at=now,
                last_seen_at=now,
            )

    def people(self, scope: Scope) -> tuple[PersonRow, ...]:
        """Those who came into the tenant of a scope, or into its project if it reaches no further."""
        known = {(row.actor, row.tenant, row.project): row for row in self._rows.people}
        for place, row in self._seen.items():
            before = known.get(place)
            known[place] = row if before is None else replace(row, first_seen_at=before.first_seen_at)
        return tuple(
            row
            for _, row in sorted(known.items())
            if row.tenant == scope.tenant and (scope.reach in _WIDE or row.project in {"", scope.project})
        )

    async def is_over(self, credential: str) -> bool:
        """Whether a key or a sign-in is good no more; another server may have made it a moment ago."""

        def is_good() -> bool:
            key = _key_in(self._rows, credential)
            if key is None:
                return credential.startswith(f"{PREFIX}_") and not self.sign_ins.over([credential])
            return key.id in self._scopes and _seconds_left(key, self._clock.now()) != 0

        if not is_good():
            await self.refresh()
        return not is_good()

    @asynccontextmanager
    async def ended_with_key(self, scope: Scope) -> AsyncIterator[None]:
        """Around a stream or a socket: raises TimeoutError in it when the key it was opened with is good no more."""
        credential = scope.credential
        key = _key_in(self._rows, credential)
        if scope.expires_at is None and credential is None:
            yield
            return
        seconds = _seconds_left(key, self._clock.now()) if key is not None else None
        if scope.expires_at is not None:
            seconds = max(scope.expires_at - datetime.fromisoformat(self._clock.now()).timestamp(), 0)
        if credential is not None and self.sign_ins.over([credential]):
            seconds = 0  # they signed out since this was let in
        async with asyncio.timeout(seconds) as limit:
            if credential is not None:
                self._open[credential].add(limit)
            try:
                yield
            finally:
                if credential is not None:
                    self._open[credential].discard(limit)
                    if not self._open[credential]:
                        del self._open[credential]

    def _end(self, key: str) -> None:
        for limit in self._open.pop(key, set()):
            limit.reschedule(0)

    # Tenants and projects

    def tenants(self) -> tuple[TenantRow, ...]:
        """All of them."""
        return (_DEFAULT_TENANT, *self._rows.tenants)

    def projects(self, scope: Scope) -> tuple[ProjectRow, ...]:
        """Those that a scope's credential may use; `server` reaches those of other tenants only by their full names."""
        every = (_DEFAULT_PROJECT, *self._rows.projects)
        return tuple(
            each
            for each in every
            if any(
                (each.tenant == one.tenant and one.reach in _WIDE) or each.id == one.project for one in _all_of(scope)
            )
        )

    def project(self, tenant: str, name: str) -> ProjectRow:
        """One by its name."""
        if (found := self._named(tenant, name)) is not None:
            return found
        raise NotFound(what="project", value=f"{tenant}/{name}", hint="List them with `ostler projects list`.")

    def _named(self, tenant: str, name: str) -> ProjectRow | None:
        every = (_DEFAULT_PROJECT, *self._rows.projects)
        return next((each for each in every if (each.tenant, each.name) == (tenant, name)), None)

    def tenant_of(self, project: str) -> str:
        """The tenant that a project belongs to."""
        return self._tenants.get(project, DEFAULT)

    def project_ids(self, tenant: str) -> tuple[str, ...]:
        """All projects of a tenant."""
        return tuple(each.id for each in (_DEFAULT_PROJECT, *self._rows.projects) if each.tenant == tenant)

    def within(self, scope: Scope, named: str) -> Scope | None:
        """The scope in a project that is named by its id or name, or as tenant/name; None if it may not be used."""
        tenant, slash, name = named.rpartition("/")
        for each in (_DEFAULT_PROJECT, *self._rows.projects):
            fits = (
                (each.tenant, each.name) == (tenant, name)
                if slash
                else named == each.id or ((each.tenant, each.name) == (scope.tenant, named))
            )
            reaching = [one for one in _all_of(scope) if fits and _reaches(one, each)]
            if reaching:
                best = max(reaching, key=lambda one: (len(one.roles), REACHES.index(one.reach)))
                others = tuple(one for one in _all_of(scope) if one is not best) if scope.also else ()
                return replace(best, tenant=each.tenant, project=each.id, also=others)
        return None

    async def add_tenant(self, name: str) -> TenantRow:
        """One more, with a project `default`."""
        new = TenantRow(name=check_name(name), created_at=self._clock.now())
        if name == DEFAULT or not await self._access.add_tenant(new):
            raise NameTaken(verb="is", what="tenant", name=name)
        await self._access.add_project(_new_project(name, DEFAULT, self._clock.now()))
        await self.refresh()
        return new

    async def remove_tenant(self, name: str) -> None:
        """It is there no more, nor is its project `default`, which is its only one."""
        await self._access.remove_project(self.project(name, DEFAULT).id)
        await self._access.remove_tenant(name)
        await self.refresh()

    async def remove_project(self, project: str) -> None:
        """It is there no more."""
        await self._access.remove_project(project)
        await self.refresh()

    async def add_project(self, tenant: str, name: str) -> ProjectRow:
        """One more of a tenant."""
        new = _new_project(tenant, check_name(name), self._clock.now())
        if (tenant, name) == (DEFAULT, DEFAULT) or not await self._access.add_project(new):
            raise NameTaken(verb="is", what="project", name=name)
        await self.refresh()
        return new

    # Keys

    def keys(self, scope: Scope) -> tuple[ApiKeyRow, ...]:
        """Those of a scope: of its tenant, or of its project alone if it reaches no further."""
        return tuple(key for key in self._rows.keys if _has(scope, key))

    def count_keys(self, project: str, tenant: str | None) -> int:
        """How many keys of a project are good, or of a tenant if it is named."""
        return sum(
            key.revoked_at is None and (key.tenant == tenant or key.project == project) for key in self._rows.keys
        )

    async def add_key(
        self, scope: Scope, *, name: str, role: Role, project: str | None, expires_at: str | None
    ) -> tuple[ApiKeyRow, str]:
        """A new key, and its secret, which is known this once."""
        if not name.strip() or len(name) > _LONGEST_KEY_NAME or not name.isprintable():
            raise _refused("name", f"must be a line of 1 to {_LONGEST_KEY_NAME} characters")
        now = self._clock.now()
        secret = f"{_BEGINNING}{secrets.token_urlsafe(32)}"
        never_log(secret)
        new = ApiKeyRow(
            id=new_id("key"),
            hash=hashed(secret),
            prefix=secret[:_PREFIX],
            name=name,
            tenant=scope.tenant,
            project=project,
            role=role,
            created_by=scope.actor,
            created_at=now,
            expires_at=_expiry(expires_at, now),
        )
        await self._access.add_key(new)
        await self.refresh()
        return new, secret

    async def revoke(self, scope: Scope, key: str) -> None:
        """It is good for nothing any more, and what was opened with it ends."""
        if not any(each.id == key for each in self.keys(scope)):
            raise NotFound(what="API key", value=key[:60], hint="List them with `ostler keys list`.")
        await self._access.revoke_key(key, self._clock.now())
        await self.refresh()

    # Limits

    def limits_of(self, scope: Scope) -> tuple[LimitsRow, ...]:
        """Those that count for a scope; for who may use the whole tenant all that are set in it."""
        seen = {("project", scope.project), ("actor", scope.actor)}
        if scope.reach in _WIDE:
            seen |= {("tenant", scope.tenant)}
            seen |= {("project", project) for project in self.project_ids(scope.tenant)}
            seen |= {("actor", f"key:{key.id}") for key in self.keys(scope)}
        found = (row for place, row in self.limits.items() if place in seen)
        return tuple(row for row in found if any(number is not None for number in astuple(row)[2:]))

    async def set_limits(self, new: LimitsRow) -> None:
        """They count from now on."""
        await self._access.set_limits(new)
        await self.refresh()


def _all_of(scope: Scope) -> tuple[Scope, ...]:
    """A scope without what else its actor may do, and all of that."""
    return (replace(scope, also=()), *scope.also) if scope.also else (scope,)


def _key_in(rows: AccessRows, id_: str | None) -> ApiKeyRow | None:
    return next((each for each in rows.keys if each.id == id_), None)


def _keys_in_use(rows: AccessRows) -> Iterator[ApiKeyRow]:
    """Keys of what is there; another server may have made one while its project or tenant was removed here."""
    projects = {DEFAULT, *(each.id for each in rows.projects)}
    tenants = {DEFAULT, *(each.tenant for each in rows.projects if each.name == DEFAULT)}
    for key in rows.keys:
        if key.tenant in tenants if key.project is None else key.project in projects:
            yield key


def check_name(name: str) -> str:
    """A name that a tenant or project may have; raises for another one."""
    if not _NAME.fullmatch(name):
        reason = "is no name: use up to 63 lower-case letters, digits and -, and begin with a letter or digit"
        raise _refused("name", f"'{name[:80]}' {reason}")
    return name


def _expiry(given: str | None, now: str) -> str | None:
    """In the form in which times are compared."""
    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
        shown = stamped(at)
    except ValueError:
        raise _refused("expiresAt", f"'{given[:40]}' is no time such as 2030-01-31T12:00:00Z") from None
    if at.tzinfo is None:
        raise _refused("expiresAt", f"'{given[:40]}' has no time zone; end it with Z for UTC")
    if shown <= now:
        raise _refused("expiresAt", f"'{given[:40]}' is not in the future")
    return shown


def _refused(field: str, reason: str) -> InvalidRequest:
    return InvalidRequest(reason=f"{field} {reason}.", errors={field: [reason]})


def _reaches(scope: Scope, project: ProjectRow) -> bool:
    if scope.reach == "server" or project.id == scope.project:
        return True
    return scope.reach == "tenant" and project.tenant == scope.tenant


def _has(scope: Scope, key: ApiKeyRow) -> bool:
    return key.tenant == scope.tenant and (scope.reach in _WIDE or key.project == scope.project)


def _new_project(tenant: str, name: str, now: str) -> ProjectRow:
    return ProjectRow(id=new_id("prj"), tenant=tenant, name=name, created_at=now)


def _seconds_left(key: ApiKeyRow, now: str) -> float | None:
    if key.revoked_at is not None:
        return 0
    if key.expires_at is None:
        return None
    left = datetime.fromisoformat(key.expires_at) - datetime.fromisoformat(now)
    return max(left.total_seconds(), 0)
