"""Triggers: events from outside that become tasks or prompts."""

from typing import Any

from litestar import Request, Response, delete, get, patch, post
from msgspec.structs import replace

from ostler.server.api.accept import JSON
from ostler.server.api.described import answer
from ostler.server.api.edge.stream_limit import client_of
from ostler.server.api.services import Services
from ostler.server.api.views import API
from ostler.server.auth.scope import OUTSIDE, attempt_of
from ostler.wire.triggers import (
    Delivery,
    DeliveryDetails,
    DeliveryList,
    DeliveryTaken,
    EditTrigger,
    NewTrigger,
    PreviewTrigger,
    Trigger,
    TriggerList,
    TriggerPreview,
    TryDelivery,
)

_TAGS = ["triggers"]


@get("/triggers", operation_id="triggers.list", tags=_TAGS, role="viewer")
async def list_triggers(services: Services, project: str) -> TriggerList:
    """All triggers, by name."""
    return TriggerList(items=await services.triggers.all(project))


@post(
    "/triggers",
    operation_id="triggers.create",
    tags=_TAGS,
    role="operator",
    answers={"201": answer("The new trigger.", {JSON: "Trigger"}, ("Location", "Where it is."))},
)
async def create_trigger(services: Services, project: str, data: NewTrigger) -> Response[Trigger]:
    """Let events from outside begin tasks of a template, or prompts; a secret that the server made is shown once."""
    made = await services.triggers.add(project, data)
    return Response(made, status_code=201, headers={"location": f"{API}/triggers/{made.id}"})


@get("/triggers/{trigger:str}", operation_id="triggers.show", tags=_TAGS, role="viewer")
async def show_trigger(services: Services, project: str, trigger: str) -> Trigger:
    """One trigger, by id or name."""
    return await services.triggers.one(project, trigger)


@patch("/triggers/{trigger:str}", operation_id="triggers.edit", tags=_TAGS, role="operator")
async def edit_trigger(services: Services, project: str, trigger: str, data: EditTrigger) -> Trigger:
    """Change a trigger, pause it or let it go on; what is not given stays."""
    return await services.triggers.edit(project, trigger, data)


@delete("/triggers/{trigger:str}", operation_id="triggers.remove", tags=_TAGS, role="operator")
async def remove_trigger(services: Services, project: str, trigger: str) -> None:
    """Forget a trigger with its deliveries; sessions that it began go on."""
    await services.triggers.remove(project, trigger)


@post("/triggers/{trigger:str}/preview", operation_id="triggers.preview", tags=_TAGS, status_code=200, role="operator")
async def preview_trigger(services: Services, project: str, trigger: str, data: PreviewTrigger) -> TriggerPreview:
    """What would become of an event, with another mapping or filter if they are given; nothing is begun."""
    return await services.triggers.preview(project, trigger, data)


@post("/triggers/{trigger:str}/test", operation_id="triggers.test", tags=_TAGS, status_code=202, role="operator")
async def try_trigger(services: Services, project: str, trigger: str, data: TryDelivery) -> Delivery:
    """Take an event as if a sender had signed it."""
    taken = await services.triggers.test(project, trigger, data)
    services.engine.wake()
    return taken


@post(
    "/triggers/{trigger:str}/deliveries",
    operation_id="triggers.deliver",
    tags=_TAGS,
    status_code=202,
    role="anyone",
    body="SentEvent",
    answers={
        "200": answer("It was taken before.", {JSON: "DeliveryTaken"}),
        "202": answer("It is stored, and acted on soon.", {JSON: "DeliveryTaken"}),
    },
)
async def deliver(services: Services, trigger: str, request: Request[Any, Any, Any]) -> Response[DeliveryTaken]:
    """The public door of a trigger, by its id: an event as JSON, signed as the trigger's scheme says; no token needed.

    A delivery is acted on once, however often it is sent.
    """
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.scope["headers"]}
    receipt = await services.triggers.deliver(client_of(request.scope), trigger, headers, await request.body())
    if (attempt := attempt_of(request.scope)) is not None:
        project = receipt.trigger.project
        attempt.target = receipt.trigger.id
        attempt.asks = replace(OUTSIDE, tenant=services.directory.tenant_of(project), project=project)
    if receipt.row is None:
        return Response(DeliveryTaken(challenge=receipt.challenge), status_code=200)
    services.engine.wake()
    is_known = receipt.row.duplicates > 0
    return Response(DeliveryTaken(delivery=receipt.row.id, duplicate=is_known), status_code=200 if is_known else 202)


@get("/triggers/{trigger:str}/deliveries", operation_id="triggers.deliveries", tags=_TAGS, role="viewer")
async def list_deliveries(services: Services, project: str, trigger: str) -> DeliveryList:
    """The last 100 deliveries and what became of each, the newest first."""
    return DeliveryList(items=await services.triggers.deliveries(project, trigger))


@get("/triggers/{trigger:str}/deliveries/{delivery:str}", operation_id="triggers.delivery", tags=_TAGS, role="viewer")
async def show_delivery(services: Services, project: str, trigger: str, delivery: str) -> DeliveryDetails:
    """One delivery with what was sent."""
    return await services.triggers.delivery(project, trigger, delivery)


@post(
    "/triggers/{trigger:str}/deliveries/{delivery:str}/replay",
    operation_id="triggers.replay",
    tags=_TAGS,
    status_code=202,
    role="operator",
)
async def replay_delivery(services: Services, project: str, trigger: str, delivery: str) -> Delivery:
    """Act on a delivery once more, as the trigger is now; it becomes a new delivery."""
    taken = await services.triggers.replay(project, trigger, delivery)
    services.engine.wake()
    return taken


HANDLERS = (
    list_triggers,
    create_trigger,
    show_trigger,
    edit_trigger,
    remove_trigger,
    preview_trigger,
    try_trigger,
    deliver,
    list_deliveries,
    show_delivery,
    replay_delivery,
)
