"""Keys that let leaders and followers join an overlay network, from the accounts in the settings."""

from collections.abc import Callable
from typing import Any

import msgspec

from ostler.base.errors.fleets import OverlayFailed
from ostler.base.settings import Settings
from ostler.wire.connecting import AskKeys, OverlayCredentials, OverlayKeys

_SECONDS = 20.0
_VALID_SECONDS = 3600
_MOST_BYTES = 2**20


async def overlay_keys(settings: Settings, wanted: AskKeys) -> OverlayKeys:
    """A key for one device that is forgotten when it leaves, of the first overlay that the server has an account of."""
    for provider in wanted.providers:
        if provider == "netbird" and settings.netbird_token:
            return OverlayKeys(provider="netbird", credentials=await _netbird(settings, wanted.tags))
        if provider == "tailscale" and settings.tailscale_token:
            return OverlayKeys(provider="tailscale", credentials=await _tailscale(settings, wanted.tags))
    return OverlayKeys(provider="none")


async def _netbird(settings: Settings, groups: tuple[str, ...]) -> OverlayCredentials:
    body = {
        "name": "ostler",
        "type": "one-off",
        "expires_in": 86400,
        "auto_groups": list(groups),
        "usage_limit": 1,
        "ephemeral": True,
    }
    url = f"{settings.netbird_url.rstrip('/')}/api/setup-keys"
    key = await _key("netbird", url, f"Token {settings.netbird_token}", body)
    return OverlayCredentials(setup_key=key, reusable=False, ephemeral=True, auto_groups=groups)


async def _tailscale(settings: Settings, tags: tuple[str, ...]) -> OverlayCredentials:
    acl_tags = tuple(tag if tag.startswith("tag:") else f"tag:{tag}" for tag in tags)
    create = {"reusable": False, "ephemeral": True, "preauthorized": True, "tags": list(acl_tags)}
    body = {"capabilities": {"devices": {"create": create}}, "expirySeconds": _VALID_SECONDS}
    url = f"{settings.tailscale_url.rstrip('/')}/api/v2/tailnet/-/keys"
    key = await _key("tailscale", url, f"Bearer {settings.tailscale_token}", body)
    return OverlayCredentials(auth_key=key, ephemeral=True, acl_tags=acl_tags)


async def _key(provider: str, url: str, authorization: str, body: dict[str, Any]) -> str:
    def failed(reason: str) -> OverlayFailed:
        return OverlayFailed(provider=provider, reason=reason)

    import httpx  # noqa: PLC0415  costs a second at the start, and few servers have such an account

    try:
        async with httpx.AsyncClient(timeout=_SECONDS, trust_env=False) as client:
            answer = await client.post(url, json=body, headers={"authorization": authorization})
    except httpx.HTTPError as error:
        raise failed(f"it could not be called ({type(error).__name__})") from error
    if not answer.is_success:
        raise failed(f"it answered with status {answer.status_code}")
    return _found(answer.content, failed)


def _found(body: bytes, failed: Callable[[str], OverlayFailed]) -> str:
    try:
        key = msgspec.json.decode(body[:_MOST_BYTES])["key"]
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise failed("its answer has no key") from error
    return str(key)
