"""``numtok doctor`` names each problem with a remedy, and ends with exit code 1."""

import json
from importlib import metadata
from pathlib import Path

import pytest

from numtok import kernel_files
from numtok.stages import doctor
from tests.cases import case
from tests.shell import Shell


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what would be compiled; compiling takes a minute."""
    addresses: list[str] = []
    monkeypatch.setattr(doctor, "_compile", addresses.extend)
    return addresses


def statuses(numtok: Shell, code: int, *options: str) -> dict[str, dict[str, str]]:
    ran = numtok(*options, "doctor", "--json")
    assert ran.code == code
    return {check["name"]: check for check in json.loads(ran.out)["checks"]}


def test_all_is_well_here(numtok: Shell) -> None:
    checks = statuses(numtok, 0)
    assert {"python", "packages", "kernels", "cpu", "numtok.toml", "plugins", "store"} <= {*checks}
    ran = numtok("doctor")
    assert ran.code == 0 and len(ran.out.splitlines()) == len(checks)


def test_what_is_missing_or_too_old_is_named(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    requires = ["numpy>=999", "absent-package", 'absent-too>=1; extra == "weather"']
    monkeypatch.setattr(metadata, "requires", lambda name: requires)
    checks = statuses(numtok, 1)
    assert checks["packages"]["status"] == "failed"
    assert all(name in checks["packages"]["finding"] for name in ("numpy>=999", "absent-package"))
    assert checks["extra weather"]["status"] == "missing"
    assert "numtok[weather]" in checks["extra weather"]["remedy"]


def test_an_invalid_numtok_toml_is_a_check_that_fails(numtok: Shell) -> None:
    for text, told in (
        ("store = 3", "store"),
        ("[train]\nstep = 3", "'steps'"),
        ("[train]\nsteps = 'x'", "must be an integer"),
        ("[train]\nlr = 5", "below 1"),
        ('[plugins]\nfolders = ["absent"]', "'absent'"),
    ):
        with case(text):
            Path("numtok.toml").write_text(f"{text}\n")
            check = statuses(numtok, 1)["numtok.toml"]
            assert check["status"] == "failed" and told in check["finding"]


def test_an_invalid_number_of_threads_is_a_check_that_fails(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMTOK_THREADS", "many")
    assert "NUMTOK_THREADS" in statuses(numtok, 1)["cpu"]["finding"]


def test_a_plugin_that_cannot_be_imported_is_named(numtok: Shell, plugins: Path) -> None:
    (plugins / "schemes" / "broken_one.py").write_text("import absent_module\n")
    Path("numtok.toml").write_text(f'[plugins]\nfolders = ["{plugins}"]\n')
    found = statuses(numtok, 1)["plugins"]
    assert found["status"] == "failed" and "broken-one" in found["finding"]


def test_a_store_that_is_no_folder_or_has_a_damaged_manifest_fails(numtok: Shell) -> None:
    Path("file").write_text("")
    assert statuses(numtok, 1, "--store", "file")["store"]["status"] == "failed"
    damaged = Path("artifacts/data/a/0123456789abcdef")
    damaged.mkdir(parents=True)
    (damaged / "manifest.json").write_text("{}")
    assert "manifest.json" in statuses(numtok, 1)["store"]["finding"]


def test_kernels_that_are_not_compiled_are(
    numtok: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[str]
) -> None:
    monkeypatch.setattr(kernel_files, "folder", lambda: tmp_path)
    assert statuses(numtok, 0)["kernels"]["status"] == "ok"
    assert "numtok.numerals.scan._scan" in compiled
    monkeypatch.setattr(kernel_files, "folder", lambda: None)
    assert "NUMBA_CACHE_DIR" in statuses(numtok, 1)["kernels"]["remedy"]
