"""GitHub, GitLab and Gitea or Forgejo, each by its documented REST interface."""

from typing import assert_never
from urllib.parse import quote

import httpx

from ostler.base.errors import Unprocessable
from ostler.runner.delivery.checks import forge_kind
from ostler.runner.delivery.forge import Caller, Forge, ForgeKind, Found, PullRequestText, read
from ostler.runner.delivery.pull_requests import (
    check_runs,
    github_like,
    gitlab_view,
    head_commit,
    refuse_unless_merged,
    statuses,
    together,
)
from ostler.runner.workspaces.repositories.policy import Address
from ostler.wire.workspace_events import PullRequestData

_PAGE = 50
_MOST_PAGES = 20


class GitHub:
    """The pulls interface, version 2022-11-28."""

    names = {"number": "number", "url": "html_url"}  # noqa: RUF012  never changed

    def __init__(self, client: httpx.AsyncClient, base: str, repository: str, token: str) -> None:
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "x-github-api-version": "2022-11-28",
            "user-agent": "ostler",
        }
        self._caller = Caller(client, base, headers, token)
        self._owner = repository.partition("/")[0]
        self._path = f"/repos/{quote(repository)}/pulls"

    async def find(self, branch: str, target: str) -> Found | None:
        """By head and base."""
        params = {"state": "open", "head": f"{self._owner}:{branch}", "base": target}
        _, answer = await self._caller.call("GET", self._path, accept=(200,), params=params)
        return read(answer[0], Found, self.names) if answer else None

    async def open(self, branch: str, target: str, text: PullRequestText) -> Found | None:
        """422 also means that there is one."""
        body = {"title": text.title, "head": branch, "base": target, "body": text.body, "draft": text.draft}
        status, answer = await self._caller.call("POST", self._path, accept=(201, 422), json=body)
        if status == 422 and "already exists" in str(answer):
            return None
        return read(answer, Found, self.names) if status == 201 else _refused(answer)

    async def reword(self, number: int, text: PullRequestText) -> None:
        """Only what is named is changed."""
        news = text.news(title="title", body="body")
        await self._caller.call("PATCH", f"{self._path}/{number}", accept=(200,), json=news)

    async def look(self, number: int) -> PullRequestData:
        """The pull request, and the checks and statuses of its last commit."""
        _, answer = await self._caller.call("GET", f"{self._path}/{number}", accept=(200,))
        commit = f"{self._path.removesuffix('/pulls')}/commits/{quote(head_commit(answer))}"
        _, runs = await self._caller.call("GET", f"{commit}/check-runs", accept=(200, 403, 404))
        _, status = await self._caller.call("GET", f"{commit}/status", accept=(200, 403, 404))
        return github_like(answer, together([*check_runs(runs), *statuses(status)]))

    async def merge(self, number: int) -> None:
        """405 and 409 say why not."""
        status, answer = await self._caller.call(
            "PUT", f"{self._path}/{number}/merge", accept=(200, 403, 405, 409, 422), json={}
        )
        refuse_unless_merged(status, answer)


class GitLab:
    """Merge requests of version 4."""

    names = {"number": "iid", "url": "web_url"}  # noqa: RUF012  never changed

    def __init__(self, client: httpx.AsyncClient, base: str, repository: str, token: str) -> None:
        self._caller = Caller(client, base, {"private-token": token, "user-agent": "ostler"}, token)
        self._path = f"/projects/{quote(repository, safe='')}/merge_requests"

    async def find(self, branch: str, target: str) -> Found | None:
        """By source and target."""
        params = {"state": "opened", "source_branch": branch, "target_branch": target}
        _, answer = await self._caller.call("GET", self._path, accept=(200,), params=params)
        return read(answer[0], Found, self.names) if answer else None

    async def open(self, branch: str, target: str, text: PullRequestText) -> Found | None:
        """A draft is known by its title; 409 means that there is one."""
        title = f"Draft: {text.title}" if text.draft else text.title
        body = {"source_branch": branch, "target_branch": target, "title": title, "description": text.body}
        status, answer = await self._caller.call("POST", self._path, accept=(201, 409), json=body)
        return None if status == 409 else read(answer, Found, self.names)

    async def reword(self, number: int, text: PullRequestText) -> None:
        """A draft stays one."""
        _, answer = await self._caller.call("GET", f"{self._path}/{number}", accept=(200,))
        news = text.news(title="title", body="description", mark="Draft: " if answer.get("draft") else "")
        await self._caller.call("PUT", f"{self._path}/{number}", accept=(200,), json=news)

    async def look(self, number: int) -> PullRequestData:
        """The merge request, whose last pipeline are its checks."""
        _, answer = await self._caller.call("GET", f"{self._path}/{number}", accept=(200,))
        return gitlab_view(answer)

    async def merge(self, number: int) -> None:
        """405, 406, 409 and 422 say why not."""
        status, answer = await self._caller.call(
            "PUT", f"{self._path}/{number}/merge", accept=(200, 401, 405, 406, 409, 422), json={}
        )
        refuse_unless_merged(status, answer)


