"""The store: artifacts are complete or absent, reused for equal inputs, and checked for damage."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok import files
from numtok.errors import NegativeVerdict, StoreError, UsageError
from numtok.store import artifact as on_disk
from numtok.store import draft as drafts
from numtok.store.artifact import FILES, MANIFEST, TIMING, Artifact, Output, Parent, version_of
from numtok.store.provenance import Provenance, provenance
from numtok.store.receipts import NoFacts, read_receipt, write_receipt
from numtok.store.store import Absent, Store
from numtok.store.verification import verify
from numtok.stored_json import Natural, StoredJson
from tests import fakestage
from tests.cases import case
from tests.fakestage import make
from tests.faults import Plan, installed, points
from tests.forged import forge_manifest
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[2]


def silent(note: str) -> None:
    raise AssertionError(f"nothing should be said: {note}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", silent)


def hidden(store: Store) -> list[str]:
    return sorted(path.name for path in store.root.rglob(".*"))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of each file in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def drafting(
    store: Store, kind: str = "k", name: str = "n", settings: Any = None, parents: Any = ()
) -> Iterator[drafts.Draft]:
    """Yield a draft of an artifact that does not exist yet."""
    with store.draft(kind, name, settings or {}, parents, []) as draft:
        assert isinstance(draft, drafts.Draft)
        yield draft


def interrupt(store: Store, done: list[str] | None = None) -> None:
    """Begin making the fake artifact, and stop after its first units with a disk error."""
    with installed(Plan("eio", at=36)), pytest.raises(StoreError):
        make(store, done=done)


Harm = Callable[[Path], object]


def edit(path: Path, **changes: Any) -> None:
    data = json.loads(path.read_bytes()) | changes
    path.write_bytes((json.dumps(data, sort_keys=True, indent=1) + "\n").encode())


def append(path: Path, text: str) -> None:
    path.write_bytes(path.read_bytes() + text.encode())


def swap_for_link(path: Path) -> None:
    path.rename(path.parent.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent.parent / "elsewhere")


def swap(path: Path, old: bytes, new: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(old, new))


def on(name: str, harm: Callable[..., object], /, *given: Any, **more: Any) -> Harm:
    """Return a function that damages one file of a folder."""
    return lambda folder: harm(folder / name, *given, **more)


# --- versions ----------------------------------------------------------------------------------

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)
settings_dicts = st.dictionaries(st.text(), values, max_size=3)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.integration
@given(settings_dicts, settings_dicts)
def test_a_version_is_of_what_the_settings_say(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Versions are equal if and only if the settings are equal as JSON, in any order of keys."""
    version = version_of("k", a, [])
    assert version_of("k", reordered(a), []) == version
    assert version_of("k", json.loads(json.dumps(a, indent=2)), []) == version
    same = json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
    assert (version_of("k", b, []) == version) == same


def test_a_version_is_of_digests_and_never_of_places() -> None:
    def parent(where: str, digest: str) -> Parent:
        return Parent("file", where, digest, 1)

    one = version_of("k", {}, [parent("a", "11"), parent("b", "22")])
    assert one == version_of("k", {}, [parent("x", "11"), parent("y", "22")])
    assert one != version_of("k", {}, [parent("a", "22"), parent("b", "11")])
    assert one != version_of("other", {}, [parent("a", "11"), parent("b", "22")])
    assert re.fullmatch("[0-9a-f]{16}", one)


def test_versions_do_not_change_between_releases() -> None:
    settings = {"scheme": {"name": "p10", "exponents": "-8..7"}, "seed": 0, "x": [1.5, None, "é"]}
    assert version_of("encoded", settings, [Parent("file", "a", "ab" * 32, 3)]) == GOLDEN_VERSION


GOLDEN_VERSION = "f5895bebf6b1531a"


def test_settings_that_json_cannot_hold_are_refused() -> None:
    cases: list[Any] = [{1: "a"}, {"a": {2: 3}}, {"a": [{None: 1}]}, {"a": float("nan")}]
    for settings in cases:
        with (
            case(settings),
            pytest.raises((TypeError, ValueError), match=r"is not a string|not JSON"),
        ):
            version_of("k", settings, [])


# --- making ------------------------------------------------------------------------------------


def test_an_artifact_says_what_it_is(store: Store) -> None:
    artifact = make(store)
    assert artifact.ref == f"toy@{artifact.version}"
    manifest = json.loads((artifact.path / MANIFEST).read_bytes())
    assert manifest["schema"] == 1
    assert (manifest["kind"], manifest["name"]) == ("fake", "toy")
    assert manifest["settings"] == fakestage.SETTINGS
    assert manifest["seed"] == 7
    assert manifest["counts"] == {"rows": 9}
    assert manifest["command"] == fakestage.COMMAND
    assert manifest["parents"][0]["digest"] == "ab" * 32
    assert manifest["made_by"]["libraries"]["msgspec"]
    assert [output.path for output in artifact.files()] == [
        *(f"part/unit-{number}.txt" for number in range(3)),
        "scheme.json",
    ]
    assert json.loads((artifact.path / "timing.json").read_bytes()) == {"seconds": 0.5}
    assert verify(artifact).problems == []
    assert hidden(store) == []


