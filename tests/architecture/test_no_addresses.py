"""Nothing in the repository names a package registry or a folder of somebody's machine."""

import re

from tests.architecture.house import ROOT, tracked_files

_REGISTRY = re.compile(
    r"https?://[^\s\"'<>)]*(?:pypi\.|pythonhosted\.|npmjs\.|yarnpkg\.|registry\.)|\"resolved\": *\"http", re.IGNORECASE
)
_INDEX_OPTION = re.compile(r"^\s*--?(?:(?:extra-)?index-url|find-links|trusted-host)\b", re.MULTILINE)
_MACHINE = re.compile(r"(?<![\w.$}*-])/(?:work|root)/")


def _matches(pattern: re.Pattern[str], names: str = "") -> list[str]:
    files = [file for file in tracked_files() if file.is_relative_to(ROOT / names)]
    texts = ((file, file.read_bytes().decode(errors="replace")) for file in files)
    return [f"{file.relative_to(ROOT)}: {found[0]}" for file, text in texts for found in pattern.finditer(text)]


def test_no_file_names_a_package_registry() -> None:
    assert _matches(_REGISTRY) == []


def test_no_lock_says_where_to_download_from() -> None:
    assert _matches(_INDEX_OPTION, "requirements") == []


def test_no_file_names_a_folder_of_a_machine() -> None:
    assert _matches(_MACHINE) == []


def test_no_file_names_this_checkout() -> None:
    absolute = r"(?<![\w.-])"  # not a part of a relative path, such as src/ostler/ for a checkout at /ostler
    assert _matches(re.compile(absolute + re.escape(f"{ROOT}/"))) == []
