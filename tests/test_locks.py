"""requirements.lock and requirements-dev.lock: what each holds of pyproject.toml."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
_EXTRAS: dict[str, list[str]] = _PROJECT["optional-dependencies"]


def locked(name: str) -> dict[str, list[Requirement]]:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    found: dict[str, list[Requirement]] = {}
    for line in lines:
        if line and not line.startswith("#"):
            one = Requirement(line)
            found.setdefault(canonicalize_name(one.name), []).append(one)
    return found


def test_the_first_lock_has_what_numtok_and_its_baselines_need() -> None:
    first, more = locked("requirements.lock"), locked("requirements-dev.lock")
    assert not first.keys() & more.keys()
    for text in (*_PROJECT["dependencies"], *_EXTRAS["baselines"]):
        assert canonicalize_name(Requirement(text).name) in first, text


def test_both_locks_together_fulfil_every_extra() -> None:
    both = locked("requirements.lock") | locked("requirements-dev.lock")
    for text in (*_PROJECT["dependencies"], *(one for each in _EXTRAS.values() for one in each)):
        needed = Requirement(text)
        for one in both[canonicalize_name(needed.name)]:
            (version,) = re.findall(r"==(\S+)", str(one.specifier))
            assert needed.specifier.contains(version, prereleases=True), text
