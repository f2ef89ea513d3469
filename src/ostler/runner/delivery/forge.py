"""The seam of forges, and how all of them are spoken to: bounded, patient, and without secrets in what is said."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeVar

import httpx
import msgspec

from ostler.base.errors import DeliveryFailed
from ostler.base.retry import delays
from ostler.wire.workspace_events import PullRequestData

ForgeKind = Literal["github", "gitlab", "gitea"]
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
_TRIES = 4
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
ANSWER_SECONDS = 30.0
_ALL_SECONDS = 120.0
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
ANSWER_BYTES = 8 * 2**20


class PullRequestText(msgspec.Struct, frozen=True, kw_only=True):
    """What people read."""

    title: str
    body: str = ""
    draft: bool = False
    new_words: tuple[Literal["title", "body"], ...] = ()
    """What of them one that is open already gets, too."""

    def news(self, *, title: str, body: str, mark: str = "") -> dict[str, str]:
        """Those, by what a forge calls them; `mark` is what the title of a draft begins with there."""
        known = {"title": (title, f"{mark}{self.title}"), "body": (body, self.body)}
        return dict(known[each] for each in self.new_words)


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An open pull request."""

    number: int
    url: str
    branch: str
    target: str
    created: bool
    """False if it was there already."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A pull request as a forge tells it."""

    number: int
    url: str


class Forge(Protocol):
    """One forge. `find` and `open` are called in turn by `pull_request`, and only there is anything tried again."""

    async def find(self, branch: str, target: str) -> Found | None:
        """The open pull request of a branch, if there is one."""

    async def open(self, branch: str, target: str, text: PullRequestText) -> Found | None:
        """Open one; None if the forge says that there is one."""

    async def reword(self, number: int, text: PullRequestText) -> None:
        """Give an open one the words that are new."""

    async def look(self, number: int) -> PullRequestData:
        """One as it is now, whatever became of it."""

    async def merge(self, number: int) -> None:
        """Merge one as the forge does it by default; raises MergeRefused if it does not."""


class TemporaryFailure(Exception):
    """A failure that may be gone in a moment."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Caller:
    """Calls the interface of a forge for one repository."""

    def __init__(self, client: httpx.AsyncClient, base: str, headers: dict[str, str], secret: str) -> None:
        self._client = client
        self._base = base.rstrip("/")
        self._headers = headers
        self._secret = secret

    async def call(self, method: str, path: str, *, accept: tuple[int, ...], **more: Any) -> tuple[int, Any]:
        """The status and the decoded answer; raises TemporaryFailure or DeliveryFailed for other statuses."""
        try:
            async with asyncio.timeout(_ALL_SECONDS):
                answer = await self._client.request(
                    method, f"{self._base}{path}", headers=self._headers, follow_redirects=False, **more
                )
        except (httpx.HTTPError, TimeoutError) as error:
            host = httpx.URL(self._base).host
            raise TemporaryFailure(f"{host} cannot be reached ({type(error).__name__}).") from error
        if answer.status_code in _PASSING:
            raise TemporaryFailure(f"the forge answers {answer.status_code}.", _retry_after(answer))
        if answer.status_code not in accept:
            raise DeliveryFailed(what="pull request", reason=self._words(answer))
        return answer.status_code, _decoded(answer)

    def _words(self, answer: httpx.Response) -> str:
        body = answer.text[:500].replace(self._secret, "***") if self._secret else answer.text[:500]
        hint = {401: " Check the credential.", 403: " Check what the credential may do.", 404: " Check the repository."}
        return f"the forge answers {answer.status_code}: {body or 'nothing'}.{hint.get(answer.status_code, '')}"


def _retry_after(answer: httpx.Response) -> float | None:
    value = answer.headers.get("retry-after", "")
    return float(value) if value.isdigit() else None


def _decoded(answer: httpx.Response) -> Any:
    try:
        return msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        raise DeliveryFailed(what="pull request", reason="the forge's answer is not JSON.") from error


def read(answer: Any, kind: type[Found], names: dict[str, str]) -> Found:
    """A pull request out of an answer; `names` says what the forge calls our fields."""
    try:
        return msgspec.convert({ours: answer[theirs] for ours, theirs in names.items()}, kind)
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise DeliveryFailed(what="pull request", reason=f"the forge's answer lacks something ({error}).") from error


async def pull_request(
    forge: Forge, branch: str, target: str, text: PullRequestText, *, sleep: Sleep = asyncio.sleep
) -> PullRequest:
    """Open a pull request, or find the one that is open; however often this is called, there is one."""
    found, created = await patiently(lambda: _opened(forge, branch, target, text), sleep=sleep)
    if not created and text.new_words:
        await patiently(lambda: forge.reword(found.number, text), sleep=sleep)
    return PullRequest(number=found.number, url=found.url, branch=branch, target=target, created=created)


async def patiently(work: Callable[[], Awaitable[T]], *, sleep: Sleep = asyncio.sleep) -> T:
    """Ask a forge, again if it only stumbles."""
    pauses = delays(_FIRST_PAUSE, _LONGEST_PAUSE, tries=_TRIES)
    while True:
        try:
            return await work()
        except TemporaryFailure as error:
            if (pause := next(pauses, None)) is None:
                raise DeliveryFailed(what="pull request", reason=f"{error} It was tried {_TRIES} times.") from error
            await sleep(pause if error.wait is None else min(error.wait, _LONGEST_PAUSE))


async def _opened(forge: Forge, branch: str, target: str, text: PullRequestText) -> tuple[Found, bool]:
    # looked for before every try: a request that seemed to fail may have worked
    if (found := await forge.find(branch, target)) is not None:
        return found, False
    if (found := await forge.open(branch, target, text)) is not None:
        return found, True
    if (found := await forge.find(branch, target)) is not None:
        return found, False
    raise TemporaryFailure("the forge says there is one, but does not show it.")
