"""``numtok predict``: unknown numbers get the same predictions as known numbers in ``eval``."""

import gzip
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numtok.encoding.holes import HOLE
from numtok.errors import DataError
from numtok.evaluation import text_rows
from numtok.evaluation.text_rows import Query, RowPrediction, outgoing, predict_texts, read_rows
from numtok.reports import QUANTILES, quantile_column
from numtok.settings.predict import Config
from numtok.store.artifact import Artifact
from numtok.training.model_json import TextModelFile, read_model_file
from tests.cases import case
from tests.chain import generated, predictions_of, standard_input, there
from tests.messages import Says
from tests.shell import Ran, Shell
from tests.stages.test_eval import World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMTOK_THREADS", "1")
        yield World(tmp_path_factory.mktemp("predict"))


def text_file(model: Artifact) -> TextModelFile:
    file = read_model_file(model)
    assert isinstance(file, TextModelFile)
    return file


def asked(world: World, model: Artifact, *texts: str, **options: Any) -> list[RowPrediction]:
    rows = map(Query.of_text, texts)
    config = Config(model.ref, "rows", **options)
    return [
        said
        for _, said in predict_texts(
            config, model, text_file(model), rows, print, find=world.store.find
        )
    ]


def of_test_split(artifact: Artifact) -> list[dict[str, Any]]:
    return list(
        map(json.loads, (artifact.path / "test-00000.jsonl").read_text("utf-8").splitlines())
    )


def holed(row: dict[str, Any], said: str = HOLE) -> str:
    """Return the text of a row with its answer replaced."""
    ((begin, end),) = row["targets"]["answer"]
    return str(row["text"][:begin] + said + row["text"][end:])


def evaluated(world: World, model: Artifact, data: Artifact, **options: Any) -> dict[str, Any]:
    """Return the predictions of a report by row id."""
    return {row["id"]: row for row in predictions_of(world.report(model, data, **options))}


WAYS: list[tuple[str, str, dict[str, Any]]] = [
    ("p1000", "mlm", {}),
    ("p1000", "mlm", {"point": "median"}),
    ("p10", "mlm", {"fill": "left-to-right"}),
    ("fp15", "ar", {}),
    ("digits", "ar", {}),
    ("digits", "ar", {"decode": "free"}),
    ("numvalue", "numvalue", {}),
    ("digits", "ar", {"draws": 8, "point": "mean"}),
]


@pytest.mark.parametrize(("scheme", "objective", "options"), WAYS)
def test_what_is_said_is_what_eval_says(
    world: World, scheme: str, objective: str, options: dict[str, Any]
) -> None:
    data = world.encoded(scheme)
    model = world.by_chance(data, objective, text=-20.0)
    report = evaluated(world, model, data, **options)
    rows = of_test_split(world.data())
    found = asked(world, model, *map(holed, rows), **options)
    assert len(rows) == len(found) == len(report)
    literals = set()
    for row, one in zip(rows, found, strict=True):
        true = report[row["id"]]
        (number,) = there(one.numbers)
        literals.add(number["literal"])
        if not true["valid"]:
            assert (number, one.text) == ({"literal": None, "value": None}, holed(row))
            continue
        if "draws" in options:  # samples depend on the index of the number
            assert number["literal"] == f"{number['value']:.7g}"
        elif options.get("point"):
            assert number["literal"] == f"{true['prediction']:.7g}"
        else:
            assert number["literal"] == true["prediction_literal"]
        assert "draws" in options or number["value"] == true["prediction"]
        assert one.text == holed(row, number["literal"])
        columns = [quantile_column(level) for level in QUANTILES]
        if "draws" not in options:
            known = {name: true[name] for name in columns if true[name] is not None}
            told = {name: number[name] for name in columns if name in number}
            assert told == pytest.approx(known)
        assert ("q05" in number) == (true["q05"] is not None)
    assert len(literals) > 1


def test_a_value_head_says_as_many_digits_as_it_has(world: World) -> None:
    data = world.encoded("xval")
    model = world.model(data)
    (true, *_) = evaluated(world, model, data).values()
    (row, *_) = of_test_split(world.data())
    (one,) = asked(world, model, holed(row))
    (number,) = there(one.numbers)
    assert number["literal"] == f"{true['prediction']:.7g}"
    assert number["q05"] < number["q50"] < number["q95"]
    assert number["q95"] == pytest.approx(true["q95"], rel=1e-5)


