"""Settings: flags beat variables beat the config file beat defaults, and a bad one is named in one line."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ostler.base.errors import SettingsError
from ostler.base.settings import ENV_PREFIX, Settings, load_settings, setting_help
from tests.support.patience import wait_until
from tests.support.serving import OSTLER, clean_env, running_server

NAMES = [field.name for field in msgspec.structs.fields(Settings)]
DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Settings)}


def _load(home: Path, flags: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None) -> Settings:
    return load_settings(flags=flags or {}, environ={"HOME": str(home), **(env or {})})


def _write_config(home: Path, text: str) -> Path:
    file = home / ".config" / "ostler" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def _serve(home: Path, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a server that should not start: exit code, stdout, stderr."""
    command = [*OSTLER, "serve", "--state-dir", str(home / "state"), *arguments]
    ended = subprocess.run(
        command, env=clean_env(home, env), capture_output=True, text=True, timeout=60, check=False, cwd=home
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_with_nothing_given_every_setting_has_its_default(tmp_path: Path) -> None:
    expected = {**DEFAULTS, "state_dir": tmp_path / ".local" / "share" / "ostler"}
    assert msgspec.structs.asdict(_load(tmp_path)) == expected


def test_the_file_beats_the_default(tmp_path: Path) -> None:
    _write_config(tmp_path, 'port = 1111\ncors_origins = ["http://a.example", "http://b.example"]\n')
    found = _load(tmp_path)
    assert (found.port, found.cors_origins) == (1111, ("http://a.example", "http://b.example"))


def test_a_variable_beats_the_file(tmp_path: Path) -> None:
    _write_config(tmp_path, "port = 1111\nheartbeat_seconds = 5\n")
    found = _load(tmp_path, env={"OSTLER_PORT": "2222"})
    assert (found.port, found.heartbeat_seconds) == (2222, 5.0)


def test_a_flag_beats_a_variable(tmp_path: Path) -> None:
    _write_config(tmp_path, "port = 1111\n")
    assert _load(tmp_path, flags={"port": "3333"}, env={"OSTLER_PORT": "2222"}).port == 3333


def test_an_empty_variable_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    assert _load(tmp_path, env={"OSTLER_PORT": "", "OSTLER_TOKEN": ""}) == _load(tmp_path)


@pytest.mark.parametrize(
    ("value", "expected"), [("http://a.example,http://b.example", ("http://a.example", "http://b.example")), (",", ())]
)
def test_a_list_in_a_variable_is_separated_by_commas(tmp_path: Path, value: str, expected: tuple[str, ...]) -> None:
    assert _load(tmp_path, env={"OSTLER_CORS_ORIGINS": value}).cors_origins == expected


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("true", True), ("0", False), ("false", False)])
def test_a_switch_in_a_variable_is_a_word_or_a_digit(tmp_path: Path, value: str, expected: bool) -> None:
    assert _load(tmp_path, env={"OSTLER_NO_TOKEN": value}).no_token is expected


@pytest.mark.parametrize("place", ["flag", "variable", "xdg"])
def test_the_config_file_can_be_elsewhere(tmp_path: Path, place: str) -> None:
    elsewhere = _write_config(tmp_path / "elsewhere", "port = 4444\n")
    flags = {"config": str(elsewhere)} if place == "flag" else {}
    names = {"variable": {"OSTLER_CONFIG": str(elsewhere)}, "xdg": {"XDG_CONFIG_HOME": str(elsewhere.parents[1])}}
    assert _load(tmp_path, flags=flags, env=names.get(place)).port == 4444


def test_the_state_folder_follows_the_data_folder(tmp_path: Path) -> None:
    assert _load(tmp_path, env={"XDG_DATA_HOME": "/data"}).state_dir == Path("/data/ostler")


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_description_that_is_a_sentence(name: str) -> None:
    assert setting_help()[name].endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_a_flag_with_its_variable_in_the_help(name: str, serve_help: str) -> None:
    flag = "--" + name.replace("_", "-")
    if isinstance(DEFAULTS[name], tuple):
        flag = re.sub("ies$", "y", flag) if flag.endswith("ies") else re.sub("(?<=ss)es$|s$", "", flag)
    assert f" {flag} " in serve_help
    assert f"[{ENV_PREFIX}{name.upper()}]" in serve_help


