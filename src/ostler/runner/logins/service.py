"""The logins of a runner's agents: what is known of them, and how they are changed."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ostler.agents.adapter import Adapter, Credential, Installation, Way
from ostler.base.clock import SystemClock
from ostler.base.errors import AgentNotInstalled, Unprocessable
from ostler.base.logs import never_log
from ostler.runner.logins.attempt import Attempt, Course
from ostler.runner.logins.dialogue import Dialogue
from ostler.runner.logins.offers import offers_of
from ostler.runner.logins.probes import key_verdict, status_of
from ostler.runner.logins.sharing import SharedLogins
from ostler.runner.logins.stored import StoredLogin, StoredLogins, files_in
from ostler.runner.logins.terminal import Terminal
from ostler.runner.logins.ways import AskedWays, Reported, login_start, with_browser
from ostler.runner.starting.starter import Starter
from ostler.wire.agents import AgentLogin, LoginOffer, LoginOrder, LoginState

_MOST_NAMES = 5


class Logins:
    """Does what a server asks about logins; at most one is under way for each agent."""

    def __init__(
        self,
        folder: Path,
        environ: Mapping[str, str],
        find: Callable[[Adapter], Installation | None],
        starter: Starter,
        *,
        share: bool = False,
    ) -> None:
        """`share` lets every agent have what is found on the machine, without being asked."""
        self._stored = StoredLogins(folder / "logins")
        self._stored.clear_all()
        self._starter = starter
        self._find = find
        self.shared = SharedLogins(self._stored, environ, share=share)
        self._ways = AskedWays(starter)
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
        await asyncio.gather(self._ways.close(), *(self._end(agent) for agent in list(self._attempts)))

    async def _end(self, agent: str) -> None:
        if (attempt := self._attempts.pop(agent, None)) is not None:
            await attempt.close()

    def _attempt(self, agent: str) -> Attempt:
        if agent not in self._attempts:
            raise Unprocessable(reason=f"No login of '{agent}' is under way. Start one first.")
        return self._attempts[agent]

    async def _start(self, adapter: Adapter, order: LoginOrder) -> None:
        agent = adapter.info.id
        self._refuse_second(agent)
        reported = await self._reported(adapter)
        self._refuse_second(agent)  # the agent took its time to tell its ways
        offers = [offer for offer in self._offers(adapter, reported) if offer.method == order.method]
        if not any(offer.available for offer in offers):
            why = offers[0].about if offers else "It has no such login."
            raise Unprocessable(reason=f"method: {why}", errors={"method": [why]})
        match order.method:
            case "key":
                await self._store_key(adapter, order, reported)
            case "machine":
                self._stored.write(agent, StoredLogin(method="machine"))
            case _:
                await self._begin(adapter, _chosen(reported, order.way))

    def _refuse_second(self, agent: str) -> None:
        running = self._attempts.get(agent)
        if running is not None and not running.is_over:
            raise Unprocessable(reason=f"A login of '{agent}' is under way. Finish or cancel it first.")

    async def _store_key(self, adapter: Adapter, order: LoginOrder, reported: Reported) -> None:
        credential, key = _credential(adapter, order.variable, reported), (order.key or "").strip()
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

    async def _begin(self, adapter: Adapter, chosen: Way | None) -> None:
        """Run the agent's own login in a home of its own; what it leaves there counts only if it succeeds."""
        agent = adapter.info.id
        installation = self._find(adapter)
        if installation is None:
            raise AgentNotInstalled(agent=agent, looked_in="the runner's PATH")
        home = self._stored.new_home(agent)
        start = login_start(adapter, installation, str(home))
        before = files_in(home)

        async def begin() -> Course:
            talk = adapter.info.login.talk
            if chosen is not None and chosen.is_command:
                words, env = _words(chosen, start.argv, installation), {**start.env, **chosen.env}
                return await Terminal.start(self._starter, msgspec.structs.replace(start, argv=words, env=env))
            if talk is None:
                return await Terminal.start(self._starter, start, adapter.info.login.confirms)
            return await Dialogue.start(self._starter, with_browser(start), talk(None if chosen is None else chosen.id))

        async def verify(last_words: str) -> str | None:
            return await self._taken_over(adapter, installation, last_words, files_in(home) - before)

        attempt = self._attempts[agent] = Attempt(agent, verify, lambda: self._stored.clear(agent))
        await attempt.start(begin)

    async def _taken_over(
        self, adapter: Adapter, installation: Installation, last_words: str, new: set[str]
    ) -> str | None:
        """Put what a login has left in its place; why it is none, or None."""
        agent, login = adapter.info.id, adapter.info.login
        home = self._stored.new_home_of(agent)
        links: dict[str, str | None] = {file: str(home / file) for file in login.files if (home / file).exists()}
        if not login.files and new:
            return f"It is logged in, but nothing says where. Name that in `login_files` of its settings: {_some(new)}."
        if not links:
            return last_words or "It ended well, but left no login."
        if login.status:
            state, why = await status_of(self._starter, login, installation, links=links, env={})
            if state != "ready":
                return why
        self._stored.take_over(agent, tuple(links))
        self._stored.write(agent, StoredLogin(method="subscription", at=SystemClock().now()))
        return None

    async def _checked(self, adapter: Adapter, order: LoginOrder) -> AgentLogin:
        """Whether a key is good, or, without one, whether sessions get in."""
        if not order.key:
            return await self._shown(adapter)
        credential = _credential(adapter, order.variable, Reported())
        good, by = await key_verdict(credential.check, order.key)
        installation = self._find(adapter)
        agent, login = adapter.info.id, adapter.info.login
        if good is None and credential.check is None and login.status and installation is not None:
            env = {credential.name: order.key}
            state, why = await status_of(self._starter, login, installation, links={}, env=env)
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
            offers=self._offers(adapter, await self._reported(adapter)),
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
                self._starter, adapter.info.login, installation, links=dict(files), env=variables
            )
        return self._answers[asked]

    async def _reported(self, adapter: Adapter) -> Reported:
        installation = self._find(adapter)
        return Reported() if installation is None else await self._ways.of(adapter, installation)

    def _offers(self, adapter: Adapter, reported: Reported) -> tuple[LoginOffer, ...]:
        return offers_of(adapter, self.shared, reported, is_installed=self._find(adapter) is not None)


