"""``numtok fetch numeracy600k``: headlines, their classes, and files with unexpected contents."""

import io
import json
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from numtok import files
from numtok.data.reading.split_rule import SplitRule
from numtok.data.sources import _json_items
from numtok.data.sources._json_items import items
from numtok.data.sources.numeracy600k import Numeracy600k, magnitude
from numtok.errors import DataError, StoreError, UsageError
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from numtok.sweeps.file import read_sweep
from tests.cases import case
from tests.faults import Plan, installed
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_fetch
from tests.stages.test_fetch import Server, fetched

server = test_fetch.server

EXAMPLES = Path(__file__).resolve().parents[4] / "shared/data/numeracy600k/readme_examples.json"
STEM = "Numeracy_600K_article_title"


def title(id: int, text: str, number: str, **more: Any) -> dict[str, Any]:
    made = {"id": id, "title": text, "publish_date": "20100101", "number": number}
    made |= {"offset": text.index(number), "length": len(number)}
    return made | {"magnitude": magnitude(number)} | more


TITLES = [
    title(7, "100 Most Anticipated books releasing in 2010", "2010"),
    title(8, "Rate falls to 0.5 percent", "0.5"),
    title(9, "Señor Lopez, 7 years old, sells “lemonade”", "7"),
    title(10, "A town of 1,250,000 people", "1,250,000"),
]