def test_an_autoregressive_model_goes_on_behind_its_own_numbers(world: World) -> None:
    model = world.by_chance(world.encoded("digits"), "ar", text=-20.0)
    (both,) = asked(world, model, f"{HOLE} + {HOLE} = ")
    first, second = (one["literal"] for one in there(both.numbers))
    (alone,) = asked(world, model, f"{first} + {HOLE} = ")
    assert both.text == alone.text == f"{first} + {second} = "
    # Rows with different numbers of holes keep their order.
    texts = [f"{HOLE} = {HOLE} = {HOLE}", "3 + 4 = " + HOLE, f"{HOLE} + {HOLE} = "]
    several = asked(world, model, *texts)
    assert several == [asked(world, model, text)[0] for text in texts]
    assert several[2] == both


def test_a_masked_model_fills_in_all_holes_together_some_rows_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = world.by_chance(world.encoded("p1000"), "mlm")
    (both,) = asked(world, model, f"{HOLE} + {HOLE} = 7")
    first, second = (one["literal"] for one in there(both.numbers))
    assert both.text == f"{first} + {second} = 7"
    texts = [f"{n} + {HOLE} = 7" for n in range(7)]
    whole = asked(world, model, *texts)
    monkeypatch.setattr(text_rows, "_ROWS", 3)
    assert [one.text for one in asked(world, model, *texts)] == [one.text for one in whole]
    assert asked(world, model) == []


def test_what_is_no_number_stays_a_hole(world: World) -> None:
    model = world.by_chance(world.encoded("digits"), "ar", text=20.0)  # writes text
    (one,) = asked(world, model, f"1 + {HOLE} = {HOLE}", decode="free")
    nothing = {"literal": None, "value": None}
    assert one == RowPrediction(text=f"1 + {HOLE} = {HOLE}", numbers=[nothing, nothing])


def test_labels_are_those_of_eval(world: World) -> None:
    rows = [
        {"id": str(n), "text": f"is {n % 7}.5 more than {n % 5}", "label": "no" if n % 3 else "yes",
         "split": "test" if n > 40 else "train"} for n in range(60)
    ]  # fmt: skip
    data = world.encoded("xval", world.write("labels", rows))
    model = world.model(data, "classify")
    report = evaluated(world, model, data)
    tested = rows[41:]
    found = asked(world, model, *(str(row["text"]) for row in tested))
    assert [one.label for one in found] == [report[str(row["id"])]["prediction"] for row in tested]
    assert all(one.probability is not None and 0.5 <= one.probability <= 1 for one in found)
    assert {one.text for one in found} == {None}


@pytest.mark.parametrize("scheme", ["digits", "numerologic:answer", "xval"])
def test_answers_are_those_of_eval(world: World, scheme: str) -> None:
    spec = "nupa,tasks=add_Integer+add_Fraction,digits=1..3,train=12,validation=0,test=3"
    asking = generated(world.store, spec, name="sums")
    data = world.encoded(scheme, asking.ref)
    steps = 5 if scheme == "xval" else 150  # enough for answers to end; xval's are not compared
    model = world.model(data, "ar", steps=steps, batch=16)
    report = evaluated(world, model, data, fill="answers")
    rows = of_test_split(asking)
    asking_texts = [row["text"][: row["answer_start"]] for row in rows]
    found = asked(world, model, *asking_texts, fill="answers")
    # Answers that the rows already have are ignored.
    lines = read_rows(world.write("with-answers", rows))
    config = Config(model.ref, "rows", fill="answers")
    assert [
        one
        for _, one in predict_texts(
            config, model, text_file(model), lines, print, find=world.store.find
        )
    ] == found
    compared = 0
    for row, one in zip(rows, found, strict=True):
        true = report[row["id"]]
        if true["ended"] and one.ended and scheme != "xval":
            assert one.answer == true["prediction"]
            compared += 1
        assert one.answer is not None and (one.text, one.numbers) == (None, None)
    assert compared > 3 or scheme == "xval"


def test_a_pipe_is_read_as_a_file_is(world: World, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    row = b'{"text": "3 + [?] = 7"}\n'
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(row,))
    writer.start()
    (read,) = read_rows(str(tmp_path / "pipe"))
    writer.join()
    assert read.line == row.strip()


