"""What changed between two versions of an agent is told by kinds of frames and their fields."""

import json
from pathlib import Path
from typing import Any

import pytest

from ostler.agents.adapter import Adapter
from ostler.agents.pi import VERSION
from ostler.agents.sources import Npm
from tools import agents_drift
from tools.agents_drift import Version, drift, told


def recorded(folder: Path, case: str, *frames: dict[str, Any]) -> Path:
    lines = [{"header": {}}, *({"dir": "out", "data": frame} for frame in frames)]
    folder.mkdir(exist_ok=True)
    (folder / f"{case}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_fields_and_kinds_that_are_new_or_gone_are_told(tmp_path: Path) -> None:
    old = recorded(tmp_path / "1", "text", {"type": "said", "parts": [{"text": "x"}]}, {"type": "ended"})
    new = recorded(tmp_path / "2", "text", {"event": {"type": "said", "parts": [{"words": 1}]}}, {"type": "settled"})
    recorded(new, "only-here", {"type": "moon"})
    found = drift(old, new)
    assert [*told(found.new, "new"), *told(found.gone, "gone")] == [
        "  new  said: parts[].words:int",
        "  new  settled (all of it)",
        "  gone ended (all of it)",
        "  gone said: parts[].text:str",
    ]
    assert (drift(old, old).new, drift(old, old).gone) == ({}, {})


def test_the_newest_version_that_is_the_pinned_one_needs_no_comparison(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agents_drift, "newest", lambda source: next(iter(source.packages.values())))
    assert agents_drift.main([]) == 0
    told_lines = capsys.readouterr().out.splitlines()
    assert len(told_lines) >= 8
    assert all(line.endswith("is the newest") for line in told_lines)


def test_a_version_can_be_named_and_what_was_recorded_is_not_recorded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    examined: list[str] = []

    def examine(_adapter: Adapter, _source: Npm, version: str) -> Version:
        examined.append(version)
        return Version(number=version, failed=(), folder=recorded(tmp_path / version, "text", {"type": version}))

    monkeypatch.setattr(agents_drift, "WORK", tmp_path)
    monkeypatch.setattr(agents_drift, "examined", examine)
    assert agents_drift.main(["pi@9.0.0"]) == 0
    earlier = tmp_path / "recorded" / "pi" / VERSION
    earlier.mkdir(parents=True)
    (earlier / "whole").touch()
    assert agents_drift.main(["pi@9.0.0"]) == 0
    assert examined == [VERSION, "9.0.0", "9.0.0"]
    assert capsys.readouterr().out.splitlines()[:2] == [f"pi: {VERSION} -> 9.0.0", "  new  9.0.0 (all of it)"]


def test_an_agent_that_no_registry_has_is_refused_and_a_registry_that_is_away_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert agents_drift.main(["nobody"]) == 2
    assert "'nobody' is no agent of the npm registry" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert agents_drift.main(["pi"]) == 1
    assert "pi: could not be compared" in capsys.readouterr().out


def test_the_registry_is_asked_for_the_package_of_this_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "npm"
    program.write_text('#!/bin/sh\necho "$2"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(agents_drift, "this_platform", lambda: "linux-x64-musl")
    source = Npm(packages={"agent-{platform}": "1.0.0"}, program="x", platforms={"linux-x64-musl": "linux-x64"})
    assert agents_drift.newest(source) == "agent-linux-x64"
