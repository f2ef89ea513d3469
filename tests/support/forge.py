"""A forge on 127.0.0.1: git over HTTP by git's own backend, and the documented interfaces for pull requests.

Every request is held against the documented schema: unknown fields, missing headers or wrong types are answered as the
real ones would, and remembered as faults.
"""

import base64
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

TOKEN = "tok-very-secret-0123456789"
_ONE_PULL = re.compile(
    r"/(github|gitlab|gitea)/(?:repos/team/project/pulls|projects/team%2Fproject/merge_requests)/(\d+)(/merge)?"
)
_CHECKS = re.compile(r"/git(?:hub|ea)/repos/team/project/commits/([^/]+)/(check-runs|status)")


class GitHubNew(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The documented body of `POST /repos/{owner}/{repo}/pulls`."""

    title: str
    head: str
    base: str
    body: str = ""
    draft: bool = False
    maintainer_can_modify: bool = True


class GitLabNew(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The documented body of `POST /projects/:id/merge_requests`."""

    source_branch: str
    target_branch: str
    title: str
    description: str = ""
    remove_source_branch: bool = False
    squash: bool = False


class GiteaNew(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The documented CreatePullRequestOption."""

    title: str
    head: str
    base: str
    body: str = ""


class State:
    """What the forge has, what it was asked, and what it shall do wrong."""

    def __init__(self, repositories: Path) -> None:
        self.repositories = repositories
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.pulls: list[dict[str, Any]] = []
        self.failures: list[str] = []
        self.away: list[str] = []
        """What paths begin with that are answered as if nobody was there."""
        self.lock = threading.Lock()

    def open_pull(
        self, source: str, target: str, title: str, body: str, *, is_draft: bool = False
    ) -> dict[str, Any] | None:
        with self.lock:
            if self.find_pulls(source, target):
                return None
            pull = {"number": len(self.pulls) + 1, "source": source, "target": target, "title": title, "body": body}
            if is_draft:
                pull["draft"] = True
            self.pulls.append(pull)
            return pull

    def find_pulls(self, source: str | None, target: str | None) -> list[dict[str, Any]]:
        found = [pull for pull in self.pulls if source in {None, pull["source"]} and target in {None, pull["target"]}]
        return [pull for pull in found if pull.get("state", "open") == "open"]

    def merge_pull(self, pull: dict[str, Any]) -> str | None:
        """Why it is not merged, or None if it is."""
        with self.lock:
            if pull.get("state", "open") != "open" or pull.get("draft") or pull.get("blocked"):
                return str(pull.get("blocked") or "Pull Request is not mergeable")
            pull["state"] = "merged"
            return None


class _Handler(BaseHTTPRequestHandler):
    state: State
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PATCH(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else b""
        if self.headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        url = urlsplit(self.path)
        with self.state.lock:
            self.state.requests.append(f"{self.command} {self.path}")
        if TOKEN in self.path:
            self.state.faults.append("a secret in an address")
        if ".git/" in url.path:
            self._git(url.path, url.query, body)
        else:
            self._api(url.path, {name: values[0] for name, values in parse_qs(url.query).items()}, body)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    # git over HTTP

    def _git(self, path: str, query: str, body: bytes) -> None:
        wanted = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if self.headers.get("authorization") != wanted:
            self._send(401, b"who are you", "text/plain", {"www-authenticate": 'Basic realm="git"'})
            return
        if self._fails("git"):
            return
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.state.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.state.repositories),
            "REMOTE_USER": "ann",
            "REMOTE_ADDR": "127.0.0.1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("content-type") or "",
            "HTTP_CONTENT_ENCODING": self.headers.get("content-encoding") or "",
            "GIT_PROTOCOL": self.headers.get("git-protocol") or "",
        }
        done = subprocess.run(["git", "http-backend"], env=env, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        status = int(headers.pop("Status", "200").split()[0])
        self._send(status, content, headers.pop("Content-Type", "text/plain"), headers)

    # The interfaces

    def _api(self, path: str, query: dict[str, str], body: bytes) -> None:
        if self._fails("api"):
            return
        if path.startswith(tuple(self.state.away)):
            self._json(503, {"message": "Service Unavailable"})
            return
        if found := re.fullmatch(r"/github/repos/team/project/pulls", path):
            self._github(query, body)
        elif found := re.fullmatch(r"/gitlab/projects/([^/]+)/merge_requests", path):
            self._expect(found[1] == "team%2Fproject", "the project must be one quoted segment")
            self._gitlab(query, body)
        elif re.fullmatch(r"/gitea/repos/team/project/pulls", path):
            self._gitea(query, body)
        elif found := _ONE_PULL.fullmatch(path):
            self._one(found[1], int(found[2]), merges=bool(found[3]), body=body)
        elif found := _CHECKS.fullmatch(path):
            self._checks(found[1], found[2])
        else:
            self._json(404, {"message": "Not Found"})

    def _is_known(self, forge: str) -> bool:
        header, value = {
            "github": ("authorization", f"Bearer {TOKEN}"),
            "gitlab": ("private-token", TOKEN),
            "gitea": ("authorization", f"token {TOKEN}"),
        }[forge]
        return self.headers.get(header) == value

    def _one(self, forge: str, number: int, *, merges: bool, body: bytes) -> None:
        pull = next((pull for pull in self.state.pulls if pull["number"] == number), None)
        if not self._is_known(forge):
            self._json(401, {"message": "Bad credentials"})
        elif pull is None:
            self._json(404, {"message": "Not Found"})
        elif merges:
            self._expect(self.command == ("POST" if forge == "gitea" else "PUT"), "the method of a merge")
            refusal = self.state.merge_pull(pull)
            self._json(405 if refusal else 200, {"message": refusal} if refusal else {"merged": True})
        elif self.command != "GET":
            self._expect(self.command == ("PUT" if forge == "gitlab" else "PATCH"), "the method of a change")
            words = msgspec.json.decode(body, type=dict[str, str])
            text = "description" if forge == "gitlab" else "body"
            self._expect(set(words) <= {"title", text}, "what is changed")
            pull.update({{text: "body"}.get(name, name): value for name, value in words.items()})
            self._json(200, self._gitlab_view(pull) if forge == "gitlab" else self._github_view(pull))
        else:
            self._json(200, self._gitlab_view(pull) if forge == "gitlab" else self._github_view(pull))

    def _checks(self, commit: str, kind: str) -> None:
        pull = next((pull for pull in self.state.pulls if commit == f"sha-{pull['number']}"), {})
        self._expect(bool(pull), "the commit whose checks are asked for")
        wanted = pull.get("checks", {})
        if kind == "check-runs":
            runs = [{"status": "completed", "conclusion": each} for each in wanted.get("runs", ())]
            self._json(200, {"total_count": len(runs), "check_runs": runs})
        else:
            known = wanted.get("status")
            self._json(200, {"state": known or "pending", "total_count": 1 if known else 0, "statuses": []})

    def _github(self, query: dict[str, str], body: bytes) -> None:
        self._expect(self.headers.get("accept") == "application/vnd.github+json", "accept")
        self._expect(self.headers.get("x-github-api-version") == "2022-11-28", "version")
        self._expect(bool(self.headers.get("user-agent")), "user-agent")
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._json(401, {"message": f"Bad credentials {self.headers.get('authorization')}"})
        elif self.command == "GET":
            self._expect(set(query) <= {"state", "head", "base", "sort", "direction", "per_page", "page"}, "query")
            owner, _, branch = query["head"].partition(":")
            self._expect(owner == "team", "head must be owner:branch")
            self._json(200, [self._github_view(pull) for pull in self.state.find_pulls(branch, query.get("base"))])
        else:
            asked = self._decoded(body, GitHubNew)
            pull = asked and self.state.open_pull(asked.head, asked.base, asked.title, asked.body, is_draft=asked.draft)
            if pull:
                self._json(201, self._github_view(pull))
            elif asked:
                errors = [
                    {"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for team."}
                ]
                self._json(422, {"message": "Validation Failed", "errors": errors})

    def _github_view(self, pull: dict[str, Any]) -> dict[str, Any]:
        return {
            "number": pull["number"],
            "html_url": f"https://github.example/team/project/pull/{pull['number']}",
            "state": "open" if pull.get("state", "open") == "open" else "closed",
            "merged": pull.get("state") == "merged",
            "draft": pull.get("draft", False),
            "mergeable": not pull.get("blocked"),
            "head": {"ref": pull["source"], "sha": f"sha-{pull['number']}"},
            "base": {"ref": pull["target"]},
        }

    def _gitlab(self, query: dict[str, str], body: bytes) -> None:
        if self.headers.get("private-token") != TOKEN:
            self._json(401, {"message": "401 Unauthorized"})
        elif self.command == "GET":
            self._expect(query.get("state") == "opened", "state")
            found = self.state.find_pulls(query.get("source_branch"), query.get("target_branch"))
            self._json(200, [self._gitlab_view(pull) for pull in found])
        else:
            asked = self._decoded(body, GitLabNew)
            pull = asked and self.state.open_pull(
                asked.source_branch, asked.target_branch, asked.title, asked.description
            )
            if pull:
                self._json(201, self._gitlab_view(pull))
            elif asked:
                self._json(409, {"message": ["Another open merge request already exists for this source branch: !1"]})

    def _gitlab_view(self, pull: dict[str, Any]) -> dict[str, Any]:
        address = f"https://gitlab.example/team/project/-/merge_requests/{pull['number']}"
        state = pull.get("state", "open")
        pipeline = {"head_pipeline": {"status": pull["pipeline"]}} if "pipeline" in pull else {"head_pipeline": None}
        return {
            "id": 4000 + pull["number"],
            "iid": pull["number"],
            "web_url": address,
            "state": "opened" if state == "open" else state,
            "draft": pull.get("draft", False),
            "source_branch": pull["source"],
            "target_branch": pull["target"],
            "detailed_merge_status": "not_approved" if pull.get("blocked") else "mergeable",
            **pipeline,
        }

    def _gitea(self, query: dict[str, str], body: bytes) -> None:
        if self.headers.get("authorization") != f"token {TOKEN}":
            self._json(401, {"message": "token is required"})
        elif self.command == "GET":
            self._expect(set(query) <= {"state", "sort", "milestone", "labels", "page", "limit"}, "query")
            start = (int(query["page"]) - 1) * int(query["limit"])
            found = self.state.find_pulls(None, None)[start : start + int(query["limit"])]
            self._json(200, [self._github_view(pull) for pull in found])
        else:
            asked = self._decoded(body, GiteaNew)
            pull = asked and self.state.open_pull(asked.head, asked.base, asked.title, asked.body)
            if pull:
                self._json(201, self._github_view(pull))
            elif asked:
                self._json(409, {"message": "pull request already exists for these targets"})

    def _decoded(self, body: bytes, kind: type[Any]) -> Any:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            self.state.faults.append(str(error))
            self._json(422, {"message": str(error)})
            return None

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.state.faults.append(f"{self.command} {self.path}: {what}")

    def _fails(self, what: str) -> bool:
        """Do what the test ordered next: answer with a number, hang up, or do the work and hang up."""
        with self.state.lock:
            wanted = [failure for failure in self.state.failures if failure.startswith(what)]
            if not wanted or (wanted[0].endswith("after") and self.command != "POST"):
                return False
            self.state.failures.remove(wanted[0])
        if wanted[0].endswith("after"):
            self.wfile = _Nowhere()  # type: ignore[assignment]  # the work is done, the answer is lost
            self.close_connection = True
            return False
        if wanted[0].endswith("hang-up"):
            self.close_connection = True
            self.connection.close()
            return True
        self._send(int(wanted[0].rpartition(" ")[2]), b"{}", "application/json", {"retry-after": "1"})
        return True

    def _json(self, status: int, value: object) -> None:
        self._send(status, msgspec.json.encode(value), "application/json", {})

    def _send(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-type": kind, "content-length": str(len(body))}.items():
            if name.lower() != "content-length" or value == str(len(body)):
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is given
        return


class _Nowhere:
    def write(self, _: bytes) -> None:
        return

    def flush(self) -> None:
        return


@contextmanager
def running_forge(repositories: Path) -> Iterator[tuple[str, State]]:
    """A forge and its address."""
    state = State(repositories)
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
