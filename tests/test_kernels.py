"""The cache of compiled kernels is reused, private, and never a reason to fail.

Permission bits do not bind root. So the folder that cannot be made is a path through a file, and
another user's folder is one whose owner's id is not ours.
"""

import enum
import errno
import importlib
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from numtok import kernel_files
from numtok.kernel_types import (
    ScalarType,
    boolean,
    float64,
    int32,
    int64,
    pair,
    reads,
    struct,
    uint16,
    uint32,
    uint64,
    void,
    writes,
)
from numtok.kernels import Kernel, inlined, kernel
from tests.cases import each
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = "/dev/null/nowhere"
NOTE = "numtok: note: compiled kernels cannot be cached"

# Uses the kernel that compiles fastest.
PROBE = """
import json, sys

def found():
    from numtok.data.reading.checksum import Checksum
    return list(Checksum().over(b"[1,-2.5] utf8"))

if __name__ == "__main__":
    here = found()
    from numtok import kernel_files
    child = None
    if "--spawn" in sys.argv:
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            child = pool.apply(found)
    print(json.dumps({
        "found": here, "child": child, "compiled": "numba" in sys.modules,
        "folder": kernel_files.folder() and str(kernel_files.folder()),
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
    """Start a Python process that computes a checksum; ``environment`` sets the cache folder."""
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
    """Return the report of the probe, and its stderr."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    report: dict[str, Any] = json.loads(output)
    assert report["found"] == FOUND
    return report, errors


