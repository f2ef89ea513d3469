"""`ostler webhooks`."""

import json

from tests.cli.conftest import Ostler
from tests.support.receiving import SECRET, receiving


def test_a_webhook_is_made_tried_looked_at_and_removed(ostler: Ostler) -> None:
    with receiving() as receiver:
        made = ostler("webhooks", "create", receiver.url, "--event", "turn.ended", "--secret", SECRET, "--json")
        webhook = json.loads(made.stdout)["id"]
        assert receiver.url in ostler("webhooks", "list").stdout
        call = json.loads(ostler("webhooks", "test", webhook, "--json").stdout)["id"]
        assert call in ostler("webhooks", "deliveries", webhook).stdout
        assert '"type": "webhook.test"' in ostler("webhooks", "delivery", webhook, call).stdout
        assert call in ostler("webhooks", "replay", webhook, call).stdout
        assert "paused" in ostler("webhooks", "edit", webhook, "--event", "session.*", "--pause").stdout
        assert "session.*" in ostler("webhooks", "show", webhook).stdout
    refused = ostler("webhooks", "create", "http://127.0.0.1:9/hook", "--event", "turn.over")
    assert "'turn.over' is no type of events" in refused.stderr
    assert ostler("webhooks", "remove", webhook).stdout == f"Removed the webhook '{webhook}'.\n"
