"""`ostler login`: sign in at the provider of a server, in any browser, and keep the token here."""

import time
from collections.abc import Mapping
from typing import Any

import click

from ostler.cli import signed_in
from ostler.cli.api import ApiCommand, address_of, connect, json_option
from ostler.cli.commands.whoami import rows_of
from ostler.cli.output import facts, show
from ostler.cli.root import Target
from ostler.client.transport import check_exposure

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_WANTED = ("openid", "profile", "email", "offline_access")
_PAUSE_SECONDS, _SLOWER_SECONDS = 5.0, 5.0


@click.command(cls=ApiCommand)
@json_option
@click.pass_obj
def command(target: Target, as_json: bool) -> None:
    """Sign in to a server with your browser, on this machine or another one.

    The token is kept in ~/.config/ostler/tokens.json, renewed by itself, and sent to that server whenever you give
    none.
    """
    address = address_of(target)
    check_exposure(address, "a token", insecure=target.insecure)
    with connect(target, as_stranger=True) as client:
        found = client.system.providers().items
    usable = next((each for each in found if each.client_id is not None), None)
    if usable is None or usable.client_id is None:
        raise click.ClickException(f"Nobody can sign in to {address} this way. Ask its operator for an API key.")
    provider = signed_in.provider_at(usable.issuer, target.ca_file)
    answer = _allowed(provider, usable.client_id, usable.audience, target.ca_file)
    new = signed_in.signed_in(answer, provider.token_endpoint, usable.client_id)
    with connect(target._replace(token=new.token)) as client:
        me = client.system.whoami()
    signed_in.keep(address, new)  # only now: an earlier one stays good until this one is known to be
    show(me, as_json, lambda: facts(rows_of(me)))


def _allowed(provider: signed_in.Provider, client: str, audience: str, ca_file: str | None) -> Mapping[str, Any]:
    if (place := provider.device_authorization_endpoint) is None:
        raise click.ClickException(f"{provider.issuer} has no device flow. Ask the operator for an API key.")
    scopes = [each for each in _WANTED if each == "openid" or each in provider.scopes_supported]
    asked = {"client_id": client, "scope": " ".join(scopes), "audience": audience}
    if "://" in audience:
        asked["resource"] = audience
    status, begun = signed_in.post(place, asked, ca_file)
    if status != 200 or not isinstance(begun.get("device_code"), str):
        raise click.ClickException(f"The provider does not let anybody sign in here: {_reason(begun, status)}.")
    shown = begun.get("verification_uri_complete") or begun.get("verification_uri")
    click.echo(f"Open {shown} and confirm the code {begun.get('user_code')}.", err=True)
    return _waited_for(
        provider, {"grant_type": _GRANT, "client_id": client, "device_code": begun["device_code"]}, begun, ca_file
    )


def _waited_for(
    provider: signed_in.Provider, form: Mapping[str, str], begun: Mapping[str, Any], ca_file: str | None
) -> Mapping[str, Any]:
    pause, ends = _number(begun, "interval", _PAUSE_SECONDS), time.monotonic() + _number(begun, "expires_in", 600)
    while time.monotonic() < ends:
        time.sleep(pause)
        status, answer = signed_in.post(provider.token_endpoint, form, ca_file)
        if status == 200:
            return answer
        match answer.get("error"):
            case "authorization_pending":
                continue
            case "slow_down":
                pause += _SLOWER_SECONDS
            case _:
                raise click.ClickException(f"You are not signed in: {_reason(answer, status)}.")
    raise click.ClickException("The code was not confirmed in time. Try again.")


def _number(begun: Mapping[str, Any], name: str, usual: float) -> float:
    given = begun.get(name, usual)
    return float(given) if isinstance(given, int | float) and given >= 0 else usual


def _reason(answer: Mapping[str, Any], status: int) -> str:
    return str(answer.get("error_description") or answer.get("error") or f"it answered {status}")[:200].rstrip(".")
