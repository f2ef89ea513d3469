"""The ways to log an agent in, in words for people."""

from ostler.agents.adapter import Adapter
from ostler.runner.logins.sharing import SharedLogins
from ostler.runner.logins.ways import Reported
from ostler.wire.agents import LoginOffer


def offers_of(
    adapter: Adapter, logins: SharedLogins, reported: Reported, *, is_installed: bool
) -> tuple[LoginOffer, ...]:
    """What can be done about an agent, and what cannot and why."""
    login, own_names = adapter.info.login, [credential.name for credential in adapter.credentials]
    names = tuple(dict.fromkeys([*own_names, *reported.ways.variables]))
    if not login.is_needed:
        return ()
    offers = [_machine(adapter, logins)] if names or login.files else []
    if login.tells_ways:
        offers.extend(_ways(adapter, reported, is_installed=is_installed))
    elif login.command or login.talk is not None:
        offers.append(_command(adapter, is_installed=is_installed))
    if names:
        about = f"A key, which sessions get as {names[0]}. It is stored on the runner and never shown again."
        offers.append(LoginOffer(method="key", available=True, about=about, variables=names))
    own = f"`env` with {names[0]}, or a `provider`," if names else "A `provider`"
    return (*offers, LoginOffer(method="session", available=True, about=f"{own} of one session goes first."))


def _machine(adapter: Adapter, logins: SharedLogins) -> LoginOffer:
    home = logins.own_home
    files = [f"~/{file}" for file in adapter.info.login.files if home is not None and (home / file).exists()]
    sources = [found.source.removeprefix("file ") for found in logins.found(adapter)]
    there = ", ".join(dict.fromkeys([*files, *sources]))
    nothing = f"Nothing was found on the runner's machine. Log in there with {adapter.info.name} itself first."
    about = f"Share what is on the runner's machine: {there}." if there else nothing
    return LoginOffer(method="machine", available=bool(there), about=about)


def _command(adapter: Adapter, *, is_installed: bool) -> LoginOffer:
    account = adapter.info.login.account or "an account"
    about = (
        f"Log in with {account}: open a page, and enter or paste a code."
        if is_installed
        else f"Log in with {account}. Install it first: `ostler agents install {adapter.info.id}`."
    )
    return LoginOffer(method="subscription", available=is_installed, about=about)


def _ways(adapter: Adapter, reported: Reported, *, is_installed: bool) -> list[LoginOffer]:
    """What the agent itself says."""
    if not is_installed:
        return [_command(adapter, is_installed=False)] if adapter.info.login.account else []
    if reported.failure is not None:
        about = f"It could not be asked how it is logged in: {reported.failure}"
        return [LoginOffer(method="subscription", available=False, about=about)]
    return [
        LoginOffer(method="subscription", available=True, way=way.id, name=way.name, about=way.about or way.name)
        for way in reported.ways.ways
    ]
