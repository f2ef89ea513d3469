"""Three followers on machines of their own that reach nobody but the server; run by test_fleet_machines, alone.

Each has a real sshd. Prints what was seen as JSON.
"""

import json
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from tests.support.forking import OSTLER
from tests.support.network import SWITCH, Machine, open_network
from tests.support.patience import wait_until
from tests.support.serving import clean_env
from tests.support.talk import Talk

_TOKEN = "fleet-token"
_BY_SSH = ("lin-01", "lin-02")
"""These are fenced by ssh through the proxy, the other one by the relay."""
_LINES = 200_000
_MUCH = {"lin-01": 200_000_000, "lin-02": 20_000_000}
_LINE = "a line of a test that says what it does, and how it went: passed"
_PRINT = f"""case $PWD in *lin-01*) count={_MUCH["lin-01"]};; *) count={_MUCH["lin-02"]};; esac
yes '{_LINE}' | head -c $count; echo"""


def main(folder: Path) -> dict[str, Any]:
    """What was seen."""
    open_network()
    machines = [Machine(f"lin-0{number}", 10 + number) for number in (1, 2, 3)]
    for machine in machines:  # they see the switch, and not each other
        subprocess.run(["bridge", "link", "set", "dev", f"c-{machine.name}", "isolated", "on"], check=True)
    with ExitStack() as stack:
        url = f"http://{SWITCH}:2468"
        env = clean_env(folder / "home", {"OSTLER_ENDPOINT": url, "OSTLER_TOKEN": _TOKEN, "OSTLER_INSECURE": "1"})
        server = _server(stack, folder, env)
        key = _key(folder / "key")
        with httpx.Client(base_url=f"{url}/api/v1", headers={"authorization": f"Bearer {_TOKEN}"}, timeout=60) as api:
            session = Talk(api).id
            followers = {each.name: _follower(stack, folder, env, each, key, session) for each in machines}
            wait_until(lambda: _all_follow(api, session), "all follow")
            return _seen(folder, env, key, session, machines, followers, server, stack, api)


def _seen(
    folder: Path,
    env: dict[str, str],
    key: Path,
    session: str,
    machines: list[Machine],
    followers: dict[str, "subprocess.Popen[bytes]"],
    server: "subprocess.Popen[bytes]",
    stack: ExitStack,
    api: httpx.Client,
) -> dict[str, Any]:
    seen: dict[str, Any] = {"alone": not _reaches(machines[0], machines[1].address)}
    tree = folder / "work"
    tree.mkdir()
    (tree / "file").write_text("of the leader")

    def leader(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [*OSTLER, "agent", *words]
        return subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, check=False, stdin=-3)

    fence = leader("sync-fence", session, "--json", "--ssh-option", f"IdentityFile {key}")
    seen["fence"] = {each["host"]: each["state"] for each in json.loads(fence.stdout or "[]")} or fence.stderr
    ran = leader("run-everywhere", session, "--", "cat", "file")
    seen["ran"] = sorted(line for line in ran.stdout.splitlines() if line.startswith("["))

    count = str(_LINES)
    running = subprocess.Popen(
        [*OSTLER, "agent", "run-everywhere", session, "--host", "lin-01", "--", "seq", "1", count],
        env=env,
        stdout=(folder / "lines").open("wb"),
        stderr=subprocess.STDOUT,
    )
    wait_until(lambda: (folder / "lines").stat().st_size > 10_000, "it prints")
    server.send_signal(signal.SIGKILL)
    server.wait()
    _server(stack, folder, env)
    running.wait(300)
    lines = [each[9:] for each in (folder / "lines").read_text().splitlines() if each.startswith("[lin-01]")]
    seen["all_lines"] = lines == [str(number) for number in range(1, _LINES + 1)]

    wait_until(lambda: _all_follow(api, session), "all follow again")
    seen["killed"] = _killed(folder, env, session, api, followers["lin-03"])
    seen["large"] = _large(folder, env, session, api, followers["lin-02"])
    seen["again"] = _again(api, session)
    return seen


def _killed(
    folder: Path, env: dict[str, str], session: str, api: httpx.Client, follower: "subprocess.Popen[bytes]"
) -> dict[str, int]:
    """How a run ends where, of which one follower is killed in the middle."""
    command = [
        *OSTLER,
        "agent",
        "run-everywhere",
        session,
        "--json",
        "--timeout",
        "20",
        "--",
        "sh",
        "-c",
        "echo up; sleep 5",
    ]
    running = subprocess.Popen(command, env=env, stdout=(folder / "killed").open("wb"))
    wait_until(lambda: _logged(api, session, "lin-03"), "it runs on lin-03")
    follower.kill()
    running.wait(300)
    return {each["host"]: each["code"] for each in json.loads((folder / "killed").read_text())}


