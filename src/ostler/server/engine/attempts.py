"""One try to do a job."""

import asyncio

from ostler.base.logs import Log
from ostler.server.engine.protocol import NotDone, Work
from ostler.server.store.records import Job

log = Log(__name__)


async def attempt(job: Job, work: Work) -> bool:
    """Do it; False, and a line in the log, if that was in vain. This is the edge of a background task."""
    try:
        async with asyncio.timeout(work.seconds):
            await work.run(job)
    except NotDone as error:
        log.warning("job.failed", job=job.key, tries=job.tries + 1, reason=str(error))
    except TimeoutError:
        log.warning("job.failed", job=job.key, tries=job.tries + 1, reason=f"it took more than {work.seconds:g} s")
    except Exception as error:
        log.error("job.crashed", job=job.key, tries=job.tries + 1, exc_info=error)
    else:
        return True
    return False
