"""`ostler tenants`, `projects`, `keys` and `whoami`, and working in a project."""

import json

from tests.cli.conftest import Ostler


def test_a_team_gets_a_project_and_a_key_that_works_there(ostler: Ostler) -> None:
    assert "Made the project 'shop'" in ostler("projects", "create", "shop").stdout
    made = json.loads(ostler("keys", "create", "ci", "--role", "operator", "--for", "shop", "--json").stdout)
    mine = json.loads(ostler("whoami", "--json", OSTLER_TOKEN=made["key"]).stdout)
    assert (mine["actor"], mine["role"], mine["reach"]) == (f"key:{made['id']}", "operator", "project")
    assert ostler("sessions", "create", "mock", "--key", "in-shop", OSTLER_TOKEN=made["key"]).returncode == 0
    assert "in-shop" in ostler("--project", "shop", "sessions", "list").stdout
    assert "in-shop" in ostler("sessions", "list", OSTLER_PROJECT="shop").stdout
    assert "in-shop" not in ostler("sessions", "list").stdout
    row = next(line for line in ostler("keys", "list").stdout.splitlines() if made["id"] in line)
    assert made["key"] not in row
    assert ostler("keys", "revoke", made["id"]).stdout == f"Revoked the key '{made['id']}'.\n"
    refused = ostler("whoami", OSTLER_TOKEN=made["key"])
    assert refused.returncode != 0
    assert "was revoked" in refused.stderr


def test_tenants_are_apart_and_mistakes_are_one_line(ostler: Ostler) -> None:
    assert "Made the tenant 'acme'" in ostler("tenants", "create", "acme").stdout
    assert "acme" in ostler("tenants", "list").stdout
    assert '"tenant": "acme"' in ostler("--project", "acme/default", "whoami", "--json").stdout
    assert "--project acme/shop " in ostler("--project", "acme/default", "projects", "create", "shop").stdout
    assert "There is a tenant 'acme' already." in ostler("tenants", "create", "acme").stderr
    assert "There is no project 'nowhere'." in ostler("--project", "nowhere", "sessions", "list").stderr
