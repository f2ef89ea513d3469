"""What every store answers about tenants, projects and API keys."""

from msgspec.structs import replace

from ostler.server.store.access import AccessRows, ApiKeyRow, ProjectRow, TenantRow
from ostler.server.store.protocol import Store
from tests.store.conftest import Opener

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