def test_facts_are_in_the_manifest_and_not_in_those_that_have_none(store: Store) -> None:
    facts = {"mean": 280.5, "periods": {"train": "2019"}}
    with drafting(store) as draft:
        told = draft.publish({}, {}, facts)
    assert told.manifest.facts == facts
    assert json.loads((told.path / MANIFEST).read_bytes())["facts"] == facts
    assert verify(told).problems == []
    edit(told.path / MANIFEST, facts={"mean": 0.0})
    assert "manifest.json is damaged: its digest" in verify(told).problems[0]
    silent = make(store)
    assert silent.manifest.facts == {}
    assert "facts" not in json.loads((silent.path / MANIFEST).read_bytes())


def test_made_again_it_is_found_and_not_made(store: Store) -> None:
    first, done = make(store), list[str]()
    assert make(store, done=done) == first
    assert make(store, done=done, restart=True) == first
    assert done == []


def test_a_draft_left_by_an_exception_is_continued(store: Store) -> None:
    done: list[str] = []
    interrupt(store, done)
    assert 0 < len(done) < 3
    assert store.artifacts() == []
    more: list[str] = []
    assert verify(make(store, done=more)).problems == []
    assert done + more == list(fakestage.UNITS)


def test_restart_discards_the_draft(store: Store) -> None:
    interrupt(store)
    done: list[str] = []
    make(store, restart=True, done=done)
    assert done == list(fakestage.UNITS)


def test_a_draft_begun_by_other_versions_is_not_continued(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(store)
    other = Provenance("9.9", None, None, {})
    monkeypatch.setattr(drafts, "provenance", lambda: other)
    notes: list[str] = []
    done: list[str] = []
    make(Store(store.root, notes.append), done=done)
    assert done == list(fakestage.UNITS)
    assert len(notes) == 1
    assert notes[0].startswith("starting over: ")
    assert hidden(store) == []


def test_what_no_receipt_vouches_for_is_removed_before_a_draft_is_continued(store: Store) -> None:
    with drafting(store) as begun:
        (begun.path / "stray.txt").write_bytes(b"half")
        (begun.path / MANIFEST).write_bytes(b"{}")
        (begun.path / "receipts" / ".u.json.part").write_bytes(b"{")
        (begun.path / "receipts" / "bad.json").write_bytes(b"{")
        with files.Sink(begun.path / "good.txt") as sink:
            sink.write(b"whole")
        outputs = [Output("good.txt", sink.bytes, sink.sha256)]
        write_receipt(begun.path, "u", input="i", settings="s", outputs=outputs)
    with drafting(store) as draft:
        assert draft.continued
        assert draft.path != begun.path
        assert {path for path, _ in on_disk.walk(draft.path)} == {"good.txt"}
        assert not (draft.path / MANIFEST).exists()
        assert draft.receipt("bad", input="i", settings="s", facts=NoFacts) is None
        artifact = draft.publish({}, {})
    assert sorted(os.listdir(artifact.path / "receipts")) == ["u.json"]


def test_a_worker_that_outlived_its_parent_cannot_write_into_the_continued_draft(
    store: Store,
) -> None:
    with drafting(store) as draft:
        old = draft.path
        late = files.Sink(old / "late.txt")
    with drafting(store) as draft:
        late.write(b"late")
        with pytest.raises(StoreError, match="No such file"):
            late.close()
        with pytest.raises(StoreError, match="No such file"):
            write_receipt(old, "u", input="i", settings="s", outputs=[])
        assert draft.publish({}, {}).files() == []


def test_scratch_files_are_not_published(store: Store) -> None:
    with drafting(store) as draft:
        (draft.path / ".scratch").write_bytes(b"x")
        assert draft.publish({}, {}).files() == []
    assert hidden(store) == []


def test_a_link_is_not_published(store: Store) -> None:
    with drafting(store) as draft:
        (draft.path / "link").symlink_to("/etc/passwd")
        with pytest.raises(StoreError, match=r"link is not a plain file\. Run the command with"):
            draft.publish({}, {})


def test_a_file_that_changed_after_its_receipt_is_not_published(store: Store) -> None:
    with drafting(store) as draft:
        (draft.path / "a").write_bytes(b"1")
        outputs = [Output("a", 2, "00"), Output("gone", 1, "00")]
        write_receipt(draft.path, "u", input="i", settings="s", outputs=outputs)
        with pytest.raises(StoreError, match=r"a, gone in .* changed after a receipt was written"):
            draft.publish({}, {})


def test_a_name_that_cannot_be_one_is_refused(store: Store) -> None:
    for kind, name in [("K", "n"), ("k", "N"), ("k", "../n"), ("k", ".n")]:
        with case(kind, name):
            with (
                pytest.raises(UsageError, match="must be lower-case letters"),
                store.draft(kind, name, {}, [], []),
            ):
                pass
            assert not store.root.exists()


def test_a_manifest_that_nobody_could_read_is_refused_before_any_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numtok.store.artifact.SMALL", 1000)
    with (
        pytest.raises(UsageError, match=r"at most 900 bytes"),
        store.draft("k", "n", {"a": "x" * 1000}, [], []),
    ):
        pass


def test_a_store_finds_what_is_to_be_made_under_any_name(store: Store) -> None:
    first = make(store, name="mine")
    open_minded = Store(store.root, silent, any_name=True)
    assert make(open_minded, name="yours") == first
    assert make(store, name="yours").ref != first.ref  # this store reuses only the same name
    assert make(open_minded, name="yours").name == "yours"  # the same name has priority


def test_a_store_that_makes_nothing_tells_what_is_absent(store: Store) -> None:
    looking = Store(store.root, silent, make=False)
    with pytest.raises(Absent, match="fake/toy@"):
        make(looking)
    assert not store.root.exists()
    assert make(store) == make(looking)


# --- receipts ----------------------------------------------------------------------------------


class _Counted(msgspec.Struct, forbid_unknown_fields=True):
    rows: Natural


class _Told(msgspec.Struct):
    rows: Any


def facts_of_another_type(folder: Path, rows: Any) -> None:
    receipt = read_receipt(folder, "u", input="i", settings="s", facts=_Counted)
    assert receipt is not None
    write_receipt(folder, "u", input="i", settings="s", outputs=receipt.outputs, facts=_Told(rows))


@pytest.fixture
def drafted(tmp_path: Path) -> Path:
    folder = tmp_path / "drafted"
    (folder / "receipts").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"abc")
    digest, size = files.sha256_file(folder / "a.txt")
    outputs = [Output("a.txt", size, digest)]
    write_receipt(folder, "u", input="i", settings="s", outputs=outputs, facts=_Counted(3))
    return folder


