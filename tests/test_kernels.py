"""Where compiled kernels are kept: found again, private, and never a reason to fail.

Permission bits do not bind root, so a folder that cannot be made is here a path through a file,
and a folder of another user one whose owner's id is not ours.
"""

import enum
import errno
import importlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numba.core.caching
import numba.core.config
import numpy as np
import pytest
from numba import int64
from numba.core.errors import NumbaError

from numtok import kernels
from tests.cases import each
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = "/dev/null/nowhere"
NOTE = "numtok: note: compiled kernels cannot be cached"

# With the kernel that is compiled soonest.
PROBE = """
import json, sys
from numba.core import event

def found():
    from numtok.data.reading.checksum import Checksum
    return list(Checksum().over(b"[1,-2.5] utf8"))

if __name__ == "__main__":
    with event.install_recorder("numba:compile") as recorder:
        here = found()
    from numtok.data.reading.checksum import _sums
    stats = _sums.stats
    child = None
    if "--spawn" in sys.argv:
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            child = pool.apply(found)
    print(json.dumps({
        "found": here, "child": child, "folder": stats.cache_path,
        "hits": sum(stats.cache_hits.values()), "misses": sum(stats.cache_misses.values()),
        "compiled": len(recorder.buffer),
    }))
"""
WORDS = [int.from_bytes(part, "little") for part in (b"[1,-2.5]", b" utf8")]
FOUND = [13, sum(WORDS), WORDS[0] + 2 * WORDS[1]]  # below 2^64


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    script = tmp_path_factory.mktemp("probe") / "probe.py"
    script.write_text(PROBE)
    return script


