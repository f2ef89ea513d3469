"""Whether the engine of the settings can be used, for who looks while no server runs."""

import asyncio

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from ostler.base.settings import Settings
from ostler.server.engine.temporal.connecting import Access, Unreachable, connected, queue_of

_SECONDS = 20.0


def problem(settings: Settings) -> str | None:
    """Why Temporal cannot be used now, and what to do; raises SettingsError if the settings cannot be right."""
    found = workers(settings)
    return found if isinstance(found, str) else None


def workers(settings: Settings) -> int | str:
    """How many servers look for work there, or why Temporal cannot be used; raises SettingsError too."""
    return asyncio.run(_workers(Access.reading(settings), queue_of(settings.deployment)))


async def _workers(access: Access, queue: str) -> int | str:
    try:
        async with asyncio.timeout(_SECONDS):
            client = await connected(access, "ostler-doctor")
            request = DescribeTaskQueueRequest(
                namespace=access.address.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            )
            found = await client.workflow_service.describe_task_queue(request)
    except Unreachable as error:
        return str(error)
    except RPCError as error:
        return f"{access.address.host} does not tell about its queues ({error.message})."
    except TimeoutError:
        return f"{access.address.host} does not answer within {_SECONDS:g} seconds."
    return len({poller.identity for poller in found.pollers})