def test_numbers_out_of_range_are_told(world: World, says: Says) -> None:
    texts = [f"3 + {HOLE} = 7", f"1e80 + {HOLE} = 2e90"]
    told = f"p1000 cannot represent 2 numbers in rows from '3 + {HOLE} = 7' on"
    for scheme, objective in (("p1000", "mlm"), ("p1000", "ar")):
        model = world.by_chance(world.encoded(scheme), objective, text=-20.0)
        rows, notes = map(Query.of_text, texts), list[str]()
        config = Config(model.ref, "rows")
        assert (
            len(
                list(
                    predict_texts(
                        config, model, text_file(model), rows, notes.append, find=world.store.find
                    )
                )
            )
            == 2
        )
        [note] = notes
        says(note, told, "nearest number")


# --- the command -------------------------------------------------------------------------------


def predicted(ran: Ran) -> list[object]:
    return [json.loads(line)["predicted"] for line in ran.out.splitlines()]


def test_lines_come_out_as_they_were(numtok: Shell, world: World, tmp_path: Path) -> None:
    model = world.by_chance(world.encoded("p1000"), "mlm")
    store = ("--store", str(world.store.root))
    lines = ['{"text": "é + [?] = 7", "n": 1.10,  "id": 12345678901234567890}', "",
             '  {"more": [1], "text":"2 + [?] = 7"}  ']  # fmt: skip
    content = "\n".join(lines).encode()
    (tmp_path / "rows.jsonl").write_bytes(content)
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(content))
    ran = numtok("predict", model.ref, "rows.jsonl", *store)
    assert (ran.code, ran.err) == (0, "")
    found = asked(world, model, "é + [?] = 7", "2 + [?] = 7")
    rows = (Query("", line.strip().encode(), "") for line in lines if line)
    assert ran.out.encode() == b"".join(map(outgoing, rows, found))
    assert ran.out.startswith('{"text": "é + [?] = 7", "n": 1.10,  "id": 12345678901234567890,"pre')
    assert numtok("predict", model.ref, "rows.jsonl.gz", *store) == ran
    for given in ("rows.jsonl", "rows.jsonl.gz"):
        with standard_input(tmp_path / given):
            assert numtok("predict", model.ref, "-", *store) == ran
    two = numtok("predict", model.ref, "--text", "é + [?] = 7", "--text", "2 + [?] = 7", *store)
    told = predicted(ran)
    assert predicted(two) == told
    renamed = content.replace(b'"text"', b'"said"')
    (tmp_path / "renamed.jsonl").write_bytes(renamed)
    other = numtok("predict", model.ref, "renamed.jsonl", "--text-field", "said", *store)
    assert other.out.replace('"said"', '"text"') == ran.out
    nested = re.sub(rb'"text": ?("[^"]*")', rb'"doc": {"body": \1}', content)
    (tmp_path / "nested.jsonl").write_bytes(b"\xef\xbb\xbf" + nested)
    inner = numtok("predict", model.ref, "nested.jsonl", "--text-field", "doc.body", *store)
    assert predicted(inner) == told


NO_HOLE = f"no {HOLE}", "--fill answers"
REFUSED: dict[str, tuple[str, ...]] = {
    '{"text": "3 + 4 = 7"}': NO_HOLE,
    '{"text": "3 + x[?] = 7"}': ("'3 + x[?] = 7' ", "spaces around it"),
    '{"text": "3 + 1[?] = 7"}': ("'3 + 1[?] = 7' ", "spaces around it"),
    '{"text": "3 + -[?] = 7"}': ("'3 + -[?] = 7' ", "spaces around it"),
    '{"text": "3 + [?]5 = 7"}': ("'3 + [?]5 = 7' ", "spaces around it"),
    '{"text": "3 + [?][?]"}': ("'3 + [?][?]' ", "spaces around it"),
    '{"text": "[?]", "answer_start": 4}': ("answer_start", "(got 4)", "3 characters"),
    '{"text": 3}': ("'text'", "must be a string", "an integer"),
    '{"id": "3"}': ("the field 'text' is missing", "--text-field"),
    '{"text": "[?]", "text": "[?]"}': ("'text' appears twice",),
    '{"text": "[?]", "predicted": 1}': ("'predicted'", "Rename it"),
    '{"text": "' + "is " * 80 + '[?]"}': (
        "243 tokens",
        "{model} reads at most {context}.",
        "--preset",
    ),
}