def start(script: Path, *options: str, **environment: str) -> "subprocess.Popen[str]":
    """A fresh Python that takes a checksum; where its kernels may go is up to ``environment``."""
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR", "HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.Popen(
        [sys.executable, "-W", "error", str(script), *options],
        env=inherited | {"PYTHONPATH": str(ROOT), "HOME": NOWHERE} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[dict[str, Any], str]:
    """What the probe reports, and what it said on stderr."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    report: dict[str, Any] = json.loads(output)
    assert report["found"] == FOUND
    return report, errors


def files_in(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file with its time of change and its bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# --- whole processes ---------------------------------------------------------------------------


@pytest.mark.integration
def test_the_second_start_loads_from_the_chosen_folder_and_compiles_nothing(
    probe: Path, tmp_path: Path
) -> None:
    chosen = tmp_path / "made" / "here"
    report, errors = finish(start(probe, NUMBA_CACHE_DIR=str(chosen)))
    assert errors == ""
    assert (report["hits"], report["misses"]) == (0, 1)
    assert report["compiled"] > 0
    assert Path(report["folder"]).is_relative_to(chosen)
    kept = files_in(chosen)
    assert {path.suffix for path in kept} == {".nbi", ".nbc"}

    report, errors = finish(start(probe, NUMBA_CACHE_DIR=str(chosen)))
    assert errors == ""
    assert (report["hits"], report["misses"], report["compiled"]) == (1, 0, 0)
    assert files_in(chosen) == kept


@pytest.mark.slow
def test_with_nowhere_to_keep_kernels_one_note_is_printed_and_all_else_works(
    probe: Path, tmp_path: Path, says: Says
) -> None:
    in_the_way = tmp_path / f"numtok-{os.getuid()}"
    in_the_way.touch()
    report, errors = finish(
        start(probe, "--spawn", NUMBA_CACHE_DIR=f"{NOWHERE}/a", TMPDIR=str(tmp_path))
    )
    assert report["child"] == FOUND
    assert report["folder"] is None
    says(errors, f"{NOWHERE}/a, {NOWHERE}/.cache/numtok, {in_the_way}", "Set NUMBA_CACHE_DIR")
    assert errors.startswith(NOTE) and errors.count("\n") == 1
    assert list(tmp_path.iterdir()) == [in_the_way]


@pytest.mark.slow
def test_processes_that_start_together_in_a_fresh_folder_all_work(
    probe: Path, tmp_path: Path
) -> None:
    chosen = tmp_path / "a" / "b"
    together = [start(probe, NUMBA_CACHE_DIR=str(chosen)) for _ in range(6)]
    assert [finish(process)[1] for process in together] == [""] * 6
    report, _ = finish(start(probe, NUMBA_CACHE_DIR=str(chosen)))
    assert (report["hits"], report["misses"]) == (1, 0)
    assert {path.suffix for path in files_in(chosen)} == {".nbi", ".nbc"}


@pytest.mark.slow
def test_every_kernel_of_numtok_is_loaded_at_the_second_start(tmp_path: Path) -> None:
    script = tmp_path / "every.py"
    script.write_text(
        "import importlib, json, sys\n"
        "from numba.core.registry import CPUDispatcher\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "every = {f'{f.__module__}.{f.__name__}': f for name in sys.argv[1:]\n"
        "         for f in vars(sys.modules[name]).values() if isinstance(f, CPUDispatcher)}\n"
        "stats = {name: f.stats for name, f in every.items() if f.stats.cache_path}\n"
        f"print(json.dumps({{'found': {FOUND},\n"
        "    'hits': sorted(n for n, s in stats.items() if s.cache_hits),\n"
        "    'misses': sorted(n for n, s in stats.items() if s.cache_misses)}))\n"
    )
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files_with_kernels()
    ]
    first, _ = finish(start(script, *modules, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    second, _ = finish(start(script, *modules, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    assert "numtok.numerals.scan._scan" in first["misses"]
    assert "numtok.numerals.decimals._read" in first["misses"]
    assert second["hits"] == first["misses"]
    assert second["misses"] == []


@pytest.mark.integration
def test_a_disabled_compiler_is_refused_in_one_line(tmp_path: Path, says: Says) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "1 of 2"}\n')
    ran = subprocess.run(
        [sys.executable, "-m", "numtok", "encode", "--scheme", "p10", "a.jsonl"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    says(ran.stderr, "NUMBA_DISABLE_JIT=1", "Unset")


# --- which folder ------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing chosen; the home, cache and temporary folders are in ``tmp_path``."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def chosen_place() -> Path | None:
    folder = kernels._choose()
    return None if folder is None else folder.parent


def test_the_chosen_folder_comes_first_then_the_user_cache_then_home(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen_place() == places / "home" / ".cache" / "numtok"
    monkeypatch.setenv("XDG_CACHE_HOME", str(places / "xdg"))
    assert chosen_place() == places / "xdg" / "numtok"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(places / "mine"))
    assert chosen_place() == places / "mine"


def test_a_folder_that_others_can_write_to_is_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = places / "shared"
    shared.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(shared))
    for mode in (0o770, 0o720, 0o702, 0o777, 0o1777):
        shared.chmod(mode)
        assert chosen_place() == places / "home" / ".cache" / "numtok", mode
        assert list(shared.iterdir()) == [], mode


def test_a_folder_inside_one_that_anyone_can_rename_in_is_refused(places: Path) -> None:
    shared = places / "shared"
    folder = shared / "deep" / "mine"
    folder.mkdir(parents=True, mode=0o700)
    shared.chmod(0o777)
    assert kernels._private(folder) is None
    shared.chmod(0o1777)  # as /tmp
    assert kernels._private(folder) == folder


def test_a_folder_or_link_of_another_user_is_refused_and_our_own_link_is_followed(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link = places / "mine", places / "link"
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    assert kernels._private(folder) == kernels._private(link) == folder
    us, values = os.getuid(), [*link.lstat()]
    values[4] = us + 1
    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", lambda path: os.stat_result(values))
        assert kernels._private(link) is None
    monkeypatch.setattr(os, "getuid", lambda: us + 1)
    assert kernels._private(folder) is None


def test_what_cannot_be_a_folder_is_refused_without_an_error(places: Path) -> None:
    (places / "file").touch()
    (places / "dangling").symlink_to(places / "absent")
    (places / "circle").symlink_to(places / "circle")
    for path in ("file", "file/below", "dangling", "circle", "circle/below"):
        assert kernels._private(places / path) is None
    assert not (places / "absent").exists()


def test_trying_a_folder_leaves_nothing_in_it_and_a_read_only_one_is_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernels._private(places / "mine") == places / "mine"
    assert list((places / "mine").iterdir()) == []
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert kernels._private(places / "mine") is None


def test_without_home_and_temporary_directory_there_is_no_cache_and_no_error(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: Exception) -> Callable[..., Path]:
        def raised(*ignored: object) -> Path:
            raise error

        return raised

    monkeypatch.setattr(Path, "home", fail(RuntimeError("no home directory")))
    private = places / f"numtok-{os.getuid()}"
    assert chosen_place() == private
    assert private.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(tempfile, "gettempdir", fail(FileNotFoundError("no temporary directory")))
    assert kernels._choose() is None
    assert capsys.readouterr().err.startswith(NOTE)


def test_a_spawned_worker_leaves_the_note_to_its_parent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    kernels._note("here")
    says(capsys.readouterr().err, NOTE, "here", "Set NUMBA_CACHE_DIR")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a process")
    kernels._note("here")
    assert capsys.readouterr().err == ""


# --- one kernel --------------------------------------------------------------------------------


def twice(x: int) -> int:
    return 2 * x


def thrice(x: int) -> int:
    return 3 * x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the cache of this process."""
    monkeypatch.setattr(kernels, "_folder", tmp_path)
    return tmp_path


def compiled(function: Callable[[int], int]) -> Any:
    return kernels.kernel(int64(int64))(function)


def loaded(dispatcher: Any) -> bool:
    """True if it came from the cache, False if it was compiled and put there."""
    hits, misses = (
        sum(counts.values())
        for counts in (dispatcher.stats.cache_hits, dispatcher.stats.cache_misses)
    )
    assert hits + misses == 1
    return bool(hits)


@pytest.mark.integration
def test_a_damaged_file_of_the_cache_is_written_again_as_is_a_lost_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert not loaded(compiled(twice))
        assert loaded(compiled(twice))
        shutil.rmtree(folder)
    assert not loaded(compiled(twice))
    for suffix, damage in product([".nbi", ".nbc"], [b"", b"\0" * 4096, b"half"]):
        (path,) = folder.rglob(f"*{suffix}")
        path.write_bytes(path.read_bytes()[:-40] if damage == b"half" else damage)
        again = compiled(twice)
        assert again(21) == 42, (suffix, damage)
        assert not loaded(again), (suffix, damage)
        assert loaded(compiled(twice)), (suffix, damage)
        assert capsys.readouterr().err == "", (suffix, damage)


def test_a_full_disk_costs_the_cache_and_one_note_but_not_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    def full(*ignored: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "_save_data", full)
    assert compiled(twice)(21) == 42
    assert compiled(thrice)(14) == 42
    told = capsys.readouterr().err
    says(told, NOTE, str(folder), "Set NUMBA_CACHE_DIR")
    assert told.count("\n") == 1


def test_a_fault_of_the_function_itself_is_raised_without_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(x: int) -> int:
        return x + "one"  # type: ignore[operator]

    with pytest.raises(NumbaError):
        compiled(wrong)
    assert capsys.readouterr().err == ""
    assert kernels._folder == folder


def test_kernels_go_to_our_folder_and_those_of_other_packages_do_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = numba.core.config
    before = config.CACHE_DIR
    assert Path(compiled(twice).stats.cache_path).is_relative_to(folder)
    assert before == config.CACHE_DIR
    monkeypatch.setenv("NUMBA_OF_SOMEONE_ELSE", "1")  # numba reads all its settings again
    assert Path(compiled(thrice).stats.cache_path).is_relative_to(folder)
    assert Path(compiled(twice).stats.cache_path).is_relative_to(folder)
    assert before == config.CACHE_DIR


# --- what the cache is keyed by ----------------------------------------------------------------


def files_with_kernels() -> list[Path]:
    return [
        path
        for path in sorted((ROOT / "numtok").rglob("*.py"))
        if b"from numtok.kernels import" in path.read_bytes()
    ]


def adding(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[int], int]:
    """The kernel of one file, which adds a constant of another, as a fresh process imports it."""
    (folder / "constant.py").write_text(f"STEP = {step}\n")
    (folder / "adder.py").write_text(
        "from constant import STEP\n\n\ndef add(x):\n    return x + STEP\n"
    )
    os.utime(folder / "adder.py", (0, 0))
    monkeypatch.syspath_prepend(folder)
    for name in ("constant", "adder"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    added: Callable[[int], int] = importlib.import_module("adder").add
    return added


def test_a_kernel_is_compiled_again_after_a_constant_of_another_file_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled(adding(folder, monkeypatch, 2))(1) == 3
    assert compiled(adding(folder, monkeypatch, 3))(1) == 4
    again = compiled(adding(folder, monkeypatch, 2))
    assert again(1) == 3 and loaded(again)


def key(
    step: str = "2", table: str = "[1, 2]", helper: str = "x + STEP", body: str = "helper(x)"
) -> str:
    """The cache key of a kernel that calls a function with constants, each from elsewhere."""
    called = {"STEP": eval(step), "TABLE": np.array(eval(table))}
    exec(f"def helper(x, table=None):\n    return {helper} + TABLE[0]", called)
    calling: dict[str, Any] = {"helper": kernels.inlined(called["helper"])}
    exec(f"def total(x):\n    return {body}", calling)
    return kernels._key(calling["total"])


def test_the_key_covers_the_code_and_the_constants_of_all_functions_that_are_called() -> None:
    bodies = [key(body=f"helper(x) + {more}") for more in (1, 2)]
    helpers = [key(helper="x - STEP"), key(helper="x + 7")]
    keys = [key(), key(step="3"), key(step="2.0"), key(table="[1, 3]"), *helpers, *bodies]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


@each("constant", [enum.Enum("Kind", "A B"), kernels, {"A": 1}])
def test_a_global_that_the_key_cannot_cover_is_refused(constant: Any) -> None:
    names: dict[str, Any] = {"constant": constant}
    exec("def total(x):\n    return constant", names)
    with pytest.raises(TypeError, match="cache key"):
        kernels._key(names["total"])