def test_a_receipt_is_read_back_with_its_facts(drafted: Path) -> None:
    receipt = read_receipt(drafted, "u", input="i", settings="s", facts=_Counted)
    assert receipt is not None
    assert receipt.facts == _Counted(3)
    assert receipt.outputs[0].path == "a.txt"


HARMED: dict[str, Harm] = (
    {
        "another byte": on("a.txt", Path.write_bytes, b"abd"),
        "a byte more": on("a.txt", Path.write_bytes, b"abcd"),
        "no file": on("a.txt", Path.unlink),
        "half a receipt": on("receipts/u.json", Path.write_bytes, b"{"),
        "no receipt": on("receipts/u.json", Path.unlink),
    }
    | {
        f"facts {facts}": on("receipts/u.json", edit, facts=facts)
        for facts in ({"rows": 4}, {"rows": "3"}, {}, {"rows": 3, "more": 1})
    }
    | {f"rows {rows}": partial(facts_of_another_type, rows=rows) for rows in ("3", -1, None)}
)


def test_a_receipt_counts_only_while_all_it_lists_is_there_and_its_facts_are_of_the_type(
    drafted: Path, tmp_path: Path
) -> None:
    for name, harm in HARMED.items():
        folder = shutil.copytree(drafted, tmp_path / name)
        asked = partial(read_receipt, folder, "u", input="i", settings="s", facts=_Counted)
        assert asked() is not None, name
        harm(folder)
        assert asked() is None, name
        assert not (folder / "receipts" / "u.json").exists(), name


def test_a_receipt_for_something_else_is_removed_with_its_files(
    drafted: Path, tmp_path: Path
) -> None:
    for input, settings in [("other", "s"), ("i", "other")]:
        folder = shutil.copytree(drafted, tmp_path / input)
        found = read_receipt(folder, "u", input=input, settings=settings, facts=_Counted)
        assert found is None, (input, settings)
        assert os.listdir(folder / "receipts") == [], (input, settings)
        assert not (folder / "a.txt").exists(), (input, settings)


def test_a_receipt_lists_nothing_outside_the_folder(drafted: Path) -> None:
    receipt = drafted / "receipts" / "u.json"
    whole = receipt.read_bytes()
    for path in ["/a", "../a", "a/../../b", "", "a//b", "./a", "a\0"]:
        with case(path):
            with pytest.raises(ValueError, match="leaves the artifact's folder"):
                Output(path, 0, "")
            harmed = whole.replace(b'"a.txt"', json.dumps(path).encode())
            assert harmed != whole
            receipt.write_bytes(harmed)
            assert read_receipt(drafted, "u", input="i", settings="s", facts=_Counted) is None
            assert (drafted / "a.txt").exists()


