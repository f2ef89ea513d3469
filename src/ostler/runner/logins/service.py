"""The logins of a runner's agents: what is known of them, and how they are changed."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from ostler.agents.adapter import Adapter, Credential, Installation, Launch
from ostler.base.clock import SystemClock
from ostler.base.errors import AgentNotInstalled, Unprocessable
from ostler.base.logs import never_log
from ostler.runner.logins.attempt import Attempt
from ostler.runner.logins.offers import offers_of
from ostler.runner.logins.probes import key_verdict, status_of
from ostler.runner.logins.sharing import SharedLogins
from ostler.runner.logins.stored import StoredLogin, StoredLogins
from ostler.runner.runtimes.home import environment, prepare_home
from ostler.wire.agents import AgentLogin, LoginOffer, LoginOrder, LoginState
from ostler.wire.running import AgentSpec

_BROWSER = {"BROWSER": "true", "NO_BROWSER": "true", "TERM": "xterm-256color"}
"""No browser is opened on the runner's machine: the person is elsewhere."""


class Logins:
    """Does what a server asks about logins; at most one is under way for each agent."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        find: Callable[[Adapter], Installation | None],
        *,
        share: bool = False,
    ) -> None:
        """`share` lets every agent have what is found on the machine, without being asked."""
        self._stored = StoredLogins(folder / "logins")
        self._environ = environ
        self._find = find
        self.shared = SharedLogins(self._stored, environ, share=share)
        self._attempts: dict[str, Attempt] = {}
        self._answers: dict[tuple[object, ...], tuple[LoginState, str]] = {}

    async def obey(self, adapter: Adapter, order: LoginOrder) -> AgentLogin:
        """Do what a server asks; how it stands then."""
        agent = adapter.info.id
        never_log(order.key, order.code)
        match order.verb:
            case "look":
                pass
            case "check":
                return await self._checked(adapter, order)
            case "start":
                await self._start(adapter, order)
            case "answer":
                self._attempt(agent).answer(order.code or "")
            case "cancel":
                await self._attempt(agent).close()
            case "log_out":
                await self._end(agent)
                self._stored.remove(agent)
        return await self._shown(adapter)

    async def close(self) -> None:
        """End every login that is under way."""
        await asyncio.gather(*(self._end(agent) for agent in list(self._attempts)))

    async def _end(self, agent: str) -> None:
        if (attempt := self._attempts.pop(agent, None)) is not None:
            await attempt.close()

    def _attempt(self, agent: str) -> Attempt:
        if agent not in self._attempts:
            raise Unprocessable(reason=f"No login of '{agent}' is under way. Start one first.")
        return self._attempts[agent]

    async def _start(self, adapter: Adapter, order: LoginOrder) -> None:
        agent = adapter.info.id
        running = self._attempts.get(agent)
        if running is not None and not running.is_over:
            raise Unprocessable(reason=f"A login of '{agent}' is under way. Finish or cancel it first.")
        offer = next((offer for offer in self._offers(adapter) if offer.method == order.method), None)
        if offer is None or not offer.available:
            why = offer.about if offer is not None else "It has no such login."
            raise Unprocessable(reason=f"method: {why}", errors={"method": [why]})
        match order.method:
            case "key":
                await self._store_key(adapter, order)
            case "machine":
                self._stored.write(agent, StoredLogin(method="machine"))
            case _:
                await self._begin(adapter)

    async def _store_key(self, adapter: Adapter, order: LoginOrder) -> None:
        credential, key = _credential(adapter, order.variable), (order.key or "").strip()
        if not key or not key.isprintable():
            reason = "must be one line of printable characters"
            raise Unprocessable(reason=f"key: {reason}.", errors={"key": [reason]})
        good, by = await key_verdict(credential.check, key)
        if good is False:
            reason = f"{by} does not accept it"
            raise Unprocessable(reason=f"key: {reason}. Nothing was stored.", errors={"key": [reason]})
        login = StoredLogin(method="key", variable=credential.name, key=key, by=by)
        if good:
            self.shared.note(adapter.info.id, "accepted", by, login)
        else:
            self._stored.write(adapter.info.id, login)

    async def _begin(self, adapter: Adapter) -> None:
        """Run the agent's own login in a home of its own; what it leaves there counts only if it succeeds."""
        agent, login = adapter.info.id, adapter.info.login
        installation = self._find(adapter)
        if installation is None:
            raise AgentNotInstalled(agent=agent, looked_in="the runner's PATH")
        home = self._stored.new_home(agent)
        prepare_home(str(home), {})
        work = home / "tmp"
        spec = AgentSpec(
            session_id="", agent=agent, start=1, cwd=str(work), env={}, permission_mode="default", home=str(home)
        )
        env = environment(spec, Launch(argv=(), env={**_BROWSER, **login.env}), self._environ)

        async def verify() -> str | None:
            links: dict[str, str | None] = {file: str(home / file) for file in login.files if (home / file).is_file()}
            if login.status:
                state, why = await status_of(login, installation, links=links, env={}, environ=self._environ)
                if state != "ready":
                    return why
            if not self._stored.take_over(agent, login.files):
                return "The command ended well, but left no login."
            self._stored.write(agent, StoredLogin(method="subscription", at=SystemClock().now()))
            return None

        attempt = self._attempts[agent] = Attempt(agent, verify, lambda: self._stored.clear(agent))
        await attempt.start((*installation.command, *login.command), env, str(work))

    async def _checked(self, adapter: Adapter, order: LoginOrder) -> AgentLogin:
        """Whether a key is good, or, without one, whether sessions get in."""
        if not order.key:
            return await self._shown(adapter)
        credential = _credential(adapter, order.variable)
        good, by = await key_verdict(credential.check, order.key)
        installation = self._find(adapter)
        agent, login = adapter.info.id, adapter.info.login
        if good is None and credential.check is None and login.status and installation is not None:
            env = {credential.name: order.key}
            state, why = await status_of(login, installation, links={}, env=env, environ=self._environ)
            return AgentLogin(agent=agent, state=state, reason=why)
        words = {True: f"{by} accepts the key.", False: f"{by} does not accept the key."}
        states: dict[bool | None, LoginState] = {True: "ready", False: "needs_login", None: "unknown"}
        return AgentLogin(agent=agent, state=states[good], reason=words.get(bool(good), "") if good is not None else by)

    async def _shown(self, adapter: Adapter) -> AgentLogin:
        agent = adapter.info.id
        stored = self._stored.read(agent)
        state, reason = await self._state(adapter, stored)
        attempt = self._attempts.get(agent)
        return AgentLogin(
            agent=agent,
            state=state,
            reason=reason,
            method=self.shared.method(agent),
            offers=tuple(self._offers(adapter)),
            running=attempt.shown() if attempt is not None else None,
        )

    async def _state(self, adapter: Adapter, stored: StoredLogin | None) -> tuple[LoginState, str]:
        login = adapter.info.login
        if not login.is_needed:
            return "ready", "It needs no login."
        variables, files = self.shared.variables(adapter), self.shared.files(adapter)
        if not variables and not files:
            return self._nothing(adapter, stored)
        if stored is not None and stored.verdict == "refused":
            return ("expired" if files else "needs_login"), f"It was not let in by {stored.by} at {stored.at}."
        if files and login.status and (installation := self._find(adapter)) is not None:
            return await self._status(adapter, installation, files, variables)
        if stored is not None and stored.verdict == "accepted":
            return "ready", f"{stored.by.capitalize()} let it in at {stored.at}."
        what = f"{', '.join(variables)} is there" if variables else "A login is stored"
        return "unknown", f"{what}; the next turn shows whether it holds."

    def _nothing(self, adapter: Adapter, stored: StoredLogin | None) -> tuple[LoginState, str]:
        if stored is not None:
            return "needs_login", "What it logged in with is gone."
        if not adapter.credentials and not adapter.info.login.files:
            return "unknown", "Nothing is known about how it logs in."
        return "needs_login", "Nothing that it could log in with is known here."

    async def _status(
        self, adapter: Adapter, installation: Installation, files: Mapping[str, str], variables: Mapping[str, str]
    ) -> tuple[LoginState, str]:
        """What the agent says of itself; it is asked again when the login or the program has changed."""
        asked = (adapter.info.id, installation.command, _changes(files), tuple(sorted(variables.items())))
        if asked not in self._answers or self._answers[asked][0] != "ready":
            self._answers = {known: state for known, state in self._answers.items() if known[0] != adapter.info.id}
            self._answers[asked] = await status_of(
                adapter.info.login, installation, links=dict(files), env=variables, environ=self._environ
            )
        return self._answers[asked]

    def _offers(self, adapter: Adapter) -> tuple[LoginOffer, ...]:
        return offers_of(adapter, self.shared, is_installed=self._find(adapter) is not None)


def _changes(files: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(Path(file).stat().st_mtime_ns for file in files.values() if Path(file).exists())


def _credential(adapter: Adapter, variable: str | None) -> Credential:
    for credential in adapter.credentials:
        if variable in {None, credential.name}:
            return credential
    possible = ", ".join(credential.name for credential in adapter.credentials) or "none"
    reason = f"agent '{adapter.info.id}' does not log in with '{variable}'. Possible: {possible}"
    raise Unprocessable(reason=f"variable: {reason}.", errors={"variable": [reason]})
