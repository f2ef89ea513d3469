"""What a browser gets from the server: pages, files, and the headers that keep them safe."""

import gzip
import re
from pathlib import Path

import httpx
import pytest

from ostler.server.api.edge.asgi import Receive, Scope, Send
from ostler.server.api.ui import Ui
from tests.support.serving import running_server

PAGE = b'<!doctype html><script src="/assets/app-1.js"></script>'
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def _api(scope: Scope, _: Receive, send: Send) -> None:
    """Stands where the API stands, and says only that it was asked."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": f"api {scope['path']}".encode()})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    web = tmp_path / "_web"
    (web / "assets").mkdir(parents=True)
    (web / "index.html").write_bytes(PAGE)
    (web / "assets" / "app-1.js").write_text("console.log(1);" * 100)
    (web / "favicon.svg").write_text("<svg/>")
    (tmp_path / "secret.txt").write_text("secret")
    return web


@pytest.fixture
def browser(folder: Path) -> httpx.AsyncClient:
    return _client(folder)


def _client(folder: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=Ui(_api, folder)), base_url="http://server")


@pytest.mark.parametrize(
    "path",
    ["/", "/inbox", "/new", "/sessions/ses_1", "/sessions/v1.2", "/sessions/README.md", "/ai/runs", "/no/such/page"],
)
async def test_every_page_a_person_opens_is_the_one_page(browser: httpx.AsyncClient, path: str) -> None:
    answer = await browser.get(path, headers=BROWSER)
    assert (answer.status_code, answer.content) == (200, PAGE)
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/v1/sessions", "/healthz", "/api/chat", "/robots.txt"])
async def test_paths_of_the_api_stay_with_the_api(browser: httpx.AsyncClient, path: str) -> None:
    assert (await browser.get(path, headers=BROWSER)).text == f"api {path}"


@pytest.mark.parametrize("path", ["/sessions", "/agents", "/anything"])
async def test_programs_get_the_api_where_browsers_get_the_page(browser: httpx.AsyncClient, path: str) -> None:
    assert (await browser.get(path)).text == f"api {path}"
    assert (await browser.post(path, headers=BROWSER)).text == f"api {path}"


async def test_files_with_a_fingerprint_are_kept_for_a_year_and_sent_small(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/assets/app-1.js", headers={"accept-encoding": "gzip"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert int(answer.headers["content-length"]) < len(answer.content)
    plain = await browser.get("/assets/app-1.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.content == answer.content
    assert re.match(r"(text|application)/javascript", plain.headers["content-type"])


async def test_a_head_request_has_headers_only(browser: httpx.AsyncClient) -> None:
    answer = await browser.head("/favicon.svg", headers={"accept-encoding": "identity"})
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "6")


async def test_nothing_from_elsewhere_may_run_in_the_page(browser: httpx.AsyncClient) -> None:
    headers = (await browser.get("/", headers=BROWSER)).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["script-src"] == policy["connect-src"] == policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    ["/assets/../../secret.txt", "/assets/%2e%2e/%2e%2e/secret.txt", "/assets//etc/passwd", "/assets/" + "x" * 9000],
)
async def test_no_name_leads_out_of_the_folder(browser: httpx.AsyncClient, path: str) -> None:
    url = httpx.URL("http://server").copy_with(raw_path=path.encode())
    assert (await browser.get(url)).text.startswith("api /")


async def test_a_rebuilt_ui_is_served_without_a_restart(folder: Path) -> None:
    async with _client(folder) as browser:
        await browser.get("/")
        (folder / "index.html").write_bytes(b"new")
        assert (await browser.get("/")).content == b"new"


async def test_a_server_without_the_ui_says_how_to_build_it(tmp_path: Path) -> None:
    async with _client(tmp_path / "nothing") as browser:
        answer = await browser.get("/", headers=BROWSER)
        assert answer.status_code == 503
        assert "make web" in answer.text
        assert (await browser.get("/api/v1/version")).text == "api /api/v1/version"


async def test_the_zipped_page_is_the_page(browser: httpx.AsyncClient) -> None:
    async with browser.stream("GET", "/", headers={**BROWSER, "accept-encoding": "gzip"}) as answer:
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert gzip.decompress(raw) == PAGE


def test_the_page_needs_no_token_but_the_right_host(state_dir: Path) -> None:
    with running_server(state_dir, "--token", "secret") as server:
        assert httpx.get(server.url, headers=BROWSER).status_code in {200, 503}
        assert httpx.get(f"{server.url}/sessions/x", headers=BROWSER).status_code in {200, 503}
        assert httpx.get(f"{server.url}/sessions/x").status_code == 401
        assert httpx.get(f"{server.url}/api/v1/version", headers=BROWSER).status_code == 401
        assert httpx.get(server.url, headers={**BROWSER, "host": "evil.example"}).status_code == 403