def test_a_unit_is_a_name(drafted: Path) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        read_receipt(drafted, "../u", input="i", settings="s", facts=_Counted)


# --- force -------------------------------------------------------------------------------------


def test_forced_and_identical_the_old_one_is_kept_and_said_to_be_the_same(store: Store) -> None:
    notes: list[str] = []
    first = make(store)
    inode = first.path.stat().st_ino
    done: list[str] = []
    assert make(Store(store.root, notes.append), force=True, done=done) == first
    assert notes == [f"made again, {first.ref} is identical"]
    assert done == list(fakestage.UNITS)
    assert first.path.stat().st_ino == inode
    assert hidden(store) == []


def test_forced_where_a_file_was_lost_it_is_named(store: Store) -> None:
    first = make(store)
    (first.path / "part" / "unit-1.txt").unlink()
    with pytest.raises(NegativeVerdict, match=r"differs in part/unit-1\.txt\. "):
        make(store, force=True)
    assert hidden(store) == []


def test_forced_and_different_the_files_are_named_and_the_old_one_is_kept(store: Store) -> None:
    first = make(store)
    before = contents(first.path)
    parts = ", ".join(f"part/{unit}.txt" for unit in fakestage.UNITS)
    with pytest.raises(NegativeVerdict, match=f"{first.ref} differs in {parts}. .* is kept"):
        make(store, force=True, salt="!")
    assert contents(first.path) == before
    assert hidden(store) == []


# --- references --------------------------------------------------------------------------------


@pytest.fixture
def shelf(store: Store) -> Store:
    """Return a store with data/sea, data/both, encoded/both, and two versions of encoded/land."""
    for kind, name, seed in [
        ("data", "sea", 0),
        ("data", "both", 1),
        ("encoded", "both", 2),
        ("encoded", "land", 3),
        ("encoded", "land", 4),
    ]:
        with drafting(store, kind, name, {"seed": seed}) as draft:
            draft.publish({}, {})
    return store


def test_artifacts_are_listed_in_order(shelf: Store) -> None:
    assert [(item.kind, item.name) for item in shelf.artifacts()] == [
        ("data", "both"),
        ("data", "sea"),
        ("encoded", "both"),
        ("encoded", "land"),
        ("encoded", "land"),
    ]


def test_every_form_of_a_reference_finds_its_artifact(shelf: Store) -> None:
    for item in shelf.artifacts():
        for ref in (
            item.ref,
            f"{item.kind}/{item.ref}",
            item.version,
            item.version[:8],
            f"{item.name}@{item.version[:8]}",
            str(item.path),
            f"{item.path}/",
        ):
            assert shelf.resolve(ref) == item, ref
        with pytest.raises(UsageError, match="no artifact"):
            shelf.resolve(item.version[:3])  # too short
    assert shelf.resolve("sea").kind == "data"
    assert shelf.resolve("data/both").kind == "data"
    assert shelf.resolve("both", kinds=["encoded"]).kind == "encoded"


def test_listing_and_resolving_look_at_no_file_of_an_artifact(shelf: Store) -> None:
    with installed(Plan("trace")) as traced:
        shelf.resolve("sea")
    # One for the root, one to check that the root exists, one per kind, one per name.
    assert traced.trace == ["scandir"] * (2 + 2 + 4)