class Gitea:
    """Gitea and Forgejo, version 1."""

    names = {"number": "number", "url": "html_url"}  # noqa: RUF012  never changed

    def __init__(self, client: httpx.AsyncClient, base: str, repository: str, token: str) -> None:
        headers = {"accept": "application/json", "authorization": f"token {token}", "user-agent": "ostler"}
        self._caller = Caller(client, base, headers, token)
        self._path = f"/repos/{quote(repository)}/pulls"

    async def find(self, branch: str, target: str) -> Found | None:
        """The list cannot be asked for a branch, so it is read page by page."""
        for page in range(1, _MOST_PAGES + 1):
            params = {"state": "open", "page": page, "limit": _PAGE}
            _, answer = await self._caller.call("GET", self._path, accept=(200,), params=params)
            for entry in answer:
                if (entry["head"]["ref"], entry["base"]["ref"]) == (branch, target):
                    return read(entry, Found, self.names)
            if len(answer) < _PAGE:
                return None
        return None

    async def open(self, branch: str, target: str, text: PullRequestText) -> Found | None:
        """A draft is known by its title; 409 means that there is one."""
        title = f"WIP: {text.title}" if text.draft else text.title
        body = {"title": title, "head": branch, "base": target, "body": text.body}
        status, answer = await self._caller.call("POST", self._path, accept=(201, 409), json=body)
        return None if status == 409 else read(answer, Found, self.names)

    async def reword(self, number: int, text: PullRequestText) -> None:
        """A draft stays one."""
        _, answer = await self._caller.call("GET", f"{self._path}/{number}", accept=(200,))
        news = text.news(title="title", body="body", mark="WIP: " if answer.get("draft") else "")
        await self._caller.call("PATCH", f"{self._path}/{number}", accept=(200, 201), json=news)

    async def look(self, number: int) -> PullRequestData:
        """The pull request, and the statuses of its last commit."""
        _, answer = await self._caller.call("GET", f"{self._path}/{number}", accept=(200,))
        commit = f"{self._path.removesuffix('/pulls')}/commits/{quote(head_commit(answer))}"
        _, status = await self._caller.call("GET", f"{commit}/status", accept=(200, 403, 404))
        return github_like(answer, together(statuses(status)))

    async def merge(self, number: int) -> None:
        """405 and 409 say why not."""
        status, answer = await self._caller.call(
            "POST", f"{self._path}/{number}/merge", accept=(200, 403, 405, 409, 422), json={"Do": "merge"}
        )
        refuse_unless_merged(status, answer)


def _refused(answer: object) -> Found:
    raise Unprocessable(reason=f"The forge refuses the pull request: {str(answer)[:300]}")


def forge_of(
    client: httpx.AsyncClient, address: Address, token: str, *, kind: ForgeKind | None, api_url: str | None
) -> Forge:
    """The forge of a repository; one that is not known by its host must be named."""
    chosen = forge_kind(address, kind)
    repository = address.path.strip("/").removesuffix(".git")
    match chosen:
        case "github":
            usual = "https://api.github.com" if address.host == "github.com" else f"https://{address.host}/api/v3"
            return GitHub(client, api_url or usual, repository, token)
        case "gitlab":
            return GitLab(client, api_url or f"https://{address.host}/api/v4", repository, token)
        case "gitea":
            return Gitea(client, api_url or f"https://{address.host}/api/v1", repository, token)
        case _:
            assert_never(chosen)