def written(folder: Path, rows: Any, name: str = f"{STEM}.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
    return path


def lines(artifact: Artifact) -> dict[str, dict[str, Any]]:
    """Return the rows of all splits by id, each with its split."""
    assert verify(artifact).problems == []
    found = {}
    for path in sorted(artifact.path.glob("*-*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            row["split"] = path.name.removesuffix("-00000.jsonl")
            found[row.pop("id")] = row
    return found


# --- rows --------------------------------------------------------------------------------------


def test_the_number_is_masked_and_its_class_is_the_label(tmp_path: Path) -> None:
    path = written(tmp_path, TITLES)
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", from_=str(path))
    assert (artifact.kind, artifact.name) == ("data", "numeracy600k")
    found = lines(artifact)
    rule = SplitRule.parse("test=0.1667")
    assert found == {
        id: {"text": text, "label": label, "split": rule.split_of(text)}
        for id, text, label in [
            ("7", "100 Most Anticipated books releasing in _", 4),
            ("8", "Rate falls to _ percent", 0),
            ("9", "Señor Lopez, _ years old, sells “lemonade”", 1),
            ("10", "A town of _ people", 7),
        ]
    }
    manifest = artifact.manifest
    assert manifest.counts["rows"] == 4 and "magnitude_differs" not in manifest.counts
    assert manifest.facts["licence"].startswith("CC BY-NC-SA 4.0")
    assert "ACL 2019" in manifest.facts["attribution"]
    assert [parent.where for parent in manifest.parents] == [str(path)]


def test_the_number_can_be_kept_as_a_target(tmp_path: Path) -> None:
    path = str(written(tmp_path, TITLES))
    options = {"from_": path, "number": "target", "split": "test=0.5,seed=1"}
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", **options)
    row = lines(artifact)["9"]
    assert (row["text"], row["group"]) == (TITLES[2]["title"], {"magnitude": 1})
    ((start, end),) = row["targets"]["number"]
    assert row["text"][start:end] == "7" and "label" not in row
    assert artifact.manifest.seed == 1


@pytest.mark.skipif(not EXAMPLES.is_file(), reason="no examples of Numeracy-600K beside numtok")
def test_the_example_of_the_publishers_is_read(tmp_path: Path) -> None:
    published = json.loads(EXAMPLES.read_text("utf-8"))["article_title"]
    path = str(written(tmp_path, published))
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", from_=path)
    (row,) = lines(artifact).values()
    assert (row["text"], row["label"]) == (
        "100 Most Anticipated books releasing in _", published[0]["magnitude"],
    )  # fmt: skip


@pytest.mark.parametrize("form", ["folder", "zip", "zip in a folder"])
def test_a_copy_is_a_file_a_folder_or_the_zip(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, TITLES)
    if "zip" in form:
        with zipfile.ZipFile(tmp_path / f"{STEM}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            packed.write(path, f"data/{STEM}.json")
            packed.writestr(f"__MACOSX/{STEM}.json", "x")
        path.unlink()
    place = tmp_path / f"{STEM}.zip" if form == "zip" else tmp_path
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", from_=str(place))
    assert set(lines(artifact)) == {"7", "8", "9", "10"}


def test_it_is_downloaded_once_and_the_same_as_the_copy(tmp_path: Path, server: Server) -> None:
    path = written(tmp_path, TITLES)
    server.files["/data/Numeracy_600K_article_title.json"] = path.read_bytes()
    server.faults["/data/Numeracy_600K_article_title.json"] = ["half"]
    store, place = Store(tmp_path / "store"), f"{server.url}/data/Numeracy_600K_article_title.json"
    (artifact,) = fetched(store, "numeracy600k", from_=place)
    (same,) = fetched(Store(tmp_path / "other"), "numeracy600k", from_=str(path))
    assert artifact.version == same.version
    asked = len(server.asked)
    (target,) = fetched(store, "numeracy600k", from_=place, number="target")
    assert (len(server.asked), target.version == artifact.version) == (asked, False)


def test_by_default_it_is_the_zip_of_the_publishers() -> None:
    (origin,) = Numeracy600k().origins()
    (url,) = origin.files.values()
    assert url.startswith("https://github.com/aistairc/Numeracy-600K/")
    assert url.endswith(f"/{STEM}.zip")


@pytest.mark.integration
def test_splits_are_of_the_stated_size_and_depend_on_the_words_alone(tmp_path: Path) -> None:
    made = [title(id, f"{id} days of {chr(0x4E00 + id // 2)}", str(id)) for id in range(12_000)]
    path = str(written(tmp_path, made))
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", from_=path)
    assert abs(artifact.manifest.counts["rows_test"] - 2000) < 240
    path = str(written(tmp_path, made[::-2]))
    (fewer,) = fetched(Store(tmp_path / "store"), "numeracy600k", from_=path)
    whole = lines(artifact)
    assert all(whole[id]["split"] == row["split"] for id, row in lines(fewer).items())
    # Headlines that differ only in their number are in the same split.
    splits = [row["split"] for _, row in sorted(whole.items(), key=lambda pair: int(pair[0]))]
    assert splits[::2] == splits[1::2] and len(set(splits)) == 2


def test_encode_learns_the_labels(numtok: Shell, tmp_path: Path) -> None:
    path = written(tmp_path, [title(id, f"{id} days, not 5", str(id)) for id in range(1, 200)])
    ref = numtok("-q", "fetch", "numeracy600k", "--from", str(path)).out.strip()
    encoded = numtok("encode", "--scheme", "digits", ref)
    assert encoded.code == 0, encoded.err
    kept = numtok("-q", "fetch", "numeracy600k", "--from", str(path), "--number", "target")
    assert numtok("encode", "--scheme", "xval", kept.out.strip()).code == 0


def test_classes_go_by_the_digits_before_the_point() -> None:
    for label, numbers in enumerate(
        [
            *("0 0.99 .5", "1 9.999 2.41", "10 99", "100", "2010 2,010", "99999"),
            *("100000 999999.5", "1000000 123456789012345678901234567890"),
        ]
    ):
        for number in numbers.split():
            with case(number, label):
                assert magnitude(number) == label
                value = Decimal(number.replace(",", ""))
                assert label == sum(value >= 10**power for power in range(7))


def test_what_is_no_numeral_has_no_class() -> None:
    for number in ["٣", "1_0", "nan", "Infinity", "", "1e", "-"]:
        with case(number), pytest.raises(ValueError, match=r"is not a number$"):
            magnitude(number)


def test_a_numeral_beyond_all_contexts_has_a_class() -> None:
    assert magnitude("1e99999999999") == 7
    assert magnitude("-1e-99999999999") == 0


# --- the command -------------------------------------------------------------------------------


def test_the_command_prints_the_licence_and_what_was_counted(numtok: Shell, tmp_path: Path) -> None:
    rows = [*TITLES, title(11, "It is 3 now", "3", magnitude=2), title(12, "x 4", "4", offset=1)]
    path = written(tmp_path, rows)
    ran = numtok("fetch", "numeracy600k", "--from", str(path), "--on-error", "skip")
    assert ran.code == 0 and ran.out.startswith("numeracy600k@")
    told = [line.split() for line in ran.err.splitlines()]
    assert ["rows", "5"] in told
    assert ["rejected", "1"] in told and ["magnitude", "differs", "1"] in told
    assert "numtok: licence: CC BY-NC-SA 4.0, not for commercial use" in ran.err
    assert (
        f"numtok: left out: {path}: item 6 (id 12): the number is '4', but characters 1 to 2 are "
        "' '\n"
    ) in ran.err
    (artifact,) = Store(Path("artifacts")).artifacts()
    command = artifact.manifest.command
    assert " ".join(command) == (
        f"numtok fetch numeracy600k --name numeracy600k --from {path} --on-error skip"
    )
    again = json.loads(numtok(*command[1:], "--json").out)
    assert (again["made"], again["ref"]) == (False, ran.out.strip())


ONE = TITLES[0]
BAD: list[tuple[list[Any], list[str]]] = [
    ([{**ONE, "offset": 39}], ["item 1 (id 7)", "'2010'", "39 to 43 are ' 201'"]),
    ([{**ONE, "offset": -4}], ["item 1 (id 7)", "'2010'", "-4 to 0 are ''"]),
    ([{**ONE, "offset": 400}], ["item 1 (id 7)", "'2010'", "400 to 404 are ''"]),
    ([ONE, {**ONE, "magnitude": 8}], ["item 2 (id 7)", "8", "0 to 7"]),
    ([{**ONE, "magnitude": -1}], ["item 1 (id 7)", "-1", "0 to 7"]),
    ([{**ONE, "magnitude": "four"}], ["item 1 (id 7)", "a string", "'magnitude'"]),
    ([{key: ONE[key] for key in ONE if key != "number"}], ["item 1 (id 7)", "'number'"]),
    ([{**ONE, "number": "100 Most", "offset": 0, "length": 8}], ["item 1 (id 7)", "'100 Most'"]),
    ([{**ONE, "number": "Most", "offset": 4}], ["item 1 (id 7)", "'Most' is not a number"]),
    (["text"], ["item 1:", "a string"]),
]


@pytest.mark.integration
def test_a_row_that_cannot_be_used_is_one_clear_line(
    numtok: Shell, tmp_path: Path, says: Says
) -> None:
    for index, (rows, parts) in enumerate(BAD):
        with case(rows):
            path = written(tmp_path, rows)
            ran = numtok("fetch", "numeracy600k", "--from", str(path))
            assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
            says(ran.err, f"numtok: {path}: ", *parts, "--on-error skip")
            written(tmp_path, [*rows, title(99 + index, "9 lives", "9")])
            skip = ("--on-error", "skip", "--json")
            ran = numtok("fetch", "numeracy600k", "--from", str(path), *skip)
            assert json.loads(ran.out)["ref"].startswith("numeracy600k@")


WHOLE = json.dumps(TITLES).encode()


def test_a_file_without_a_list_of_rows_is_one_clear_line(
    numtok: Shell, tmp_path: Path, says: Says
) -> None:
    path = tmp_path / "titles.json"
    for content, parts in (
        (WHOLE[:-200], ["not JSON", "after 2 items"]),
        (WHOLE[:-1], ["not JSON", "the end of the file", "after 4 items"]),
        (WHOLE + b"[]", ["not JSON", "'['", "after 4 items"]),
        (b"", ["not JSON", "empty"]),
        (b"<html>", ["not JSON", "'<'", "HTML"]),
        (WHOLE[:30] + b"\xff" + WHOLE[30:], ["not JSON", "0xff in position 30"]),
        (b'{"article_title": ' + WHOLE + b"}", ["'article_title'", "list alone"]),
        (b"[]", ["no rows", "omit --from"]),
    ):
        with case(content):
            path.write_bytes(content)
            ran = numtok("fetch", "numeracy600k", "--from", str(path), "--on-error", "skip")
            assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
            says(ran.err, "numtok: ", *parts)
            assert not Store(Path("artifacts")).artifacts()


def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"a\.json is not JSON: maximum recursion"):
        list(items(tmp_path / "a.json", 1))


def test_a_zip_has_one_file_of_json(tmp_path: Path, says: Says) -> None:
    for names in ([], ["a.json", "b.json"]):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
            packed.writestr("readme", "x")
            for name in names:
                packed.writestr(name, "[]")
        with says.raises(DataError, f"{tmp_path}/a.zip", f"{len(names)} .json files", "npack it"):
            list(items(tmp_path / "a.zip", 1))


def test_a_damaged_zip_is_told(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.json", json.dumps(TITLES * 50))
    content = bytearray(buffer.getvalue())
    content[60:80] = bytes(20)
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(items(tmp_path / "a.zip", 1))
    assert str(caught.value).startswith(f"{tmp_path}/a.zip is a damaged zip file (")
    assert str(caught.value).endswith(". Download it again, or pass another copy: --from")


WRONG = [
    ("--set articles", ["--set ", "titles or comments (got 'articles')"]),
    ("--number hidden", ["--number ", "masked or target (got 'hidden')"]),
    ("--on-error stop", ["--on-error ", "fail or skip (got 'stop')"]),
    ("--placeholder x1", ["--placeholder", "'x1'", "without digits", "such as _"]),
    ("--placeholder a[NUM]", ["--placeholder", "'a[NUM]'", "without [PAD], [MASK]", "such as _"]),
    ("--placeholder * --number target", ["--placeholder", "--number masked"]),
    ("--set comments", ["--set comments needs --from FILE"]),
    ("--from nowhere.json", ["--from nowhere.json", "not found"]),
    ("--from .", ["--from .", f"no {STEM}.json or {STEM}.zip", "Name the file"]),
    ("--split test=2", ["--split 'test=2'", "between 0 and 1", "test=0.1,seed=3"]),
    ("--dry-run", ["--dry-run", "Remove --dry-run"]),
    ("--area 1,2,3,4", ["unknown option --area", "`numtok fetch numeracy600k --help`"]),
]


def test_what_cannot_be_fetched_is_told_in_one_line(numtok: Shell, says: Says) -> None:
    for arguments, parts in WRONG:
        with case(arguments):
            ran = numtok("fetch", "numeracy600k", *arguments.split())
            assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
            says(ran.err, "numtok: ", *parts)


def test_comments_are_read_from_the_full_release(tmp_path: Path) -> None:
    row = title(3, "Shares up 2.5 pct", "2.5")
    path = written(tmp_path, [{"comment": row.pop("title"), **row}])
    options = {"set": "comments", "from_": str(path), "placeholder": "<n>"}
    (artifact,) = fetched(Store(tmp_path / "store"), "numeracy600k", **options)
    assert artifact.name == "numeracy600k-comments"
    assert lines(artifact)["3"]["text"] == "Shares up <n> pct"


def test_a_sweep_says_to_fetch_texts_first(tmp_path: Path, says: Says) -> None:
    path = tmp_path / "a.toml"
    path.write_text('[fetch]\nsource = "numeracy600k"\n[train]\nhead = "pointwise"\n')
    with says.raises(
        UsageError,
        f"{path}: [fetch] numeracy600k",
        "provides texts. Fetch them first",
        "set data to their REF",
    ):
        read_sweep(path)


def test_any_write_may_fail_and_the_next_run_makes_it_whole(tmp_path: Path) -> None:
    path = str(written(tmp_path, [title(id, f"{id} days", str(id)) for id in range(50)]))
    (whole,) = fetched(Store(tmp_path / "whole"), "numeracy600k", from_=path)
    with installed(Plan("trace")) as faults:
        fetched(Store(tmp_path / "traced"), "numeracy600k", from_=path)
    writes = [at for at, line in enumerate(faults.trace, 1) if line.split()[0] == "write"]
    for at in writes:
        store = Store(tmp_path / str(at))
        with pytest.raises(StoreError), installed(Plan("eio", at)):
            fetched(store, "numeracy600k", from_=path)
        assert not store.artifacts()
        (made,) = fetched(store, "numeracy600k", from_=path)
        assert made.files() == whole.files()


# --- reading JSON piece by piece ---------------------------------------------------------------

NESTED = {"add": {"1": ["1 + 1 = 2", "é"], "2": []}, "sub": {}, "get": {"3": [None, 12.5, [3]]}}


@pytest.fixture(params=[1, 2, 3, 7, 1000])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Set how much of a file is read at once."""
    monkeypatch.setattr(files, "PIECE", request.param)
    return int(request.param)


@pytest.mark.usefixtures("piece")
def test_items_are_those_of_the_whole_wherever_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text in (json.dumps(NESTED, indent=2, ensure_ascii=False), json.dumps(NESTED)):
        path.write_text(text, "utf-8")
        assert list(items(path, 3)) == [
            (("add", "1"), "1 + 1 = 2"),
            (("add", "1"), "é"),
            (("get", "3"), None),
            (("get", "3"), 12.5),
            (("get", "3"), [3]),
        ]
        assert list(items(path, 1)) == [((key,), value) for key, value in NESTED.items()]
        assert list(items(path, 0)) == [((), NESTED)]
    path.write_text("\ufeff [ 123 ,45 ] \n", "utf-8")
    assert [value for _, value in items(path, 1)] == [123, 45]


@pytest.mark.usefixtures("piece")
def test_what_only_python_takes_is_refused(tmp_path: Path) -> None:
    for text, message in [
        ('[1, {"a": 1, "b": {"c": 1, "c": 2}}]', "not JSON: the key 'c' appears twice"),
        ('[1, {"a": 1, "\\u0061": 2}]', "not JSON: the key 'a' appears twice"),
        ("[1, {'a': NaN}]".replace("'", '"'), "not JSON: it contains NaN"),
        ("[1, -Infinity]", "not JSON: it contains -Infinity"),
        (r'[1, ["\ud83d."]]', "not JSON: a string has half a surrogate pair"),
        (r'[1, {"\uDE00": 1}]', "not JSON: a string has half a surrogate pair"),
    ]:
        with case(text, message):
            path = tmp_path / "a.json"
            path.write_text(text)
            with pytest.raises(DataError) as caught:
                list(items(path, 1))
            assert str(caught.value).startswith(f"{path} is {message}")
            assert "(after 1 items). Download it again" in str(caught.value)
            path.write_text(r'[1, {"a": ["\ud83d\ude00 \\ud8"]}]')
            assert [value for _, value in items(path, 1)] == [1, {"a": ["\U0001f600 \\ud8"]}]


@pytest.mark.usefixtures("piece")
def test_what_is_no_list_is_told_wherever_it_is_cut(tmp_path: Path) -> None:
    for text in ["[1, 2", "[1 2]", "[1,]", "[", "[1, 2]]", '["a', '{"a" 1}', "7"]:
        with case(text):
            path = tmp_path / "a.json"
            path.write_text(text)
            with pytest.raises(DataError) as caught:
                list(items(path, 1))
            assert str(caught.value).startswith(f"{path} is not JSON: ")


@pytest.mark.integration
def test_a_large_file_is_read_with_little_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "a.json"
    row = json.dumps(title(1, "100 " + "x" * 400, "100"))
    with path.open("w") as file:
        file.write("[" + ",".join([row] * 40_000) + "]")
    tracemalloc.start()
    try:
        count = sum(1 for _ in items(path, 1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < path.stat().st_size / 2


def test_an_item_that_never_ends_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_json_items, "_LARGEST", 1000)
    monkeypatch.setattr(files, "PIECE", 100)
    path = tmp_path / "a.json"
    path.write_text('["' + "x" * 10_000)
    with pytest.raises(DataError) as caught:
        list(items(path, 1))
    assert "an item of more than 1,000 characters" in str(caught.value)