def test_a_reference_to_none_or_several_is_explained(shelf: Store, says: Says) -> None:
    absent, no_folder = "no artifact", "no manifest.json"
    for ref, kinds, parts in [
        ("se", None, [absent, "'se'", str(shelf.root), "Did you mean 'sea'?", "numtok ls"]),
        ("", None, [absent, "''", "numtok ls"]),
        ("xyzzyxyz", None, [absent, "'xyzzyxyz'", "numtok ls"]),
        ("data/xyzzyxyz", None, [absent, "'data/xyzzyxyz'"]),
        ("sea@0000", None, [absent, "'sea@0000'", "Did you mean "]),
        ("both", None, ["'both'", "several", "data/both@", "encoded/both@"]),
        ("land", ["encoded"], ["'land'", "several", "encoded/land@"]),
        ("sea", ["model", "encoded"], ["'sea'", "data", "encoded data or a model"]),
        ("nokind/sea", None, ["'nokind/sea'", no_folder]),
        ("./sea", None, ["'sea'", no_folder]),
        ("/", None, ["'/'", no_folder]),
    ]:
        with case(ref, kinds):
            with pytest.raises(UsageError) as caught:
                shelf.resolve(ref, kinds)
            says(caught, *parts)
            assert "\n" not in str(caught.value)
            assert ("Did you mean" in str(caught.value)) == ("Did you mean" in " ".join(parts))


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no store at .*\. Commands that make"):
        Store(tmp_path / "none").artifacts()
    with pytest.raises(
        StoreError, match=r"cannot write to .*/no/store: No such file or directory. Check"
    ):
        make(Store(tmp_path / "no" / "store"))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"Not a directory\. Check the path"):
        make(Store(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"cannot list .*file: Not a directory"):
        Store(tmp_path / "file").artifacts()


def test_a_store_behind_a_symbolic_link_works(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store = Store(tmp_path / "link")
    artifact = make(store)
    assert store.resolve("toy") == artifact
    store.remove(artifact)
    assert os.listdir(tmp_path / "real") == []


# --- verify ------------------------------------------------------------------------------------


def list_outside(folder: Path) -> None:
    """Make an artifact consistent but for a listed path that leads out of its folder."""
    listing = on_disk.listing([Output("secret", 3, "00" * 32)])
    (folder / FILES).write_bytes(listing.replace(b"secret", b"../../../secret"))
    digest = files.sha256_file(folder / FILES)[0]
    forge_manifest(folder, content=digest, files=1, bytes=3)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


HARM: dict[str, tuple[Harm, str]] = {
    "a changed byte": (on("scheme.json", Path.write_bytes, b"[]\n"), "was changed: its sha256 is"),
    "a longer file": (on("scheme.json", append, "x"), "has 4 bytes instead of 3"),
    "a missing file": (on("part/unit-1.txt", Path.unlink), "'part/unit-1.txt' is missing"),
    "an extra file": (
        on("part/extra\n", Path.touch),
        "'part/extra\\n' is not listed in files.jsonl",
    ),
    "a link for a file": (on("part/unit-1.txt", swap_for_link), "unit-1.txt' is not a plain file"),
    "a link for a folder": (on("part", swap_for_link), "'part/unit-0.txt' is missing"),
    "an edited count": (on(MANIFEST, edit, counts={"rows": 10}), "digest does not match its"),
    "an edited setting": (
        partial(forge_manifest, settings={"seed": 8}),
        "its settings and parents give",
    ),
    "another name": (partial(forge_manifest, name="joy"), "manifest.json belongs to fake/joy@"),
    "spaces in the manifest": (on(MANIFEST, append, " "), "digest does not match its"),
    "an unknown field": (
        on(MANIFEST, edit, more=1),
        "is damaged: Object contains unknown field `more`",
    ),
    "a field of the wrong type": (
        on(MANIFEST, edit, files="4"),
        "damaged: Expected `int`, got `str`",
    ),
    "a newer format": (
        on(MANIFEST, edit, schema=2, more=1),
        "has schema 2; this numtok reads up to 1",
    ),
    "an older format": (on(MANIFEST, edit, schema=0), "schema 0 does not exist"),
    "no manifest": (on(MANIFEST, Path.unlink), "manifest.json: No such file or directory"),
    "half a manifest": (on(MANIFEST, os.truncate, 99), "manifest.json is damaged: it is not JSON"),
    "a list": (on(MANIFEST, Path.write_bytes, b"[]"), "damaged: Expected `object`, got `array`"),
    "nested without end": (on(MANIFEST, Path.write_bytes, b"[" * 100_000), "it is nested too deep"),
    "NaN": (on(MANIFEST, edit, settings={"a": float("nan")}), "NaN is not a finite float64 number"),
    "a number that is none": (
        on(MANIFEST, swap, b'"seed": 7', b'"seed": 1e999'),
        "1e999 is not a finite float64 number",
    ),
    "nested beyond measure": (on(MANIFEST, edit, settings=nested(200)), "it is nested too deep"),
    "a count below 0": (on(MANIFEST, edit, counts={"rows": -1}), "`int` >= 0 - at `$.counts[...]`"),
    "a size beyond all disks": (on(MANIFEST, edit, bytes=10**30), "`int` <= 9223372036854775807"),
    "a name that leads elsewhere": (on(MANIFEST, edit, name="../joy"), "`str` matching regex"),
    "a file that grew": (
        on("scheme.json", os.truncate, 1 << 42),
        "has 4398046511104 bytes instead of",
    ),
    "a manifest without end": (
        on(MANIFEST, Path.write_bytes, b" " * (9 << 20)),
        "manifest.json has 9437184 bytes; the limit is 8388608",
    ),
    "a line more in the listing": (on(FILES, append, "{}\n"), "files.jsonl is damaged: its sha256"),
    "a path out of the folder": (
        list_outside,
        "files.jsonl is damaged: line 1: '../../../secret' leaves the artifact's folder",
    ),
}


def test_a_small_file_is_checked_whenever_it_is_read(store: Store, says: Says) -> None:
    artifact, stored = make(store), StoredJson(name="scheme.json", kind=dict[str, float])
    assert artifact.read(stored) == {}
    stored.write(artifact.path, {"factor": 1e308})
    with says.raises(StoreError, "scheme.json is damaged", "checksum", "numtok verify"):
        artifact.read(stored)
    (artifact.path / "scheme.json").unlink()
    with says.raises(StoreError, "scheme.json"):
        artifact.check("scheme.json")
    with says.raises(StoreError, "manifest.json is damaged", "checksum"):
        artifact.check("manifest.json")  # files.jsonl lists only content files


def test_what_a_manifest_lacks_is_damage_where_it_is_needed(store: Store) -> None:
    artifact = make(store)
    forge_manifest(artifact.path, counts={}, parents=())
    found = Artifact(artifact.path, artifact.kind, artifact.name, artifact.version)
    for part in (found.counts, found.facts):
        told = rf"manifest\.json is damaged: its {part.__name__}: .* field `rows`"
        with pytest.raises(StoreError, match=told):
            part(_Counted)
    with pytest.raises(StoreError, match=r"its settings: .* unknown field `scheme`"):
        found.settings(_Counted)
    with pytest.raises(StoreError, match=r"manifest\.json is damaged: its first parent must"):
        found.made_from("encoded")
    (found.path / TIMING).write_text("{}")
    with pytest.raises(StoreError, match=r"timing\.json is damaged: .* `seconds`"):
        _ = found.seconds


def test_verify_finds_and_names(store: Store, tmp_path: Path) -> None:
    artifact = make(store)
    for name, (harm, message) in HARM.items():
        shutil.copytree(artifact.path, folder := tmp_path / name / "a" / "b" / "c")
        harm(folder)
        found = verify(Artifact(folder, artifact.kind, artifact.name, artifact.version))
        assert any(message in problem for problem in found.problems), (name, found.problems)


def test_verify_counts_what_it_read(store: Store) -> None:
    check = verify(make(store))
    assert (check.problems, check.files) == ([], 4)
    assert check.bytes == 3 + 3 * 3 * len("unit-0 0\n")


def test_a_sample_is_other_files_each_time_and_a_missing_file_is_always_noticed(
    store: Store,
) -> None:
    artifact = make(store)
    paths = [output.path for output in artifact.files()]
    (artifact.path / paths[0]).write_bytes(b"!")
    found = {bool(verify(artifact, 1).problems) for _ in range(200)}
    assert found == {True, False}
    (artifact.path / paths[0]).unlink()
    for _ in range(20):
        assert any("is missing" in problem for problem in verify(artifact, 1).problems)


def test_verify_reports_a_file_that_cannot_be_read(store: Store) -> None:
    artifact = make(store)
    with installed(Plan("trace")) as traced:
        verify(artifact)
    for at in points("eio", traced.trace):
        with installed(Plan("eio", at=at)):
            found = verify(Artifact(artifact.path, artifact.kind, artifact.name, artifact.version))
        assert len(found.problems) >= 1, traced.trace[at - 1]


# --- removing and sweeping ---------------------------------------------------------------------


def child_of(store: Store, parent: Artifact) -> Artifact:
    with drafting(store, "model", "child", parents=[parent.as_parent()]) as draft:
        return draft.publish({}, {})


def test_an_artifact_that_another_process_removed_is_not_removed_again(
    store: Store, says: Says
) -> None:
    artifact = make(store)
    store.remove(artifact)
    with says.raises(UsageError, artifact.ref, "another process removed it"):
        store.remove(artifact)
    assert os.listdir(store.root) == []


def test_a_parent_is_removed_only_by_force(store: Store, says: Says) -> None:
    parent = make(store)
    child = child_of(store, parent)
    assert store.children(parent) == [child]
    with says.raises(UsageError, f"{parent.ref} is a parent of {child.ref}", "--force"):
        store.remove(parent)
    store.remove(parent, force=True)
    assert store.artifacts() == [child]


def test_a_damaged_artifact_keeps_no_other_one_from_being_removed(tmp_path: Path) -> None:
    told: list[str] = []
    store = Store(tmp_path, note=told.append)
    other = make(store)
    child = child_of(store, other)
    (child.path / "manifest.json").write_text("{")
    store.remove(other)
    assert store.artifacts() == [child]
    assert len(told) == 1 and told[0].endswith("; its parents are unknown")


def test_a_damaged_artifact_can_be_removed(store: Store) -> None:
    artifact = make(store)
    (artifact.path / MANIFEST).write_bytes(b"{")
    store.remove(store.resolve("toy"))
    assert store.artifacts() == []


def test_an_artifact_elsewhere_is_not_removed(store: Store, tmp_path: Path) -> None:
    artifact = make(store)
    shutil.copytree(artifact.path, tmp_path / "copy")
    with pytest.raises(UsageError, match="copy is not in the store"):
        store.remove(store.resolve(f"{tmp_path}/copy"))


def test_what_a_sweep_would_take_is_only_named(store: Store) -> None:
    place = make(store).path.parent
    (place / ".lock-0123456789abcdef").write_bytes(b"")
    before = hidden(store)
    for _ in range(2):
        named = [one.path.name for one in store.collect(remove=False)]
        assert named == [".lock-0123456789abcdef"]
        assert hidden(store) == before
    assert [one.path.name for one in store.collect()] == named


def test_a_sweep_takes_what_no_process_holds_and_nothing_else(store: Store) -> None:
    artifact = make(store)
    place = artifact.path.parent
    (place / f".trash-{artifact.version}.1").mkdir()
    (place / f".trash-{artifact.version}.1" / "a").write_bytes(b"12345")
    (place / ".lock-0123456789abcdef").write_bytes(b"")
    (store.root / ".spool-0123456789abcdef").mkdir()
    (place / ".not-ours").write_bytes(b"")
    with drafting(store) as draft, store.spool() as spool:
        swept = {one.path.name: one.bytes for one in store.collect()}
        assert draft.path.is_dir()
        assert spool.is_dir()
    assert swept == {
        f".trash-{artifact.version}.1": 5,
        ".lock-0123456789abcdef": 0,
        ".spool-0123456789abcdef": 0,
    }
    assert [one.path.name for one in store.collect()] == [draft.path.name]
    assert hidden(store) == [".not-ours"]
    assert verify(artifact).problems == []


def test_a_spool_is_gone_after_its_block(store: Store) -> None:
    with pytest.raises(KeyError), store.spool() as folder:
        (folder / "stdin").write_bytes(b"x")
        raise KeyError
    assert not store.root.exists()


@pytest.mark.parametrize("kind", ["eio", "enospc"])
def test_a_spool_that_fails_leaves_nothing_for_long(tmp_path: Path, kind: str) -> None:
    def spool(store: Store) -> None:
        with store.spool() as folder:
            files.write_atomic(folder / "stdin", b"x")

    for at in points(kind, traced(lambda: spool(Store(tmp_path / "trial")))):
        store = Store(tmp_path / str(at))
        with installed(Plan(kind, at)) as faults, suppress(StoreError):
            spool(store)
        assert faults.reached
        if store.root.exists():
            store.collect()
            assert os.listdir(store.root) == []


# --- other processes ---------------------------------------------------------------------------


def launch(*plans: str, program: tuple[str, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults", *plans, "--", *program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.integration
def test_two_processes_make_the_same_artifact_and_one_copy_stands(store: Store) -> None:
    both = [launch("trace", program=("tests.fakestage", str(store.root))) for _ in range(4)]
    answers = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0] * 4, answers
    assert len({out for out, _ in answers}) == 1
    (artifact,) = store.artifacts()
    assert verify(artifact).problems == []
    assert hidden(store) == []


@pytest.mark.integration
def test_a_process_that_waits_says_so_once_and_finds_the_artifact(store: Store) -> None:
    with drafting(store, "fake", "toy", fakestage.SETTINGS, fakestage.PARENTS) as draft:
        process = launch("trace", program=("tests.fakestage", str(store.root)))
        assert process.stderr is not None
        note = process.stderr.readline()
        artifact = draft.publish({}, {})
    out, rest = process.communicate(timeout=60)
    assert note == f"numtok: waiting for another process that works on fake/{artifact.ref}\n"
    assert (out, rest) == (f"{artifact.ref}\n", "")


def test_one_lock_is_held_once_although_lock_files_come_and_go(store: Store) -> None:
    inside, most, done = [0], [0], [0]
    guard = threading.Lock()

    def work() -> None:
        for _ in range(30):
            with store._locked(store.root / "k" / "n", "0" * 16, "it"):
                with guard:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                time.sleep(random.random() / 2000)
                with guard:
                    inside[0] -= 1
                    done[0] += 1
            store.collect()

    store.note = lambda note: None
    # Locks belong to open files, so threads exclude each other just as processes do.
    with ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(work) for _ in range(4)]:
            result.result()
    assert (most, done) == ([1], [120])
    assert hidden(store) == []


# --- faults ------------------------------------------------------------------------------------


def traced(action: Callable[[], object]) -> list[str]:
    with installed(Plan("trace")) as faults:
        action()
    return faults.trace


class Whole(NamedTuple):
    """The fake artifact made without faults, and the file operations that made it."""

    contents: dict[str, bytes]
    trace: list[str]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    provenance()  # cached per process; it does not go through files.system
    store = Store(tmp_path_factory.mktemp("whole"))
    trace = traced(lambda: make(store))
    return Whole(contents(store.artifacts()[0].path), trace)


def check_after_fault(store: Store, whole: dict[str, bytes]) -> None:
    """Check that no incomplete artifact is visible and that a rerun makes the expected artifact."""
    for artifact in store.artifacts():
        assert verify(artifact).problems == []
    artifact = make(store)
    assert contents(artifact.path) == whole
    assert verify(artifact).problems == []
    store.collect()
    assert hidden(store) == []


def sampled(kind: str, trace: list[str]) -> list[int]:
    """Return the first possible fault point per operation name, and every ninth of all points."""
    places = points(kind, trace)
    first = {trace[at - 1]: at for at in reversed(places)}
    return sorted({*first.values(), *places[::9]})


FAILING = [
    (kind, onward) for kind in ("eio", "enospc", "short", "torn") for onward in (False, True)
]


def check_failing(
    folder: Path,
    whole: Whole,
    kind: str,
    onward: bool,
    choose: Callable[[str, list[str]], list[int]],
) -> None:
    for at in choose(kind, whole.trace):
        store = Store(folder / f"{kind}{at}{onward}")
        before = len(os.listdir("/dev/fd"))
        failed = False
        with case(kind, at, onward), installed(Plan(kind, at, onward)) as faults:
            try:
                make(store)
            except StoreError as error:
                failed = True
                assert "\n" not in str(error)
        assert faults.reached and not (failed and kind == "short"), (kind, at, onward)
        assert len(os.listdir("/dev/fd")) == before, (kind, at, onward)
        if store.root.exists():
            check_after_fault(store, whole.contents)


@pytest.mark.integration
def test_an_operation_may_fail(tmp_path: Path, whole: Whole) -> None:
    for kind, onward in FAILING:
        check_failing(tmp_path, whole, kind, onward, sampled)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "onward"), FAILING)