def _large(
    folder: Path, env: dict[str, str], session: str, api: httpx.Client, slow: "subprocess.Popen[bytes]"
) -> dict[str, Any]:
    """A follower that prints 200 MB, beside one that stands still for a while in the middle of its own output."""
    words = ["agent", "run-everywhere", session, "--host", "lin-01", "--host", "lin-02", "--", "sh", "-c", _PRINT]
    output = folder / "much"
    running = subprocess.Popen([*OSTLER, *words], env=env, stdout=output.open("wb"), stderr=subprocess.STDOUT)
    wait_until(lambda: output.stat().st_size > 1_000_000, "it prints")
    slow.send_signal(signal.SIGSTOP)
    wait_until(lambda: output.stat().st_size > 20_000_000, "the other one prints on")
    slow.send_signal(signal.SIGCONT)
    code = running.wait(900)
    seen = {host: [0, 0] for host in _MUCH}
    with output.open("rb") as lines:
        for line in lines:
            host, _, text = line.rstrip(b"\n").partition(b" ")
            if (name := host.decode().strip("[]")) in seen and host.startswith(b"["):
                seen[name][0] += len(text) + 1
                seen[name][1] += text != _LINE.encode()
    last = api.get(f"/sessions/{session}").json()["lastSequence"]
    newer = {"types": "fleet.summary", "offset": last - 20}
    summary = api.get(f"/sessions/{session}/events", params=newer).json()
    newest = summary["events"][-1]["data"] if summary["events"] else {}
    return {
        "code": code,
        "printed": {host: count for host, (count, _) in seen.items()},
        "torn": {host: torn for host, (_, torn) in seen.items()},
        "summary": {name: newest.get(name) for name in ("passed", "failed")},
    }


def _again(api: httpx.Client, session: str) -> list[int]:
    """A request that is sent again, as if its answer had been lost: what was taken each time."""
    events = [{"type": "note", "message": f"note {number}", "seq": number} for number in range(1, 1001)]
    answers = [api.post(f"/sessions/{session}/events/ingest", json=events).json() for _ in range(3)]
    return [each["accepted"] for each in answers]


def _server(stack: ExitStack, folder: Path, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    options = ["--host", SWITCH, "--port", "2468", "--socks-port", "2469", "--token", _TOKEN]
    log = (folder / "server.log").open("ab")
    command = [*OSTLER, "serve", "--state-dir", str(folder / "state"), *options]
    process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    stack.callback(process.kill)
    wait_until(lambda: _answers(f"http://{SWITCH}:2468/healthz"), "the server answers")
    return process


def _answers(url: str) -> bool:
    try:
        return httpx.get(url).is_success
    except httpx.TransportError:
        return False


def _key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, stdin=-3)
    return path


def _follower(
    stack: ExitStack, folder: Path, env: dict[str, str], machine: Machine, key: Path, session: str
) -> "subprocess.Popen[bytes]":
    home = folder / machine.name
    home.mkdir()
    host_key = _key(home / "host")
    Path("/run/sshd").mkdir(exist_ok=True)
    (home / "sshd").write_text(
        f"ListenAddress 127.0.0.1:22\nHostKey {host_key}\nAuthorizedKeysFile {key}.pub\nStrictModes no\nUsePAM no\n"
        "PidFile none\nPermitRootLogin yes\n"
    )
    sshd = ["/usr/sbin/sshd", "-D", "-f", str(home / "sshd")]
    stack.callback(subprocess.Popen([*machine.prefix, *sshd], env={}).kill)
    copy = home / "copy"
    copy.mkdir()
    words = ["follower", session, "--name", machine.name, "--folder", str(copy)]
    words += ["--target", "ssh=127.0.0.1:22"] if machine.name in _BY_SSH else []
    log = (home / "log").open("wb")
    process = subprocess.Popen([*machine.prefix, *OSTLER, *words], env=env, stdout=log, stderr=log)
    stack.callback(process.kill)
    return process


def _all_follow(api: httpx.Client, session: str) -> bool:
    found = api.get("/connect/socks", params={"sessionId": session}).json()["names"]
    asked = {"sessionId": session, "hosts": ["lin-01", "lin-02", "lin-03"], "timeoutSec": 5}
    hosts = api.post("/connect/handshake", json=asked).json()["statuses"]
    return len(found) == len(_BY_SSH) and all(each["relay"] == "ok" for each in hosts.values())


def _logged(api: httpx.Client, session: str, host: str) -> bool:
    events = api.get(f"/sessions/{session}/events", params={"types": "host.log"}).json()["events"]
    return any(each["data"]["host"] == host and each["data"]["message"] == "up\n" for each in events)


def _reaches(machine: Machine, address: str) -> bool:
    code = f"import socket; socket.create_connection(({address!r}, 22), 2)"
    command = [*machine.prefix, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    socket.setdefaulttimeout(60)
    print(json.dumps(main(Path(sys.argv[1]))))