@pytest.fixture(scope="module")
def serve_help(tmp_path_factory: pytest.TempPathFactory) -> str:
    command = [*OSTLER, "serve", "--help"]
    shown = subprocess.run(
        command, env=clean_env(tmp_path_factory.mktemp("help")), capture_output=True, text=True, timeout=60, check=True
    )
    return " ".join(shown.stdout.split())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "http"),
        ("port", "65536"),
        ("port", "-1"),
        ("max_body_bytes", "1"),
        ("request_timeout_seconds", "0"),
        ("heartbeat_seconds", "nan"),
        ("turn_timeout_seconds", "-1"),
        ("database_sync", "sometimes"),
        ("log_level", "loud"),
        ("no_token", "perhaps"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_setting(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, env={ENV_PREFIX + name.upper(): value})
    assert str(caught.value).startswith(f"Setting {name}={value}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = true", "port=True"),
        ('state_dir = 5\nport = "x"', "state_dir=5"),
        ("cors_origins = [1]", "cors_origins=[1]"),
        ('colour = "blue"', "colour=blue"),
        ("[server]\nport = 1", "server={'port': 1}"),
    ],
)
def test_a_bad_line_of_the_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    _write_config(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path)
    assert str(caught.value).startswith(f"Setting {told}: ")


def test_a_choice_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Setting log_format=xml: choose json or text\."):
        _load(tmp_path, env={"OSTLER_LOG_FORMAT": "xml"})


def test_default_instructions_that_are_too_long_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Setting default_instructions=65537 bytes: must not be longer than 65536"):
        _load(tmp_path, env={"OSTLER_DEFAULT_INSTRUCTIONS": "x" * 65537})


def test_an_unknown_key_of_the_file_is_called_unknown(tmp_path: Path) -> None:
    _write_config(tmp_path, 'colour = "blue"')
    with pytest.raises(SettingsError, match="there is no such setting"):
        _load(tmp_path)


@pytest.mark.parametrize("content", [b"port = ", b"\xff", None], ids=["not TOML", "not text", "not there"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "settings.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, flags={"config": str(file)})
    assert str(caught.value).startswith(f"Setting config={file}: ")


@pytest.mark.parametrize(
    ("arguments", "env", "told"),
    [
        (("--port", "http"), {}, "Setting port=http: "),
        ((), {"OSTLER_LOG_LEVEL": "loud"}, "Setting log_level=loud: "),
        (("--config", "nowhere.toml"), {}, "Setting config=nowhere.toml: "),
        (("--colour", "blue"), {}, "No such option"),
    ],
)
def test_a_server_with_a_bad_setting_says_so_in_one_line_and_does_not_start(
    tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str], told: str
) -> None:
    code, stdout, stderr = _serve(tmp_path, *arguments, env=env)
    assert (code, stdout) == (2, "")
    (line,) = stderr.splitlines()
    assert line.startswith(f"Error: {told}")
    assert not (tmp_path / "state").exists()


def test_a_server_whose_port_is_taken_says_so_in_one_line(tmp_path: Path) -> None:
    with running_server(tmp_path / "first") as server:
        code, _, stderr = _serve(tmp_path, "--port", str(server.port))
    assert code == 1
    (line,) = stderr.splitlines()
    assert line.startswith(f"Error: Setting port={server.port}: cannot listen")


def test_a_server_takes_settings_from_all_three_places(tmp_path: Path) -> None:
    config = _write_config(tmp_path / "elsewhere", 'log_format = "json"\nlog_level = "error"\n')
    env = {"OSTLER_CONFIG": str(config), "OSTLER_LOG_LEVEL": "info"}
    with running_server(tmp_path / "state", "--token", "t", env=env) as server:
        wait_until(lambda: "a token is needed" in server.stdout.read_text(), what="the server to ask for the token")
    assert '"event": "server.stopping"' in server.stderr.read_text()