def test_any_operation_may_fail(tmp_path: Path, whole: Whole, kind: str, onward: bool) -> None:
    check_failing(tmp_path, whole, kind, onward, points)


def check_killed(folder: Path, whole: Whole, choose: Callable[[str, list[str]], list[int]]) -> None:
    plans = [f"{kind}@{at}" for kind in ("kill", "killtorn") for at in choose(kind, whole.trace)]
    with launch(*plans, program=("tests.fakestage", str(folder))) as process:
        out, err = process.communicate(timeout=300)
    assert (json.loads(out), err) == ([-9] * len(plans), "")
    for plan in plans:
        store = Store(folder / plan)
        if store.root.exists():
            with case(plan):
                check_after_fault(store, whole.contents)


@pytest.mark.integration
def test_an_operation_may_be_the_last(tmp_path: Path, whole: Whole) -> None:
    check_killed(tmp_path, whole, sampled)


@pytest.mark.slow
def test_any_operation_may_be_the_last(tmp_path: Path, whole: Whole) -> None:
    check_killed(tmp_path, whole, points)


@pytest.mark.integration
def test_a_removal_that_fails_leaves_the_artifact_whole_or_gone(tmp_path: Path) -> None:
    trial = Store(tmp_path / "trial")
    artifact = make(trial)
    places = points("eio", traced(lambda: trial.remove(artifact)))
    for at in places:
        kind = "enospc" if at % 2 else "eio"
        store = Store(tmp_path / str(at))
        artifact = make(store)
        with installed(Plan(kind, at)) as faults, suppress(StoreError):
            store.remove(artifact)
        assert faults.reached
        for left in store.artifacts():
            assert verify(left).problems == []
        store.collect()
        assert hidden(store) == []


