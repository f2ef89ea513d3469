"""Templates: stored definitions of agents, and their revisions."""

from typing import Annotated

from litestar import Response, delete, get, post
from litestar.params import Parameter

from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.services import Services
from ostler.server.api.views import API
from ostler.server.templates import service as templates
from ostler.wire.templates import (
    LATEST,
    PushTemplate,
    TagTemplate,
    TemplateDifference,
    TemplateFiles,
    TemplateList,
    TemplateRevision,
    TemplateRevisions,
)

_TAGS = ["templates"]


@get("/templates", operation_id="templates.list", tags=_TAGS, role="viewer")
async def list_templates(services: Services, project: str) -> TemplateList:
    """All templates, each as its tag `latest` has it."""
    return TemplateList(items=await templates.newest(services.sessions.store.templates, project))


@post(
    "/templates",
    operation_id="templates.push",
    tags=_TAGS,
    role="operator",
    answers={
        "200": answer("This revision was there already, or was only looked at.", {JSON: "TemplateRevision"}),
        "201": answer("The new revision.", {JSON: "TemplateRevision"}, ("Location", "Where it is.")),
    },
)
async def push_template(services: Services, project: str, data: PushTemplate) -> Response[TemplateRevision]:
    """Store the files of a template as a revision; everything that is wrong with them is told at once."""
    pushed = await templates.push(services.sessions.store.templates, project, data, services.clock)
    where = f"{API}/templates/{pushed.revision.name}/revisions/{pushed.revision.revision}"
    return Response(pushed.revision, status_code=201 if pushed.is_new else 200, headers={"location": where})


@get("/templates/{template:str}", operation_id="templates.show", tags=_TAGS, role="viewer")
async def show_template(services: Services, project: str, template: str) -> TemplateRevision:
    """A template as its tag `latest` has it."""
    return await templates.one(services.sessions.store.templates, project, template, LATEST)


@delete("/templates/{template:str}", operation_id="templates.remove", tags=_TAGS, role="operator")
async def remove_template(services: Services, project: str, template: str) -> None:
    """Forget a template with all its revisions; sessions that began with it go on."""
    await templates.remove(services.sessions.store.templates, project, template)


@get("/templates/{template:str}/revisions", operation_id="templates.revisions", tags=_TAGS, role="viewer")
async def list_revisions(services: Services, project: str, template: str) -> TemplateRevisions:
    """The revisions of a template, the newest first."""
    return TemplateRevisions(items=await templates.revisions(services.sessions.store.templates, project, template))


@get(
    "/templates/{template:str}/revisions/{revision:str}",
    operation_id="templates.revision",
    tags=_TAGS,
    role="viewer",
)
async def show_revision(services: Services, project: str, template: str, revision: str) -> TemplateRevision:
    """One revision, by its name or a tag."""
    return await templates.one(services.sessions.store.templates, project, template, revision)


@get(
    "/templates/{template:str}/revisions/{revision:str}/files",
    operation_id="templates.export",
    tags=_TAGS,
    role="viewer",
)
async def export_revision(services: Services, project: str, template: str, revision: str) -> TemplateFiles:
    """The files of a revision as they were pushed, byte for byte."""
    return await templates.files(services.sessions.store.templates, project, template, revision)


@post("/templates/{template:str}/tags", operation_id="templates.tag", tags=_TAGS, status_code=200, role="operator")
async def tag_revision(services: Services, project: str, template: str, data: TagTemplate) -> TemplateRevision:
    """Give a revision a tag; it moves if another one has it."""
    return await templates.tag(services.sessions.store.templates, project, template, data)


@get("/templates/{template:str}/diff", operation_id="templates.diff", tags=_TAGS, role="viewer")
async def diff_revisions(
    services: Services,
    project: str,
    template: str,
    old: Annotated[str, Parameter(description="A revision or a tag.")],
    new: Annotated[str, Parameter(description="A revision or a tag.")] = LATEST,
) -> TemplateDifference:
    """What differs between two revisions of a template."""
    return await templates.difference(services.sessions.store.templates, project, template, old, new)


HANDLERS = (
    list_templates,
    push_template,
    show_template,
    remove_template,
    list_revisions,
    show_revision,
    export_revision,
    tag_revision,
    diff_revisions,
)