def files_in(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Return the modification time and bytes of every file."""
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
    assert report["compiled"]
    assert Path(report["folder"]).is_relative_to(chosen)
    kept = files_in(chosen)
    assert [path.name.partition("-")[0] for path in kept] == ["sums"]

    report, errors = finish(start(probe, NUMBA_CACHE_DIR=str(chosen)))
    assert errors == ""
    assert not report["compiled"]
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
    assert not report["compiled"]
    assert len(files_in(chosen)) == 1


@pytest.mark.slow
def test_every_kernel_of_numtok_is_loaded_at_the_second_start(tmp_path: Path) -> None:
    script = tmp_path / "every.py"
    script.write_text(
        "import json, sys\n"
        "from numtok.kernels import every_kernel\n"
        "compiled = {k.address: not k.is_compiled() for k in every_kernel()}\n"
        "for k in every_kernel(): k.load()\n"
        f"print(json.dumps({{'found': {FOUND}, 'numba': 'numba' in sys.modules,\n"
        "    'compiled': compiled}))\n"
    )
    first, _ = finish(start(script, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    second, _ = finish(start(script, NUMBA_CACHE_DIR=str(tmp_path / "cache")))
    assert {"numtok.numerals.scan._scan", "numtok.numerals.decimals._read"} <= {*first["compiled"]}
    assert all(first["compiled"].values()) and first["numba"]
    assert second["compiled"].keys() == first["compiled"].keys()
    assert not any(second["compiled"].values()) and not second["numba"]


@pytest.mark.integration
def test_a_disabled_compiler_is_refused_in_one_line(tmp_path: Path, says: Says) -> None:
    """The compiler is only needed for kernels that are not cached."""
    (tmp_path / "a.jsonl").write_text('{"text": "1 of 2"}\n')
    switches = {"NUMBA_DISABLE_JIT": "1", "NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    ran = subprocess.run(
        [sys.executable, "-m", "numtok", "encode", "--scheme", "p10", "a.jsonl"],
        env=os.environ | switches | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    says(ran.stderr, "NUMBA_DISABLE_JIT=1", "Unset")


# --- which folder ------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Choose no folder, and put the home, cache and temporary folders in ``tmp_path``."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Reset the chosen folder and the printed note after each test."""
    yield
    kernel_files.folder.cache_clear()
    kernel_files._note.cache_clear()


def chosen_place() -> Path | None:
    kernel_files.folder.cache_clear()
    folder = kernel_files.folder()
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
    assert kernel_files._private(folder) is None
    shared.chmod(0o1777)  # like /tmp
    assert kernel_files._private(folder) == folder


def test_a_folder_or_link_of_another_user_is_refused_and_our_own_link_is_followed(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link = places / "mine", places / "link"
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    assert kernel_files._private(folder) == kernel_files._private(link) == folder
    us, values = os.getuid(), [*link.lstat()]
    values[4] = us + 1
    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", lambda path: os.stat_result(values))
        assert kernel_files._private(link) is None
    monkeypatch.setattr(os, "getuid", lambda: us + 1)
    assert kernel_files._private(folder) is None


def test_what_cannot_be_a_folder_is_refused_without_an_error(places: Path) -> None:
    (places / "file").touch()
    (places / "dangling").symlink_to(places / "absent")
    (places / "circle").symlink_to(places / "circle")
    for path in ("file", "file/below", "dangling", "circle", "circle/below"):
        assert kernel_files._private(places / path) is None
    assert not (places / "absent").exists()


def test_trying_a_folder_leaves_nothing_in_it_and_a_read_only_one_is_refused(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernel_files._private(places / "mine") == places / "mine"
    assert list((places / "mine").iterdir()) == []
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert kernel_files._private(places / "mine") is None


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
    assert chosen_place() is None
    assert capsys.readouterr().err.startswith(NOTE)


def test_a_spawned_worker_leaves_the_note_to_its_parent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    kernel_files._note("here")
    says(capsys.readouterr().err, NOTE, "here", "Set NUMBA_CACHE_DIR")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "a process")
    kernel_files._note("here")
    assert capsys.readouterr().err == ""


# --- one kernel --------------------------------------------------------------------------------


def twice(x: int) -> int:
    return 2 * x


def thrice(x: int) -> int:
    return 3 * x


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty folder as the cache of this process."""
    monkeypatch.setattr(kernel_files, "folder", lambda: tmp_path)
    return tmp_path


def compiled(function: Callable[[int], int]) -> Kernel:
    return kernel(int64(int64))(function)


def loaded(declared: Kernel) -> bool:
    """Load a kernel; return True if it came from the cache, False if it was compiled."""
    there = declared.is_compiled()
    declared.load()
    return there


@pytest.mark.integration
def test_a_damaged_file_of_the_cache_is_written_again_as_is_a_lost_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert not loaded(compiled(twice))
        assert loaded(compiled(twice))
        shutil.rmtree(folder)
    assert not loaded(compiled(twice))
    for damage in (b"", b"\0" * 4096, b"half"):
        (path,) = folder.iterdir()
        path.write_bytes(path.read_bytes()[:-40] if damage == b"half" else damage)
        again = compiled(twice)
        assert not loaded(again) and again(21) == 42, damage
        assert loaded(compiled(twice)), damage
        assert capsys.readouterr().err == "", damage


def test_a_full_disk_costs_the_cache_and_one_note_but_not_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    def full(*ignored: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    assert compiled(twice)(21) == 42
    assert compiled(thrice)(14) == 42
    told = capsys.readouterr().err
    says(told, NOTE, str(folder), "Set NUMBA_CACHE_DIR")
    assert told.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_a_fault_of_the_function_itself_is_raised_without_a_note(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(x: int) -> int:
        return x + "one"  # type: ignore[operator]

    with pytest.raises(NumbaError):
        compiled(wrong)(1)
    assert capsys.readouterr().err == ""
    assert list(folder.iterdir()) == []


def test_a_kernel_that_needs_a_library_is_refused(folder: Path) -> None:
    """The library function would not exist when the kernel is loaded without numba."""

    def power(x):  # type: ignore[no-untyped-def]
        return math.ldexp(x, 3)

    with pytest.raises(TypeError, match="cannot call numba_ldexp"):
        kernel(float64(float64))(power)(1.0)


# --- arguments and results ----------------------------------------------------------------------


class _Pair(NamedTuple):
    """Two arrays that a kernel takes as one argument."""

    numbers: NDArray[np.float64]
    table: NDArray[np.int64]


_RECORD = np.dtype([("a", np.int64), ("b", np.float64)], align=True)


def test_every_type_goes_in_and_comes_out(folder: Path) -> None:
    def first(x):  # type: ignore[no-untyped-def]
        return x

    extremes: list[tuple[ScalarType, Any]] = [
        *((int64, x) for x in (-(2**63), -1, 2**63 - 1)),
        *((uint64, x) for x in (0, 2**64 - 1)),
        *((int32, x) for x in (-(2**31), 2**31 - 1)),
        *((boolean, x) for x in (True, False)),
        *((float64, x) for x in (-0.0, 5e-324, float("inf"), -1.5)),
    ]
    kernels = {of: kernel(of(of))(first) for of in {of for of, _ in extremes}}
    for of, x in extremes:
        returned = kernels[of](x)
        assert (returned, type(returned)) == (x, type(x))
        assert math.copysign(1, returned) == math.copysign(1, x)


def test_arrays_of_records_of_two_axes_and_in_a_tuple_are_read_and_written(folder: Path) -> None:
    def fill(pair, records, out):  # type: ignore[no-untyped-def]
        for k in range(len(out)):
            row = pair.table[k]
            out[k] = pair.numbers[k] + row[1] + records[k].a
            records[k].b = out[k]
        return len(out), len(records)

    signature = pair(int64)(
        struct(_Pair, numbers=reads(float64), table=writes(int64, 2)), writes(_RECORD),
        writes(float64),
    )  # fmt: skip
    numbers, table = np.array([0.5, 1.5, 2.5]), np.arange(6).reshape(3, 2)
    numbers.flags.writeable = False
    records, out = np.array([(10, 0.0), (20, 0.0), (30, 0.0)], _RECORD), np.empty(3)
    assert kernel(signature)(fill)(_Pair(numbers, table), records, out) == (3, 3)
    assert out.tolist() == records["b"].tolist() == [11.5, 24.5, 37.5]


def test_an_argument_of_another_type_is_refused_before_the_kernel_sees_it(folder: Path) -> None:
    def total(values, out):  # type: ignore[no-untyped-def]
        out[0] = values[0]

    declared = kernel(void(reads(float64), writes(float64)))(total)
    good, frozen = np.zeros(4), np.zeros(4)
    frozen.flags.writeable = False
    declared(frozen, good)
    for values, out in (
        (np.zeros(4, np.float32), good),
        (np.zeros(8)[::2], good),
        (np.zeros((2, 2)), good),
        ([0.0], good),
        (good, frozen),
    ):
        with pytest.raises(TypeError, match="a kernel needs"):
            declared(values, out)
    with pytest.raises(ValueError, match="shorter"):
        declared(good)


def test_of_several_signatures_the_one_of_the_arguments_is_chosen(folder: Path) -> None:
    def size(out):  # type: ignore[no-untyped-def]
        return out.itemsize

    declared = kernel([int64(writes(of)) for of in (uint16, uint32)])(size)
    assert [declared(np.zeros(1, kind)) for kind in (np.uint16, np.uint32)] == [2, 4]
    with pytest.raises(TypeError, match="uint32"):
        declared(np.zeros(1, np.uint8))


# --- the cache key -----------------------------------------------------------------------------


def adding(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[int], int]:
    """Import the kernel of one file, which adds a constant of another, as a new process does."""
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


SIGNATURE = int64(int64)


def key(
    step: str = "2", table: str = "[1, 2]", helper: str = "x + STEP", body: str = "helper(x)"
) -> str:
    """Return the cache key of a kernel whose function calls and constants are defined elsewhere."""
    called = {"STEP": eval(step), "TABLE": np.array(eval(table))}
    exec(f"def helper(x, table=None):\n    return {helper} + TABLE[0]", called)
    calling: dict[str, Any] = {"helper": inlined(called["helper"])}
    exec(f"def total(x):\n    return {body}", calling)
    return kernel_files.name_of(calling["total"], SIGNATURE, {})


def test_the_key_covers_the_code_and_the_constants_of_all_functions_that_are_called() -> None:
    bodies = [key(body=f"helper(x) + {more}") for more in (1, 2)]
    helpers = [key(helper="x - STEP"), key(helper="x + 7")]
    keys = [key(), key(step="3"), key(step="2.0"), key(table="[1, 3]"), *helpers, *bodies]
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]


@each("constant", [enum.Enum("Kind", "A B"), kernel_files, {"A": 1}])
def test_a_global_that_the_key_cannot_cover_is_refused(constant: Any) -> None:
    names: dict[str, Any] = {"constant": constant}
    exec("def total(x):\n    return constant", names)
    with pytest.raises(TypeError, match="cache key"):
        kernel_files.name_of(names["total"], SIGNATURE, {})
