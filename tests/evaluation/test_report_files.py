"""Reports of a former schema: read as those of today, whatever their fields were called."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numtok.errors import StoreError
from numtok.evaluation.report_files import read
from numtok.reports import REPORT_FILE, SCHEMA
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests.cli.test_store_commands import Shell
from tests.fakereports import Fake, make

FORMER = {"baselines": "floors", "target_baselines": "target_floors", "training_data": "learnt"}
#: Notes as they were, and as they are; of the others no word changes.
NOTES = {
    "Floor 'near' says nothing of some numbers: its figures are of the 14 others alone.": (
        "Baseline 'near' says nothing of some numbers: its figures are of the 14 others alone."
    ),
    'Floor "it\'s" says nothing of some numbers: its figures are of the 3 others alone.': (
        'Baseline "it\'s" says nothing of some numbers: its figures are of the 3 others alone.'
    ),
    "What the model learnt from is not at hand: no nearest, linear or boosted floor.": (
        "What the model learnt from is not at hand: no nearest, linear or boosted baseline."
    ),
    "What the model learnt from is not at hand: no floors.": (
        "What the model learnt from is not at hand: no baselines."
    ),
    "Of another table than that of the model; floors that learn rows are left out.": (
        "Of another table than that of the model; baselines that learn rows are left out."
    ),
    "Floor is a category: the floors of a house.": "Floor is a category: the floors of a house.",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def content(report: Any) -> bytes:
    """As ``report_files.publish`` writes it."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def of_schema_1(new: bytes) -> bytes:
    """A report of today as it was written before, with the notes of then."""
    report: dict[str, Any] = json.loads(new)
    report |= {"schema": 1, "notes": [*report["notes"], *NOTES]}
    return content({FORMER.get(name, name): value for name, value in report.items()})


def of_today(artifact: Artifact) -> bytes:
    """A report with everything that has another name, as it is written now; also into the file."""
    report = read(artifact).report
    figures = {"answer": report.baselines}
    report = msgspec.structs.replace(
        report, target_baselines=figures, notes=[*report.notes, *NOTES.values()]
    )
    new = content(report)
    (artifact.path / REPORT_FILE).write_bytes(new)
    return new


def test_a_report_of_schema_1_is_byte_for_byte_the_one_of_today(store: Store) -> None:
    artifact = make(store, Fake(training_data="arithmetic-p1000@0123456789abcdef"))
    new = of_today(artifact)
    plain = json.loads(new)
    plain["notes"] = plain["notes"][: -len(NOTES)]
    old = of_schema_1(content(plain))
    assert b'"floors"' in old and b'"target_floors"' in old and b'"learnt"' in old
    assert b"aseline" not in old
    (artifact.path / REPORT_FILE).write_bytes(old)
    assert content(read(artifact).report) == new
    assert read(artifact).report.schema == SCHEMA == 3


def test_a_report_of_schema_2_is_the_one_of_today_without_slots(store: Store) -> None:
    artifact = make(store, Fake())
    new = of_today(artifact)
    old = json.loads(new)
    assert old.pop("slots") == {}
    (artifact.path / REPORT_FILE).write_bytes(content(old | {"schema": 2}))
    assert content(read(artifact).report) == new


@pytest.mark.integration
def test_old_and_new_reports_stand_beside_each_other(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    numtok = Shell(capsys, monkeypatch)
    old, new = make(store, Fake(seed=0)), make(store, Fake("xval"))

    def shown() -> tuple[str, str]:
        where = "--store", str(store.root)
        return numtok("report", old.ref, *where).out, numtok(
            "compare", old.ref, new.ref, *where
        ).out

    report, comparison = shown()
    (old.path / REPORT_FILE).write_bytes(of_schema_1((old.path / REPORT_FILE).read_bytes()))
    again, compared = shown()
    assert again.startswith(report.rstrip()) and "Note: Baseline 'near'" in again
    assert compared == comparison and "baselines:" in compared


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b'"floors": {', b'"floors": 1, "x": {', "Expected `object`, got `int` - at `$.baselines`"),
        (b'"floors"', b'"flors"', "Object contains unknown field `flors`"),
        (b"}\n", b"", "it is not JSON"),
    ],
)
def test_a_damaged_report_of_schema_1_is_refused(
    store: Store, before: bytes, after: bytes, why: str
) -> None:
    artifact = make(store, Fake())
    path = artifact.path / REPORT_FILE
    path.write_bytes(of_schema_1(path.read_bytes()).replace(before, after))
    with pytest.raises(StoreError, match=r"report\.json is damaged") as caught:
        read(artifact)
    assert why in str(caught.value)
