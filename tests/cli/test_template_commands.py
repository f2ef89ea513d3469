"""`ostler templates`, and sessions and tasks that begin with one."""

import json
import subprocess
from pathlib import Path

from tests.cli.conftest import Ostler

MANIFEST = 'name = "cli"\nprompt = "mock: say Hello {{ inputs.who }}{{ inputs.times }}"\n'
VARIABLES = "[variables.who]\n[variables.times]\ntype = 'integer'\ndefault = 3\n"


def _folder(path: Path) -> Path:
    path.mkdir()
    (path / "template.toml").write_text(MANIFEST + VARIABLES)
    (path / "agent.toml").write_text('agent = "mock"\n')
    (path / "logo.bin").write_bytes(b"\xff\x00\r\n")
    script = path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return path


def _tree(path: Path) -> dict[str, tuple[bytes, bool]]:
    found = (each for each in path.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(path)): (each.read_bytes(), bool(each.stat().st_mode & 0o100)) for each in found}


def test_a_folder_is_pushed_used_and_written_again(ostler: Ostler, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "agent")
    pushed = ostler("templates", "push", str(folder), "--tag", "stable")
    assert pushed.stdout.startswith("Pushed cli@sha256:"), pushed.stderr
    assert "Wrote 4 files" in ostler("templates", "export", "cli", str(tmp_path / "copy")).stdout
    assert _tree(tmp_path / "copy") == _tree(folder)
    assert "not empty" in ostler("templates", "export", "cli", str(tmp_path / "copy")).stderr
    given = ("--template", "cli@stable", "--input", "who=Ann", "--input", "times=7")
    session = json.loads(ostler("sessions", "create", *given, "--json").stdout)
    assert session["labels"]["template"].startswith("cli@sha256:")
    task = ostler("task", "--template", "cli", *given[2:], "--wait").stdout.strip()
    assert "Hello Ann7" in ostler("sessions", "messages", task).stdout
    assert "--template that names one" in ostler("sessions", "create").stderr


def test_a_template_is_run_with_its_own_prompt_or_another_one(ostler: Ostler, tmp_path: Path) -> None:
    assert ostler("templates", "push", str(_folder(tmp_path / "agent"))).returncode == 0
    ran = ostler("run", "--empty", "--template", "cli", "--input", "who=Ann")
    assert "Hello Ann3" in ran.stdout, ran.stderr
    other = ostler("run", "--empty", "--template", "cli@latest", "--input", "who=Ann", "mock: say Not that.")
    assert "Not that." in other.stdout
    mistyped = ostler("run", "--empty", "--template", "cli", "--input", "who=Ann", "mocks")
    assert (mistyped.returncode, "Did you mean 'mock'?" in mistyped.stderr) == (2, True), mistyped.stderr
    assert "inputs.nobody" in ostler("run", "--empty", "--template", "cli", "--input", "nobody=x").stderr
    assert "name it with --template" in ostler("run", "--empty", "--input", "who=Ann", "mock", "hi").stderr
    (tmp_path / "agent" / "template.toml").write_text('name = "silent"')
    assert ostler("templates", "push", str(tmp_path / "agent")).returncode == 0
    assert "does not say what to do" in ostler("run", "--empty", "--template", "silent").stderr
    assert "no template 'nobody'" in ostler("run", "--empty", "--template", "nobody").stderr


def test_a_commit_is_pushed_as_git_has_it(ostler: Ostler, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "agent")
    (folder / "template.toml").write_text('name = "committed"')
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        subprocess.run([*git, *words], check=True)
    (folder / "template.toml").write_text("broken")
    refused = ostler("templates", "push", str(folder), "--check")
    assert "template.toml is not TOML" in refused.stderr
    pushed = json.loads(ostler("templates", "push", str(folder), "--commit", "HEAD", "--json").stdout)
    assert (pushed["files"], len(pushed["commit"])) == (4, 40)
    assert "git says" in ostler("templates", "push", str(folder), "--commit", "nowhere").stderr
