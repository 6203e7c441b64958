"""The two lock files: requirements of pyproject.toml, hashes of files, licenses."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = "requirements.lock", "requirements-dev.lock"
ROOT = Path(__file__).resolve().parents[1]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
_EXTRAS: dict[str, list[str]] = _PROJECT["optional-dependencies"]


def locked(name: str) -> dict[str, list[Requirement]]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    found: dict[str, list[Requirement]] = {}
    for line in lines:
        if line and not line.startswith(("#", " ")):
            one = Requirement(line.removesuffix("\\"))
            found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def test_the_first_lock_has_what_numtok_and_its_baselines_need() -> None:
    first, more = map(locked, LOCKS)
    assert not first.keys() & more.keys()
    for text in (*_PROJECT["dependencies"], *_EXTRAS["baselines"]):
        assert canonicalize_name(Requirement(text).name) in first, text


def test_both_locks_together_fulfil_every_extra() -> None:
    both = locked(LOCKS[0]) | locked(LOCKS[1])
    for text in (*_PROJECT["dependencies"], *(one for each in _EXTRAS.values() for one in each)):
        needed = Requirement(text)
        for one in both[canonicalize_name(needed.name)]:
            (version,) = re.findall(r"==(\S+)", str(one.specifier))
            assert needed.specifier.contains(version, prereleases=True), text


@pytest.mark.parametrize("name", LOCKS)
def test_every_version_has_a_hash_without_which_pip_installs_nothing(name: str) -> None:
    text = (ROOT / name).read_text("utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            assert re.search(r" --hash=sha256:[0-9a-f]{64}\b", line), line[:60]


def test_the_page_of_licenses_lists_the_packages_of_both_locks() -> None:
    rows = re.findall(r"^\| .+ \| (.+) \|$", (ROOT / "docs/LICENSES.md").read_text("utf-8"), re.M)
    listed = [name for row in rows[1:] for name in row.split(", ")]
    both = [name for lock in LOCKS for name in locked(lock)]
    assert sorted(listed) == sorted(both)
