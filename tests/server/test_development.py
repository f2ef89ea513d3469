"""Variables from files beside a checkout count in development, and nowhere else."""

from pathlib import Path

import pytest

from ostler.base.development import development_files, with_files
from ostler.base.errors import SettingsError
from ostler.base.settings import Settings, load_settings

ROOT = Path(__file__).resolve().parents[2]


def loaded(folder: Path, **environ: str) -> Settings:
    given = {"HOME": str(folder), **environ}
    return load_settings(flags={}, environ=with_files(given, development_files(given, folder)))


def test_in_development_files_count_below_what_is_set(tmp_path: Path) -> None:
    (tmp_path / ".env.development").write_text("# ports\nOSTLER_PORT=1111\nOSTLER_HOST=127.0.0.2 # of mine\n")
    (tmp_path / ".env.development.local").write_text("export OSTLER_PORT='2222'\nOSTLER_LOG_LEVEL=debug\n")
    found = loaded(tmp_path, OSTLER_ENV="development", OSTLER_LOG_LEVEL="error")
    assert (found.port, found.host, found.log_level) == (2222, "127.0.0.2", "error")


@pytest.mark.parametrize("environ", [{}, {"OSTLER_ENV": "production"}, {"OSTLER_ENV": "Development"}], ids=str)
def test_anywhere_else_they_do_not(tmp_path: Path, environ: dict[str, str]) -> None:
    for name in (".env", ".env.development", ".env.development.local"):
        (tmp_path / name).write_text("OSTLER_PORT=1111\nwrong line\n")
    assert loaded(tmp_path, **environ).port == 2468


def test_a_key_of_several_lines_fits_into_one(tmp_path: Path) -> None:
    (tmp_path / ".env.development").write_text('OSTLER_TOKEN="one\\ntwo"\n')
    assert loaded(tmp_path, OSTLER_ENV="development").token == "one\ntwo"


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env.development").write_text("OSTLER_PORT=1\nOSTLER_HOST\n")
    with pytest.raises(SettingsError, match=r"\.env\.development, line 2"):
        loaded(tmp_path, OSTLER_ENV="development")


def test_the_example_is_a_file_that_can_be_read(tmp_path: Path) -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    wanted = [line.removeprefix("# ") for line in lines if "OSTLER_" in line and "=" in line and "make" not in line]
    filled = [f"{line}x" if line.endswith("=") else line for line in wanted]
    (tmp_path / ".env.development.local").write_text("\n".join(filled))
    found = loaded(tmp_path, OSTLER_ENV="development")
    assert (found.port, found.oidc_client_id, found.github_claims is not None) == (2468, "ostler", True)
