"""What a delivery would be if nothing else is said: shown before it is done, and done if nothing else is said."""

import asyncio
import re
from typing import NoReturn

from ostler.base.errors import InvalidRequest, OstlerError, Unprocessable
from ostler.link.workspaces import Workspaces
from ostler.server.sessions.admission import check_credential
from ostler.server.sessions.session import SessionCore
from ostler.server.sessions.work.chores import REQUEST_SECONDS, files_in_use
from ostler.server.sessions.work.delivery import access_of, branch_words, folder_of, repo_of
from ostler.server.sessions.work.delivery_words import proposed_body, proposed_title
from ostler.server.sessions.work.own_steps import own_steps, turn_files
from ostler.server.tasks.states import BASE, NOW, workspace_of
from ostler.server.tasks.views import delivery_view
from ostler.wire.delivery import DeliverSession, DeliveryPlan, DeliveryWay
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.tasks import TaskDelivery
from ostler.wire.texts import BRANCH, LINE, PARAGRAPHS, WEB
from ostler.wire.workspace_events import DeliveryCompletedData
from ostler.wire.workspaces import Deliver, DeliveryMode, Difference, GitRefs, Repo

_MODES: tuple[DeliveryMode, ...] = ("pr", "local", "commit", "branch", "patch")
"""Best first."""
_MOST_BRANCHES = 500
_SHOWN = 80
_FIELD = re.compile(r"^[\w.]+: ")


class DeliveryPlans:
    """Plans the delivery of one session."""

    def __init__(self, workspaces: Workspaces, session: SessionCore) -> None:
        self._workspaces = workspaces
        self._session = session

    async def plan(self) -> DeliveryPlan:
        """Everything that a person would want to see before it is done."""
        session, repo = self._session, repo_of(self._session)
        found = await self._changes()
        refs, problem = await self._refs(repo)
        ways = await self._ways(repo)
        title, last = await proposed_title(self._session), self._last
        target = self._target(refs)
        tips = {ref.name: ref.commit for ref in refs.refs if ref.kind == "branch"} if refs is not None else {}
        made = session.state.workspace
        steps = await own_steps(self._workspaces, session)
        files = await turn_files(self._workspaces, session, steps) if steps is not None else None
        there = {each.path for each in found.files}
        return DeliveryPlan(
            mode=last.mode if last is not None else next(way.mode for way in ways if way.why_not is None),
            ways=ways,
            branch=self._branch(title, refs),
            title=title,
            body=await proposed_body(self._session),
            files_changed=found.files_changed,
            added=found.added,
            removed=found.removed,
            has_news=found.files_changed > 0 and (last is None or session.state.is_delivery_outdated),
            target=target,
            branches=tuple(tips)[:_MOST_BRANCHES],
            behind=bool(made and made.commit and target in tips and tips[target] != made.commit),
            repository=self._url(repo),
            folder=folder_of(repo),
            problem=problem,
            delivery=delivery_view(session.state),
            paths=tuple(path for path in files.named if path in there) if files is not None else None,
            left=tuple(path for path in files.others if path in there) if files is not None else (),
        )

    async def _changes(self) -> Difference:
        """What was changed; a push that hangs has the files to itself."""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                workspace = workspace_of(self._session)
                return await self._workspaces.files.diff(workspace, old=BASE, new=NOW, context=0, text=False)
        except TimeoutError as error:
            raise files_in_use(self._session.id) from error

    async def filled(self, wanted: DeliverSession) -> Deliver:
        """An order of a client with what it leaves open."""
        _check_names(wanted)
        repo, last = repo_of(self._session), self._last
        mode = wanted.mode or (last.mode if last is not None else await self._best(repo, wanted))
        if mode == "local":
            await self._check_local(repo, wanted)
        title = wanted.title or await proposed_title(self._session)
        branch = wanted.branch or None
        if branch is None and mode in {"branch", "pr"}:
            refs, _ = await self._refs(repo)
            branch = self._branch(title, refs)
        return Deliver(
            mode=mode,
            branch=branch,
            target_branch=wanted.target or (last.target if last is not None and mode == "pr" else None),
            title=title,
            body=wanted.body if wanted.body is not None else await proposed_body(self._session),
            message=wanted.message,
            draft=wanted.draft,
            credential=wanted.credential,
            forge=wanted.forge,
            api_url=wanted.api_url,
            paths=wanted.paths,
        )

    # What there is

    @property
    def _last(self) -> DeliveryCompletedData | None:
        """The last delivery that can be brought up to date; a patch is a new one each time."""
        last = self._session.state.delivery
        return last if last is not None and last.mode != "patch" else None

    async def _refs(self, repo: Repo | None) -> tuple[GitRefs | None, str | None]:
        """The branches of the remote, or why they cannot be had."""
        if (url := self._url(repo)) is None:
            return None, None
        asked = Repo(url=url, credential=access_of(self._session).credential)
        try:
            return await self._workspaces.refs(asked), None
        except OstlerError as error:
            return None, str(error)

    def _url(self, repo: Repo | None) -> str | None:
        """Where a branch would go to."""
        made = self._session.state.workspace
        if repo is not None and repo.mode == "checkout":
            return made.url if made is not None else None
        return repo.url if repo is not None and repo.mode == "git" else None

    async def _ways(self, repo: Repo | None, wanted: DeliverSession | None = None) -> tuple[DeliveryWay, ...]:
        return tuple([DeliveryWay(mode=mode, why_not=await self._why_not(mode, repo, wanted)) for mode in _MODES])

    async def _best(self, repo: Repo | None, wanted: DeliverSession) -> DeliveryMode:
        return next(way.mode for way in await self._ways(repo, wanted) if way.why_not is None)

    async def _why_not(self, mode: DeliveryMode, repo: Repo | None, wanted: DeliverSession | None) -> str | None:
        try:
            await self._check(mode, repo, wanted or DeliverSession())
        except OstlerError as error:
            return _FIELD.sub("", str(error))
        return None

    async def _check(self, mode: DeliveryMode, repo: Repo | None, wanted: DeliverSession) -> None:
        """Raise if the result could not be handed over in this way; a patch needs nothing but the workspace."""
        if mode == "patch":
            return
        order = Deliver(mode=mode, credential=wanted.credential, forge=wanted.forge, api_url=wanted.api_url)
        known = access_of(self._session, order)
        asked = Deliver(mode=mode, credential=known.credential, forge=known.forge, api_url=known.api_url)
        await self._workspaces.check(WorkspaceOrder(repo=repo or Repo(mode="none")), asked)

    async def _check_local(self, repo: Repo | None, wanted: DeliverSession) -> None:
        """Raise if there is no checkout to bring it to: nothing is wrong with the request itself."""
        try:
            await self._check("local", repo, wanted)
        except InvalidRequest as error:
            reason = _FIELD.sub("", str(error))
            raise Unprocessable(reason=f"mode: {reason}", errors={"mode": [reason]}) from error

    # What it is called

    def _target(self, refs: GitRefs | None) -> str | None:
        last, made = self._last, self._session.state.workspace
        known = last.target if last is not None and last.mode != "commit" else None
        return known or (made.branch if made is not None else None) or (refs.default_branch if refs else None)

    def _branch(self, title: str, refs: GitRefs | None) -> str:
        """The one that was pushed before, else one that the remote does not have."""
        last = self._last
        if last is not None and last.branch is not None and last.mode != "commit":  # that one is the person's own
            return last.branch
        name = branch_words(title)
        if refs is None:
            return f"{name}-{self._session.id[-6:].lower()}"
        taken = {ref.name for ref in refs.refs}
        return next(each for each in _numbered(name) if each not in taken)


