"""Other protocols as projections of the one log, and the table of those that `?format=` offers."""

from ostler.server.dialects.acp import updates as acp
from ostler.server.dialects.acp.second import SECOND_KINDS, SecondAcpUpdates
from ostler.server.dialects.acp.updates import AcpUpdates
from ostler.server.dialects.agui import projection as agui
from ostler.server.dialects.agui.projection import AguiProjection
from ostler.server.dialects.ai_sdk import projection as ai_sdk
from ostler.server.dialects.ai_sdk.projection import UiProjection
from ostler.server.dialects.flat import projection as flat
from ostler.server.dialects.flat.projection import FlatProjection
from ostler.server.dialects.formats import Format
from ostler.server.dialects.workflow import projection as workflow
from ostler.server.dialects.workflow.projection import WorkflowProjection

PROJECTIONS: dict[str, Format] = {
    "acp": Format(
        about="session updates of the Agent Client Protocol", begin=AcpUpdates, tag="sessionUpdate", kinds=acp.KINDS
    ),
    "acp2": Format(
        about="those of its second version", begin=SecondAcpUpdates, tag="sessionUpdate", kinds=SECOND_KINDS
    ),
    "agui": Format(about="AG-UI events", begin=AguiProjection, tag="type", kinds=agui.KINDS, spans=agui.SPANS),
    "flat": Format(
        about="status, log, moment and delivery of the tasks API",
        begin=FlatProjection,
        tag="type",
        kinds=flat.KINDS,
        is_log=True,
    ),
    "workflow": Format(
        about="messages of a workflow execution", begin=WorkflowProjection, tag="event", kinds=workflow.KINDS
    ),
    "ui": Format(
        about="chunks of the AI SDK's UI Message Stream",
        begin=UiProjection,
        tag="type",
        kinds=ai_sdk.KINDS,
        spans=ai_sdk.SPANS,
    ),
}
"""By the value of `?format=`; without it, or with `universal`, the log itself is shown."""
