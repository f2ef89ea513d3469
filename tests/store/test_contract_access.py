"""What every store answers about tenants, projects, API keys and limits."""

from msgspec.structs import replace

from ostler.server.store.access import AccessRows, ApiKeyRow, LimitsRow, ProjectRow, SignInRow, TenantRow, UploadedBy
from ostler.server.store.protocol import Store
from ostler.server.store.records import UnderWay, Used, UsedBy
from ostler.wire.provisioning import WorkspaceOrder
from ostler.wire.workspaces import Repo
from tests.store.conftest import Opener
from tests.support.log_writing import change, created, notice

NOW, LATER, LAST = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z"
TENANT = TenantRow(name="acme", created_at=NOW)
PROJECT = ProjectRow(id="prj_1", tenant="acme", name="web", created_at=NOW)
KEY = ApiKeyRow(
    id="key_1",
    hash="h1",
    prefix="ostler_abc",
    name="CI ✓",
    tenant="acme",
    project="prj_1",
    role="operator",
    created_by="token",
    created_at=NOW,
    expires_at=LATER,
)


async def test_tenants_projects_and_keys_are_there_after_a_restart(opener: Opener) -> None:
    store = await opener()
    assert await store.access.all() == AccessRows()
    assert await store.access.add_tenant(TENANT)
    assert await store.access.add_project(PROJECT)
    assert await store.access.add_key(KEY)
    await store.close()
    store = await opener()
    assert await store.access.all() == AccessRows(tenants=(TENANT,), projects=(PROJECT,), keys=(KEY,))
    await store.close()


async def test_a_name_is_given_once_and_a_project_name_once_in_its_tenant(store: Store) -> None:
    assert await store.access.add_tenant(TENANT)
    assert not await store.access.add_tenant(replace(TENANT, created_at=LATER))
    assert await store.access.add_project(PROJECT)
    assert not await store.access.add_project(replace(PROJECT, id="prj_2"))
    assert await store.access.add_project(replace(PROJECT, id="prj_3", tenant="umbra"))
    assert await store.access.add_key(KEY)
    assert not await store.access.add_key(replace(KEY, id="key_2"))
    found = await store.access.all()
    assert (len(found.tenants), len(found.projects), len(found.keys)) == (1, 2, 1)


async def test_a_key_is_revoked_once_and_remembers_its_last_use(store: Store) -> None:
    await store.access.add_key(KEY)
    assert await store.access.key_used("key_1", LATER)
    assert await store.access.revoke_key("key_1", LAST)
    assert not await store.access.revoke_key("key_1", NOW)
    assert not await store.access.revoke_key("key_9", NOW)
    (found,) = (await store.access.all()).keys
    assert found == replace(KEY, last_used_at=LATER, revoked_at=LAST)


async def test_a_sign_in_has_another_hash_once_and_ends_with_all_of_its_actor(store: Store) -> None:
    first = SignInRow(
        id="sgn_1",
        hash="h1",
        way="oidc",
        mark="m",
        actor="oidc:anna",
        name="Anna",
        grants="[]",
        created_at=NOW,
        ends_at=LAST,
    )
    others = [
        replace(first, id=f"sgn_{hash_}", hash=hash_, actor=actor)
        for hash_, actor in (("h2", first.actor), ("h3", "x"))
    ]
    for each in (first, *others):
        assert await store.access.sign_in(each)
    assert await store.access.renew_sign_in("sgn_1", "h1", "h4", "h1", LATER)
    assert not await store.access.renew_sign_in("sgn_1", "h1", "h5", "h1", LATER)
    renewed = replace(first, hash="h4", former_hash="h1", renewed_at=LATER)
    assert renewed in (await store.access.all()).sign_ins
    assert await store.access.sign_in_renewed("sgn_1", LAST)
    assert not await store.access.sign_in_renewed("sgn_1", LATER)
    assert replace(renewed, former_until=LAST) in (await store.access.all()).sign_ins
    assert await store.access.narrow_sign_in("sgn_1", "sgn_9", "[1]")
    assert not await store.access.narrow_sign_in("sgn_1", "sgn_8", "[1]")
    narrowed = replace(renewed, id="sgn_9", grants="[1]", former_until=LAST)
    assert narrowed in (await store.access.all()).sign_ins
    assert await store.access.sign_out_everywhere(first.actor)
    assert (await store.access.all()).sign_ins == (others[1],)


