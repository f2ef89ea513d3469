"""The result reaches people: as a patch, as a branch, as one pull request, and never with a secret in it."""

import io
import logging
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from ostler.base.errors import (
    DeliveryFailed,
    InvalidRequest,
    NothingToDeliver,
    OstlerError,
    RepositoryFailed,
    Unprocessable,
)
from ostler.runner.delivery.branches import CommitText
from ostler.runner.delivery.forge import ForgeKind, PullRequest, PullRequestText
from ostler.runner.delivery.service import (
    BranchOrder,
    PullRequestOrder,
    deliver_branch,
    deliver_patch,
    deliver_pull_request,
)
from ostler.runner.workspaces.library import WorkspaceLibrary
from ostler.runner.workspaces.orders import Credential, EmptySource, GitSource, Order
from ostler.runner.workspaces.repositories.policy import Policy
from ostler.wire.workspaces import Workspace
from tests.support.forge import TOKEN, State, running_forge
from tests.support.places import LOOPBACK, content_of, contents, git, inside, make_forged, opened, order

_TEXT = CommitText(
    message="Mend the project\n\nIt was broken.", author_name="Ann <x>\n", author_email="ann@example.com"
)
_WORK = """
echo more >> README.md
printf 'echo one\\r\\necho three\\r\\n' > dos.bat
head -c 5000 /dev/urandom > data.bin
chmod +x src/main.py
git mv src/old.py src/new.py
rm gone/a.txt link && ln -s src/main.py link
printf 'no newline' > 'new ünï "file"'
echo x > build.log
"""


class Shop:
    """A forge with one repository, a service that may use it, and a workspace with work in it."""

    def __init__(self, service: WorkspaceLibrary, workspace: Workspace, state: State, url: str, bare: Path) -> None:
        self.service, self.workspace, self.state, self.url, self.bare = service, workspace, state, url, bare
        self.naps: list[float] = []

    def branch(self, name: str = "ostler/work", **changes: object) -> BranchOrder:
        given = {"workspace": self.workspace.id, "branch": name, "text": _TEXT, "credential": Credential(token=TOKEN)}
        return BranchOrder(**{**given, **changes})  # type: ignore[arg-type]  # each test says what it needs

    async def pull_request(self, forge: ForgeKind | None = "github", **changes: object) -> PullRequest:
        given = {
            "branch": self.branch(),
            "text": PullRequestText(title="Mend it", body="It *was* broken."),
            "forge": forge,
            "api_url": f"{self.url}/{forge}",
        }
        wanted = PullRequestOrder(**{**given, **changes})  # type: ignore[arg-type]  # each test says what it needs
        async with httpx.AsyncClient(trust_env=False) as client:
            return (await deliver_pull_request(self.service, wanted, client, sleep=self._nap))[0]

    async def _nap(self, seconds: float) -> None:
        self.naps.append(seconds)


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    bare = make_forged(tmp_path)
    policy = Policy(protocols=("http",), hosts=("127.0.0.1",), addresses=LOOPBACK)
    with running_forge(tmp_path / "forge") as (url, state):
        async with opened(tmp_path / "state", policy=policy) as service:
            source = GitSource(url=f"{url}/team/project.git", branch="main", credential=Credential(token=TOKEN))
            workspace = await service.create(Order(source=source, scope="ann"))
            await inside(service, workspace, _WORK)
            yield Shop(service, workspace, state, url, bare)
        assert state.faults == []


