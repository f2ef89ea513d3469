"""Deliveries are signed as GitHub, Gitea, GitLab, Slack, Stripe and Standard Webhooks sign, and checked as they say."""

import pytest

from ostler.server.triggers.signatures import Sent, is_genuine, is_secret_header
from ostler.wire.triggers import NewSignature, SignatureScheme

BODY = '{"type":"push","id":1,"text":"grüß"}'.encode()
AT = 1790000000
SECRET = "ostler-test-secret"
KEY = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
STANDARD = {
    "webhook-id": "msg_01OSTLER",
    "webhook-timestamp": str(AT),
    "webhook-signature": "v1,AAAA v1,WyxJyrO7m09DJOHsl1l/Tc2kzExOrK3mEHBscMQAG84=",
}
HEX = "c79370c77a5404e9209174d0985c6854590a39ea222559d199e8020010d44793"
SLACK = "v0=9df676d737855a528732b91d36f023dd4db5c00914de568fb1bb1fa19a696ecf"
STRIPE = "t=1790000000,v1=00,v1=09bcfb9cb4d81039b2af6fb6bf2a971b668041129c5f5caeb38b51b561b3a1ac"
VECTORS: list[tuple[SignatureScheme, str, dict[str, str]]] = [
    ("github", SECRET, {"x-hub-signature-256": f"sha256={HEX}"}),
    ("gitea", SECRET, {"x-gitea-signature": HEX}),
    ("gitlab", SECRET, {"x-gitlab-token": SECRET}),
    ("gitlab", KEY, STANDARD),
    ("slack", SECRET, {"x-slack-signature": SLACK, "x-slack-request-timestamp": str(AT)}),
    ("stripe", SECRET, {"stripe-signature": STRIPE}),
    ("standard", KEY, STANDARD),
    ("token", SECRET, {"authorization": f"Bearer {SECRET}"}),
]


def _is_genuine(signature: NewSignature, headers: dict[str, str], body: bytes = BODY, now: float = AT) -> bool:
    return is_genuine(signature, Sent(headers=headers, body=body, now=now))


@pytest.mark.parametrize(("scheme", "secret", "headers"), VECTORS)
def test_what_is_signed_with_one_of_the_secrets_is_genuine(
    scheme: SignatureScheme, secret: str, headers: dict[str, str]
) -> None:
    signature = NewSignature(scheme=scheme, secret=secret)
    assert _is_genuine(signature, headers)
    assert _is_genuine(NewSignature(scheme=scheme, secret="another-one", earlier_secret=secret), headers)
    assert not _is_genuine(NewSignature(scheme=scheme, secret="another-one"), headers)
    assert not _is_genuine(signature, {})


@pytest.mark.parametrize(("scheme", "secret", "headers"), [each for each in VECTORS if "token" not in str(each)])
def test_another_body_is_not_genuine(scheme: SignatureScheme, secret: str, headers: dict[str, str]) -> None:
    assert not _is_genuine(NewSignature(scheme=scheme, secret=secret), headers, BODY + b" ")


@pytest.mark.parametrize("now", [AT - 301, AT + 301])
@pytest.mark.parametrize(
    ("scheme", "secret", "headers"), [each for each in VECTORS if each[0] in {"slack", "stripe", "standard"}]
)
def test_what_was_signed_long_ago_or_for_later_is_not_genuine(
    scheme: SignatureScheme, secret: str, headers: dict[str, str], now: int
) -> None:
    assert not _is_genuine(NewSignature(scheme=scheme, secret=secret), headers, now=now)


def test_headers_that_prove_something_are_not_stored() -> None:
    github = NewSignature(scheme="github")
    names = ("x-api-key", "x-webhook-secret", "proxy-authorization", "x-auth-key", "cookie", "x-hub-signature-256")
    assert [name for name in names if not is_secret_header(github, name)] == []
    assert not is_secret_header(github, "x-github-event")