async def test_limits_are_replaced_as_a_whole(store: Store) -> None:
    first = LimitsRow(scope="project", id="prj_1", live_sessions=2, cost_per_day=0.5, upload_bytes_per_day=2**40)
    assert await store.access.set_limits(first)
    assert (await store.access.all()).limits == (first,)
    second = LimitsRow(scope="project", id="prj_1", requests_per_second=1.5)
    assert await store.access.set_limits(second)
    assert (await store.access.all()).limits == (second,)


async def test_what_turns_used_is_counted_by_day_project_and_actor(store: Store) -> None:
    made = await created(store, "ses_a")
    other = await created(store, "ses_b", project="other")
    for used in (
        Used(1, "default", "key:a", "2026-01-01", 10, 0.5),
        Used(1, "default", "key:a", "2026-01-01", 30, 0.75),
        Used(2, "default", "key:a", "2026-01-01", 5, 0.0),
        Used(3, "default", "key:a", "2026-01-02", 7, 0.0),
    ):
        await made.append(notice("x"), used=used)
    await other.append(notice("x"), used=Used(1, "other", "key:b", "2026-01-01", 100, 1.0))
    assert await store.used_on("2026-01-01", ["default"]) == [UsedBy("default", "key:a", 35, 0.75)]
    assert len(await store.used_on("2026-01-01", ["default", "other"])) == 2
    assert await store.used_on("2025-12-31", ["default"]) == []


async def test_sessions_under_way_are_counted_by_project_actor_and_whether_they_wait(store: Store) -> None:
    await created(store, "ses_a")
    await created(store, "ses_b", first=change("queued"), runner=None)
    await created(store, "ses_c", first=change("stopped"))
    await created(store, "ses_d", project="other")
    assert await store.sessions_under_way(["default"], ["stopped"]) == [UnderWay("default", None, 1, 1, 0)]
    assert len(await store.sessions_under_way(["default", "other"], ["stopped"])) == 2
    assert await store.sessions_under_way(["nobody"], ["stopped"]) == []


async def test_workspaces_are_counted_while_they_are_there_or_will_be(store: Store) -> None:
    git, own = WorkspaceOrder(repo=Repo(url="x")), WorkspaceOrder(repo=Repo(mode="checkout", path="/x"))
    await created(store, "ses_a", workspace=git)
    await created(store, "ses_b", workspace=git, first=change("stopped", workspace="wsp_1"))
    await created(store, "ses_c", workspace=git, first=change("stopped"))
    await created(store, "ses_d", workspace=own, first=change("stopped", workspace="wsp_2"))
    await created(store, "ses_e", workspace=own)
    await created(store, "ses_f")
    assert await store.sessions_under_way(["default"], ["stopped"]) == [UnderWay("default", None, 3, 0, 2)]


async def test_uploads_are_added_up_by_day_project_and_actor(store: Store) -> None:
    for day, project, actor, size in (
        ("2026-01-01", "default", "key:a", 2**40),
        ("2026-01-01", "default", "key:a", 3),
        ("2026-01-02", "default", "key:a", 5),
        ("2026-01-01", "other", "key:a", 7),
    ):
        await store.access.uploaded(day, project, actor, size)
    assert await store.access.uploaded_on("2026-01-01", ["default"]) == [UploadedBy("default", "key:a", 2**40 + 3)]
    assert len(await store.access.uploaded_on("2026-01-01", ["default", "other"])) == 2
