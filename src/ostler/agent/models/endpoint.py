"""Where the model is: the session's own provider, or what the agent's variables say."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_never
from urllib.parse import urlsplit

import msgspec

from ostler.agent.models.asking import Dialect, ModelFailed
from ostler.agent.models.chat import Chat
from ostler.agent.models.gemini import Gemini
from ostler.agent.models.messages import Messages
from ostler.agent.models.responses import Responses
from ostler.wire.own_agent import KEY_VARIABLE, Api, Start


class Service(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider that variables can name."""

    name: str
    api: Api
    url: str
    key: str
    address: str
    """The variable with another address."""
    model: str
    """The model of a session that names none."""


SERVICES: tuple[Service, ...] = msgspec.json.decode(
    Path(__file__).with_name("services.json").read_bytes(), type=tuple[Service, ...]
)
_KEYS = ", ".join(service.key for service in SERVICES)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and how it is reached."""

    api: Api
    url: str
    key: str | None
    model: str
    service: str = ""
    """The provider that a variable named; empty for the session's own."""

    @property
    def full_name(self) -> str:
        """The model as a session names it."""
        return f"{self.service}/{self.model}" if self.service else self.model

    def dialect(self) -> Dialect:
        """Its protocol."""
        match self.api:
            case "messages":
                return Messages()
            case "responses":
                return Responses()
            case "gemini":
                return Gemini(self.model)
            case "chat":
                return self._chat()
            case _:
                assert_never(self.api)

    def _chat(self) -> Chat:
        host = urlsplit(self.url).hostname or ""
        routed = self.service == "openrouter" or host.endswith("openrouter.ai")
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
    return Endpoint(api=service.api, url=url.rstrip("/"), key=key, model=model, service=service.name)


def _named(model: str | None, environ: Mapping[str, str]) -> tuple[Service, str]:
    with_keys = [service for service in SERVICES if environ.get(service.key)]
    if not with_keys:
        raise ModelFailed(f"The agent has no model: it needs one of {_KEYS}, or a provider.", code="auth")
    if model is None:
        if not with_keys[0].model:
            raise ModelFailed(f"Which model? Name one, such as `{with_keys[0].name}/MODEL`.", code="no_model")
        return with_keys[0], with_keys[0].model
    name, _, rest = model.partition("/")
    named = next((service for service in SERVICES if service.name == name), None)
    if named is None or (named not in with_keys and any(each.name == "openrouter" for each in with_keys)):
        # OpenRouter's own names of models begin with those of the makers
        return next((each for each in with_keys if each.name == _maker(model)), with_keys[0]), model
    return named, rest


def _maker(model: str) -> str:
    """Whose model it is that is named without its provider."""
    if "/" in model:
        return "openrouter"
    return {"claude": "anthropic", "gemini": "gemini"}.get(model.partition("-")[0], "openai")


def without_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that commands see: what the agent pays its model with is not for them."""
    keys = {KEY_VARIABLE, *(service.key for service in SERVICES)}
    return {name: value for name, value in environ.items() if name not in keys}