def interrupted_store(root: Path) -> Store:
    store = Store(root)
    interrupt(store)
    (root / ".spool-0123456789abcdef").mkdir()
    return store


@pytest.mark.integration
def test_a_sweep_that_fails_is_finished_by_the_next(tmp_path: Path) -> None:
    trial = interrupted_store(tmp_path / "trial")
    places = points("eio", traced(trial.collect))
    for at in places:
        store = interrupted_store(tmp_path / str(at))
        with installed(Plan("eio", at)) as faults, suppress(StoreError):
            store.collect()
        assert faults.reached
        store.collect()
        assert hidden(store) == []
        assert verify(make(store)).problems == []


# --- provenance --------------------------------------------------------------------------------


@pytest.mark.integration
def test_provenance_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    made_by = provenance.__wrapped__()  # bypass the cache
    assert (made_by.git_commit, made_by.git_dirty) == (None, None)
    assert made_by.libraries["python"]


@pytest.mark.integration
def test_a_commit_is_recorded_only_of_numtok_itself() -> None:
    made_by = provenance()
    if (ROOT / ".git").exists() and made_by.git_commit is not None:
        assert re.fullmatch("[0-9a-f]{40,64}", made_by.git_commit)
        assert isinstance(made_by.git_dirty, bool)


@pytest.fixture(autouse=True)
def _no_fault_is_left_behind() -> Iterator[None]:
    yield
    assert isinstance(files.system, files.FileSystem)