async def test_a_patch_applies_to_the_untouched_original(repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        workspace = await service.create(order(repository))
        await inside(service, workspace, _WORK)
        patch = io.BytesIO()
        size = await deliver_patch(service, workspace.id, patch)
        assert size == len(patch.getvalue())
        wanted = await contents(service, workspace)
    git(tmp_path, "clone", "-q", str(repository), "fresh")
    (tmp_path / "result.patch").write_bytes(patch.getvalue())
    fresh = tmp_path / "fresh"
    git(fresh, "apply", "--check", "../result.patch")
    git(fresh, "apply", "../result.patch")
    (fresh / "build.log").write_text("x\n")  # ignored, so not part of a result
    assert content_of(fresh) == wanted


async def test_a_workspace_without_changes_has_nothing_to_deliver(repository: Path, tmp_path: Path) -> None:
    async with opened(tmp_path / "state", repository.parent) as service:
        workspace = await service.create(order(repository))
        await inside(service, workspace, "echo x > only-ignored.log")
        with pytest.raises(NothingToDeliver):
            await deliver_patch(service, workspace.id, io.BytesIO())
        with pytest.raises(NothingToDeliver):
            await deliver_branch(service, BranchOrder(workspace=workspace.id, branch="x", text=_TEXT))


async def test_a_branch_is_pushed_as_one_commit(shop: Shop) -> None:
    await inside(shop.service, shop.workspace, "git -c user.name=a -c user.email=b@c commit -qam 'the agent says'")
    pushed = await deliver_branch(shop.service, shop.branch())
    assert git(shop.bare, "rev-parse", "ostler/work") == pushed.commit
    assert git(shop.bare, "rev-list", "--count", "main..ostler/work") == "1"
    assert git(shop.bare, "log", "-1", "--format=%an|%ae|%B", "ostler/work") == (
        "Ann x|ann@example.com|Mend the project\n\nIt was broken."
    )
    git(shop.bare.parent.parent, "clone", "-q", "-b", "ostler/work", str(shop.bare), "result")
    result = shop.bare.parent.parent / "result"
    (result / "build.log").write_text("x\n")
    assert content_of(result) == await contents(shop.service, shop.workspace)


async def test_pushing_twice_is_pushing_once_and_later_work_replaces_it(shop: Shop) -> None:
    first = await deliver_branch(shop.service, shop.branch())
    assert await deliver_branch(shop.service, shop.branch()) == first
    await inside(shop.service, shop.workspace, "echo later >> README.md")
    later = await deliver_branch(shop.service, shop.branch())
    assert later.commit != first.commit
    assert git(shop.bare, "rev-parse", "ostler/work") == later.commit


async def test_a_branch_of_somebody_else_is_never_overwritten(shop: Shop) -> None:
    before = git(shop.bare, "rev-parse", "main")
    with pytest.raises(DeliveryFailed, match="Choose another name"):
        await deliver_branch(shop.service, shop.branch("main"))
    assert git(shop.bare, "rev-parse", "main") == before


async def test_a_push_that_breaks_is_tried_again(shop: Shop) -> None:
    shop.state.failures += ["git 503", "git hang-up"]
    pushed = await deliver_branch(shop.service, shop.branch())
    assert git(shop.bare, "rev-parse", "ostler/work") == pushed.commit


async def test_a_wrong_credential_is_said_without_showing_it(shop: Shop) -> None:
    wrong = Credential(token="tok-wrong-9876543210")
    with pytest.raises(DeliveryFailed) as refused:
        await deliver_branch(shop.service, shop.branch(credential=wrong))
    assert "tok-wrong" not in str(refused.value)
    assert "tok-" not in repr(wrong)
    source = GitSource(url=f"{shop.url}/team/project.git", credential=wrong)
    with pytest.raises(RepositoryFailed) as failed:
        await shop.service.create(Order(source=source, scope="other"))
    assert "tok-wrong" not in str(failed.value)


@pytest.mark.parametrize("name", ["--force", "a..b", "", "x y", "refs/heads/-x\n"])
async def test_a_branch_that_cannot_be_one_is_not_pushed(shop: Shop, name: str) -> None:
    with pytest.raises(InvalidRequest, match="branch:"):
        await deliver_branch(shop.service, shop.branch(name))
    assert shop.service.snapshots(shop.workspace.id) == []


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
async def test_a_pull_request_is_opened_once_however_often_it_is_asked_for(shop: Shop, forge: ForgeKind) -> None:
    first = await shop.pull_request(forge)
    again = await shop.pull_request(forge)
    assert [(first.number, first.created), (again.number, again.created)] == [(1, True), (1, False)]
    assert first.url == again.url
    assert shop.state.pulls == [
        {"number": 1, "source": "ostler/work", "target": "main", "title": "Mend it", "body": "It *was* broken."}
    ]


@pytest.mark.parametrize("forge", ["github", "gitlab", "gitea"])
@pytest.mark.parametrize("failure", ["api 503", "api 429", "api hang-up", "api after"])
async def test_a_forge_that_stumbles_still_gets_one_pull_request(shop: Shop, forge: ForgeKind, failure: str) -> None:
    shop.state.failures.append(failure)
    made = await shop.pull_request(forge)
    assert (made.number, len(shop.state.pulls), len(shop.naps)) == (1, 1, 1)


async def test_a_forge_that_stays_down_is_given_up_with_words(shop: Shop) -> None:
    shop.state.failures += ["api 502"] * 10
    with pytest.raises(DeliveryFailed, match=r"502. It was tried 4 times"):
        await shop.pull_request()
    assert len(shop.naps) == 3


async def test_one_pull_request_among_many_is_found(shop: Shop) -> None:
    for number in range(120):
        shop.state.open_pull(f"other/{number}", "main", "other", "")
    made = await shop.pull_request("gitea")
    again = await shop.pull_request("gitea")
    assert (made.number, again.number) == (121, 121)


async def test_no_secret_is_in_an_address_an_error_or_a_log(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(OstlerError) as refused:
        await shop.pull_request(forge_token="tok-wrong-9876543210")
    await shop.pull_request()
    assert "tok-" not in str(refused.value)
    assert "tok-" not in caplog.text
    assert not any("tok-" in request for request in shop.state.requests)
    written = subprocess.run(
        ["grep", "-rl", "-e", TOKEN, "-e", "tok-wrong", str(shop.bare.parents[2] / "state")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert written.stdout == ""


async def test_a_pull_request_needs_a_repository_a_known_forge_and_a_title(shop: Shop) -> None:
    with pytest.raises(InvalidRequest, match="Name github, gitlab or gitea"):
        await shop.pull_request(forge=None)
    with pytest.raises(InvalidRequest, match="title:"):
        await shop.pull_request(text=PullRequestText(title=" "))
    empty = await shop.service.create(Order(source=EmptySource()))
    with pytest.raises(Unprocessable, match="git repository"):
        await shop.pull_request(branch=shop.branch(workspace=empty.id), target="main")
