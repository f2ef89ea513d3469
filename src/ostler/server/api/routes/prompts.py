"""Prompts that people saved to use them again."""

from litestar import Response, delete, get, patch, post

from ostler.server import prompts
from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import API
from ostler.wire.prompts import EditPrompt, SavedPrompt, SavedPromptList, SavePrompt

_TAGS = ["prompts"]


@get("/prompts", operation_id="prompts.list", tags=_TAGS, role="viewer")
async def list_prompts(services: Services, project: str) -> SavedPromptList:
    """All saved prompts, by name."""
    return SavedPromptList(items=await prompts.every(services.sessions.store.prompts, project))


@post(
    "/prompts",
    operation_id="prompts.save",
    tags=_TAGS,
    role="operator",
    answers={"201": answer("The saved prompt.", {JSON: "SavedPrompt"}, ("Location", "Where it is."))},
)
async def save_prompt(services: Services, project: str, data: SavePrompt) -> Response[SavedPrompt]:
    """Save a prompt under a name that none has yet; `$ARGUMENTS` stands for what is given when it is used."""
    saved = await prompts.save(services.sessions.store.prompts, project, data, services.clock)
    return Response(saved, status_code=201, headers={"location": f"{API}/prompts/{saved.name}"})


@get("/prompts/{prompt:str}", operation_id="prompts.show", tags=_TAGS, role="viewer")
async def show_prompt(services: Services, project: str, prompt: str) -> SavedPrompt:
    """One saved prompt."""
    return await prompts.one(services.sessions.store.prompts, project, prompt)


@patch("/prompts/{prompt:str}", operation_id="prompts.edit", tags=_TAGS, role="operator")
async def edit_prompt(services: Services, project: str, prompt: str, data: EditPrompt) -> SavedPrompt:
    """Change the name, text or description of a saved prompt; what is not given stays."""
    return await prompts.edit(services.sessions.store.prompts, project, prompt, data, services.clock)


@delete("/prompts/{prompt:str}", operation_id="prompts.remove", tags=_TAGS, role="operator")
async def remove_prompt(services: Services, project: str, prompt: str) -> None:
    """Forget a saved prompt."""
    await prompts.remove(services.sessions.store.prompts, project, prompt)


HANDLERS = (list_prompts, save_prompt, show_prompt, edit_prompt, remove_prompt)