def check_words(wanted: DeliverSession | TaskDelivery, field: str = "") -> None:
    """Raise for texts and credentials that neither git nor a forge can take; `field` is what they are below."""
    for name, pattern in (("title", LINE), ("body", PARAGRAPHS), ("message", PARAGRAPHS)):
        text: str | None = getattr(wanted, name)
        if text is not None and not re.fullmatch(pattern, text):
            shown, kind = ascii(text[:_SHOWN])[1:-1], "must be one line" if pattern == LINE else "must be text"
            _refuse(f"{field}{name}", shown, f"{kind} without control characters; leave them out")
    check_credential(f"{field}credential", wanted.credential)


def _check_names(wanted: DeliverSession) -> None:
    """Raise for what could be used in no way; it may be remembered for a later one."""
    check_words(wanted)
    for field, name in (("branch", wanted.branch), ("target", wanted.target)):
        if name and not re.search(BRANCH, name):
            _refuse(field, name[:_SHOWN], "cannot be the name of a branch")
    if wanted.api_url is not None and not re.search(WEB, wanted.api_url):
        scheme, mark, _ = wanted.api_url.partition("://")  # the rest may be secret
        _refuse("apiUrl", f"{scheme[:_SHOWN]}{mark}", "begins neither with http:// nor with https://")


def _refuse(field: str, value: str, why: str) -> NoReturn:
    reason = f"'{value}' {why}"
    raise InvalidRequest(reason=f"{field}: {reason}.", errors={field: [reason]})


def _numbered(name: str) -> list[str]:
    return [name, *(f"{name}-{number}" for number in range(2, 1000)), f"{name}-more"]