def _changes(files: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(Path(file).stat().st_mtime_ns for file in files.values() if Path(file).exists())


def _credential(adapter: Adapter, variable: str | None, reported: Reported) -> Credential:
    known = {credential.name: credential for credential in adapter.credentials}
    for name in reported.ways.variables:
        known.setdefault(name, Credential(name=name, env=(name,)))
    if known and variable is None:
        return next(iter(known.values()))
    if variable in known:
        return known[variable]
    possible = ", ".join(known) or "none"
    reason = f"agent '{adapter.info.id}' does not log in with '{variable}'. Possible: {possible}"
    raise Unprocessable(reason=f"variable: {reason}.", errors={"variable": [reason]})


def _chosen(reported: Reported, way: str | None) -> Way | None:
    """One of the ways that the agent tells, the first unless another is named; None if it tells none."""
    ways = {each.id: each for each in reported.ways.ways}
    if way is None:
        return next(iter(ways.values()), None)
    if way not in ways:
        reason = f"'{way}' is none of its ways. Possible: {', '.join(ways) or 'none, leave it out'}"
        raise Unprocessable(reason=f"way: {reason}.", errors={"way": [reason]})
    return ways[way]


def _words(way: Way, argv: tuple[str, ...], installation: Installation) -> tuple[str, ...]:
    """The command of a way; the agent's program is run as it always is."""
    if not way.command:
        return (*argv, *way.arguments)
    program, *arguments = way.command
    return (*installation.command, *arguments) if program in {installation.path, *installation.command} else way.command


def _some(names: set[str]) -> str:
    shown = sorted(names)[:_MOST_NAMES]
    return ", ".join(shown) + (", ..." if len(names) > _MOST_NAMES else "")
