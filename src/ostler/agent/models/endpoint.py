"""Where the model is: the session's own provider, or what the agent's variables say."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from ostler.agent.models.asking import Dialect, ModelFailed
from ostler.agent.models.chat import Chat
from ostler.agent.models.messages import Messages
from ostler.wire.own_agent import KEY_VARIABLE, Api, Start


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that variables can name."""

    name: str
    api: Api
    url: str
    key: str
    address: str
    """The variable with another address."""


SERVICES = (
    Service(
        name="anthropic",
        api="messages",
        url="https://api.anthropic.com",
        key="ANTHROPIC_API_KEY",
        address="ANTHROPIC_BASE_URL",
    ),
    Service(
        name="openai",
        api="chat",
        url="https://api.openai.com/v1",
        key="OPENAI_API_KEY",
        address="OPENAI_BASE_URL",
    ),
    Service(
        name="openrouter",
        api="chat",
        url="https://openrouter.ai/api/v1",
        key="OPENROUTER_API_KEY",
        address="OPENROUTER_BASE_URL",
    ),
)
_KEYS = ", ".join(service.key for service in SERVICES)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and how it is reached."""

    api: Api
    url: str
    key: str | None
    model: str
    is_openrouter: bool = False

    def dialect(self) -> Dialect:
        """Its protocol."""
        if self.api == "messages":
            return Messages()
        host = urlsplit(self.url).hostname or ""
        routed = self.is_openrouter or host.endswith("openrouter.ai")
        return Chat(is_openai=host.endswith("api.openai.com"), is_openrouter=routed)


def endpoint(start: Start, environ: Mapping[str, str]) -> Endpoint:
    """Find the model; a session without a provider of its own may name one before its model, as in `openai/gpt-5`.

    Raises ModelFailed.
    """
    if start.api is not None and start.base_url is not None:
        if start.model is None:
            raise ModelFailed("Which model? Name one in `model`.", code="no_model")
        return Endpoint(api=start.api, url=start.base_url, key=environ.get(KEY_VARIABLE), model=start.model)
    service, model = _named(start.model, environ)
    url = environ.get(service.address) or service.url
    key = environ.get(service.key)
    if not key:
        raise ModelFailed(f"There is no {service.key}, which model '{start.model}' needs.", code="auth")
    is_openrouter = service.name == "openrouter"
    return Endpoint(api=service.api, url=url.rstrip("/"), key=key, model=model, is_openrouter=is_openrouter)


def _named(model: str | None, environ: Mapping[str, str]) -> tuple[Service, str]:
    with_keys = [service for service in SERVICES if environ.get(service.key)]
    if not with_keys:
        raise ModelFailed(f"The agent has no model: it needs one of {_KEYS}, or a provider.", code="auth")
    if model is None:
        raise ModelFailed(f"Which model? Name one, such as `{with_keys[0].name}/MODEL`.", code="no_model")
    name, _, rest = model.partition("/")
    named = next((service for service in SERVICES if service.name == name), None)
    if named is None or (named not in with_keys and any(each.name == "openrouter" for each in with_keys)):
        # OpenRouter's own names of models begin with those of the makers
        maker = "openrouter" if "/" in model else "anthropic" if model.startswith("claude") else "openai"
        return next((each for each in with_keys if each.name == maker), with_keys[0]), model
    return named, rest


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that commands see: what the agent pays its model with is not for them."""
    keys = {KEY_VARIABLE, *(service.key for service in SERVICES)}
    return {name: value for name, value in environ.items() if name not in keys}
