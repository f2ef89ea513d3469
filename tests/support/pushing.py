"""Templates straight into a store, for tests without a server."""

from ostler.base.clock import SystemClock
from ostler.server.store.protocol import Store
from ostler.server.templates import service
from ostler.wire.templates import PushTemplate, TemplateFile


async def push(store: Store, name: str) -> None:
    """A template of the mock agent that begins without inputs."""
    texts = {"template.toml": f'name = "{name}"\nprompt = "mock: say Tick"', "agent.toml": 'agent = "mock"'}
    files = tuple(TemplateFile(path=path, text=text) for path, text in texts.items())
    await service.push(store.templates, "default", PushTemplate(files=files), SystemClock())