def test_a_percent_sign_goes_along_with_a_number_that_takes_it(world: World, says: Says) -> None:
    texts = [{"id": str(n), "text": f"{n} and {n}%", "split": "train"} for n in range(20)]
    path = f"train={world.write('percent', texts)}"
    encoded = world.encoded("p10", path, numerals="percent")
    model = world.model(encoded, "mlm", steps=2, batch=8)
    told = "'3 and [?]%': ", "A % is part of the number here", "in place of both"
    with says.raises(DataError, *told):
        asked(world, model, "3 and [?]%")
    [said] = asked(world, model, "3 and [?]")
    assert said.text is not None


@pytest.mark.parametrize("objective", ["mlm", "ar"])
def test_rows_that_cannot_be_asked_are_told_in_one_line(
    numtok: Shell, world: World, tmp_path: Path, objective: str, says: Says
) -> None:
    model = world.by_chance(world.encoded("p1000"), objective, text=-20.0)
    context = 32 if objective == "mlm" else 31
    for line, told in REFUSED.items():
        with case(line):
            (tmp_path / "a.jsonl").write_text(f'{{"text": "1 + [?] = 7"}}\n{line}\n', "utf-8")
            ran = numtok("predict", model.ref, "a.jsonl", "--store", str(world.store.root))
            assert (ran.code, ran.err.count("\n")) == (3, 1)
            parts = (part.format(model=model.ref, context=context) for part in told)
            says(ran.err, "numtok: a.jsonl:2", *parts)


def test_what_a_model_cannot_be_asked_is_told_in_one_line(
    numtok: Shell, world: World, tmp_path: Path, says: Says
) -> None:
    store = ("--store", str(world.store.root))
    p1000 = world.by_chance(world.encoded("p1000"), "mlm").ref
    digits = world.by_chance(world.encoded("digits"), "mlm").ref
    ar = world.by_chance(world.encoded("digits"), "ar").ref
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{n},{n * n}\n" for n in range(40)), "utf-8")
    fitted = numtok("train", "t.csv", "--target", "y", "--epochs", "1", *store).out.split()[-1]
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "[?]"}\n' * 99)[:-12])
    asked = (p1000, "--text", HOLE)
    cases: list[tuple[tuple[str, ...], int, tuple[str, ...]]] = [
        ((p1000,), 2, ("either FILE or --text",)),
        ((p1000, "a.jsonl"), 2, ("a.jsonl: file not found",)),
        ((p1000, "t2.csv"), 2, ("t2.csv: file not found", "'t.csv'")),
        ((p1000, "t.csv"), 2, ("t.csv is a table", "Pass JSONL with texts")),
        ((*asked, "--text-field", "a"), 2, ("--text-field does not apply to --text", "Remove it")),
        ((p1000, "x.jsonl", "--text-field", "predicted"), 2, ("'predicted'", "Name the field")),
        ((p1000, "--text", "\udcff " + HOLE), 2, ("--text must be UTF-8", "'\\udcff [?]'")),
        ((p1000, "--text", "long " * 20), 3, (f"'{'long ' * 8} ...': ", *NO_HOLE)),
        ((ar, "--text", f"3 + {HOLE}", "--fill", "answers"), 3, ("'3 + [?]': ", "--fill answers")),
        ((p1000, "."), 2, (". is a folder", "standard input")),
        ((p1000, "cut.jsonl.gz"), 3, ("cut.jsonl.gz cannot be read: ",)),
        ((*asked, "--fill", "answers"), 2, ("--fill answers", p1000, "parallel or left-to-right")),
        ((*asked, "--point", "best"), 2, ("--point must be mode, median, mean or raft", "'best'")),
        ((*asked, "--point", "raft"), 2, ("--point 'raft'", "mode, median, mean")),
        ((digits, "--text", HOLE), 2, (digits, "masks", "with digits.", "--objective ar")),
        ((*asked, "--fold", "1"), 2, ("--fold ", "of texts", "Remove it")),
        ((fitted, "--text", HOLE), 2, ("--text ", "of tables", "Remove it")),
    ]
    for words, code, told in cases:
        with case(" ".join(words)):
            says.refused(numtok("predict", *words, *store), code, *told)
