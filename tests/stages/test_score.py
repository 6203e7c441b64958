"""``numtok score``: files of answers, output and errors."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases import case
from tests.messages import Says
from tests.shell import Shell

SHARED = Path(__file__).resolve().parents[3] / "shared/cases/answers/answers.jsonl"
GOLD = [{"id": f"q{n}", "truth": n * 11} for n in range(20)]


def written(path: str, *rows: object) -> str:
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def said(wrong: int, **more: Any) -> list[dict[str, Any]]:
    """Return answers to all questions in reverse order. The first ``wrong`` questions get a wrong
    answer."""
    rows = [
        {"id": row["id"], "answer": f"It is **{row['truth']}**." if n >= wrong else "5000"} | more
        for n, row in enumerate(GOLD)
    ]
    return rows[::-1]


def printed(numtok: Shell, *arguments: str) -> dict[str, Any]:
    ran = numtok("score", *arguments, "--json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)
    return found


def exact(found: dict[str, Any], model: int = 0, rule: int = 0) -> float:
    value: float = found["models"][model]["rules"][rule]["metrics"]["exact-match"]["value"]
    return value


def test_two_files_are_joined_by_id(numtok: Shell) -> None:
    gold, answers = written("gold.jsonl", *GOLD), written("a.jsonl", *said(5))
    found = printed(numtok, answers, "--truth", gold, "--rule", "last-number", "--rule", "strict")
    assert found["rows"] == 20
    assert [own["rule"] for own in found["models"][0]["rules"]] == ["last-number", "strict"]
    assert (exact(found), exact(found, rule=1)) == (0.75, 0)


def test_one_file_needs_no_ids(numtok: Shell) -> None:
    rows = [
        {"answer": 4, "truth": "4"},
        {"answer": None, "truth": 5},
        {"answer": "6", "truth": 7.0},
    ]
    found = printed(numtok, written("a.jsonl", *rows), "--rule", "last-number")
    assert exact(found) == pytest.approx(1 / 3)
    own = found["models"][0]["rules"][0]["metrics"]
    assert own["number-generation-ratio"]["value"] == pytest.approx(2 / 3)


def test_numbers_in_json_stay_as_written(numtok: Shell) -> None:
    Path("a.jsonl").write_text('{"answer": "0.10", "truth": 0.10}\n{"answer": 1e2, "truth": 100}\n')
    found = printed(numtok, "a.jsonl", "--rule", "strict", "--out", "read.jsonl")
    assert exact(found) == 0.5  # 1e2 and 100 differ as text
    first, second = map(json.loads, Path("read.jsonl").read_text().splitlines())
    assert first == {
        "id": "1",
        "truth": "0.10",
        "models": {"a": {"strict": {"number": "0.10", "right": True}}},
    }
    assert second["models"]["a"]["strict"] == {"number": None, "right": False}


def test_numbers_in_json_have_points_where_texts_have_commas(numtok: Shell) -> None:
    rows = [("1,234", 1.234), ("2,5", 2.500), (0.125, "0,125")]
    path = written("a.jsonl", *({"answer": answer, "truth": truth} for answer, truth in rows))
    assert exact(printed(numtok, path, "--rule", "strict", "--numbers", "decimal=comma")) == 1


def test_clusters_of_any_file_count(numtok: Shell, says: Says) -> None:
    gold = written("gold.jsonl", *GOLD)
    alone, inside = written("a.jsonl", *said(5)), written("b.jsonl", *said(5, cluster="c"))
    for files in ((alone, inside), (inside, alone)):
        found = printed(numtok, *files, "--truth", gold, "--rule", "last-number")
        assert found["clusters"] == 1
    other = written("c.jsonl", *said(5, cluster="d"))
    says.refused(numtok("score", inside, other, "--truth", gold), 3, "c.jsonl:", "'d'", "'c'")
    named = numtok("score", inside, "--truth", gold, "--cluster-field", "clusterr")
    says.refused(named, 2, "--cluster-field 'clusterr'", "no row")


def test_a_difference_says_which_rows_it_counts(numtok: Shell) -> None:
    gold = written("gold.jsonl", *GOLD)
    files = [written("a.jsonl", *said(0)), written("b.jsonl", *said(0))]
    arguments = ("score", *files, "--truth", gold, "--rule", "last-number")
    lmae = ("--compare-by", "lmae,skip=yes")
    assert "over the rows that count" not in numtok(*arguments, *lmae).out
    written("b.jsonl", *(row | {"answer": None} if n < 8 else row for n, row in enumerate(said(0))))
    ran = numtok(*arguments, *lmae)
    assert ran.err == ""
    assert "rows that count for both models (12 or more of 20)" in " ".join(ran.out.split())


def test_fields_are_named_also_nested_ones(numtok: Shell) -> None:
    rows = [
        {"doc_id": 3, "resps": [["x", "#### 18"]], "doc": {"final": "so\n#### 18", "who": "a"}},
        {"doc_id": 4, "resps": [["x", "#### 19"]], "doc": {"final": "9 + 9\n#### 18", "who": "a"}},
    ]
    path = Path("log.jsonl.gz")
    path.write_bytes(gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode()))
    fields = ("--answer-field", "resps.0.1", "--truth-field", "doc.final", "--id-field", "doc_id")
    more = ("--cluster-field", "doc.who", "--truth-rule", "after:####")
    found = printed(numtok, str(path), *fields, *more, "--rule", "after:####")
    assert (exact(found), found["clusters"]) == (0.5, 1)


def test_models_are_compared(numtok: Shell) -> None:
    gold = written("gold.jsonl", *GOLD)
    files = [written(f"{name}.jsonl", *said(wrong)) for name, wrong in (("a", 10), ("b", 2))]
    arguments = ("score", *files, "--truth", gold, "--rule", "last-number")
    ran = numtok(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert "difference in exact-match from a" in ran.out and "0.0078" in ran.out
    rows = list(csv.DictReader(io.StringIO(numtok(*arguments, "--format", "csv").out)))
    [difference] = [row for row in rows if row["kind"] == "difference"]
    assert float(difference["figure"]) == pytest.approx(8 / 20)
    assert float(difference["p"]) == float(difference["p_holm"]) == 2 / 2**8
    assert {row["model"] for row in rows} == {"a", "b"}
    assert "| b | 18 |" in numtok(*arguments, "--format", "md").out


def test_thresholds_decide_the_exit_code(numtok: Shell, says: Says) -> None:
    path = written("a.jsonl", *(row | {"answer": 11} for row in GOLD))
    rule = ("--rule", "last-number")
    assert numtok("score", path, *rule, "--require", "exact-match>=0.05").code == 0
    missed = numtok("score", path, *rule, "--require", "exact-match>=0.9")
    assert missed.code == 1
    says(missed.err, "a has 0.05", "exact-match>=0.9")


def test_rows_without_a_partner_are_refused_or_counted(numtok: Shell, says: Says) -> None:
    gold = written("gold.jsonl", *GOLD)
    bad: list[tuple[list[dict[str, Any]], tuple[str, ...], int]] = [
        (said(0)[:15], ("lacks 5 of the 20 ids", "'q0'"), 15),
        ([*said(0), {"id": "q99", "answer": "1"}], ("lacks 1 of the 21 ids", "'q99'"), 20),
        ([*said(0), said(0)[3]], ("a.jsonl:21: ", "twice", "'q16'"), 20),
    ]
    for rows, parts, left in bad:
        with case(*parts):
            path = written("a.jsonl", *rows)
            ran = numtok("score", path, "--truth", gold)
            says.refused(ran, 3, *parts, "--on-error skip")
            found = printed(numtok, path, "--truth", gold, "--on-error", "skip")
            assert found["rows"] == left and sum(found["left_out"].values()) > 0


def test_rows_that_cannot_be_scored_are_one_line(numtok: Shell, says: Says) -> None:
    cases: list[tuple[list[object], tuple[str, ...], tuple[str, ...]]] = [
        ([{"answer": "1"}], (), ("a.jsonl:1: ", "'truth'", "--truth-field", "--truth")),
        ([{"truth": "1"}], (), ("a.jsonl:1: ", "'answer'", "--answer-field")),
        ([{"answer": "1", "truth": None}], (), ("a.jsonl:1: ", "null", "--on-error skip")),
        ([{"answer": ["1"], "truth": 1}], (), ("a.jsonl:1: ", "'answer' must be", "an array")),
        ([{"answer": True, "truth": 1}], (), ("a.jsonl:1: ", "'answer' must be", "a boolean")),
        ([[1, 2]], (), ("a.jsonl:1: ",)),
        ([], (), ("a.jsonl", "no answer")),
        ([{"answer": "1"}], ("--truth", "gold.jsonl"), ("a.jsonl:1: ", "'id'", "--id-field")),
        ([{"id": None, "answer": "1"}], ("--truth", "gold.jsonl"), ("a.jsonl:1: ", "'id'", "null")),
    ]
    written("gold.jsonl", *GOLD)
    for rows, options, parts in cases:
        with case(rows, options):
            path = written("a.jsonl", *rows)
            says.refused(numtok("score", path, *options), 3, *parts)


def test_answers_in_a_table_are_to_be_converted(numtok: Shell, says: Says) -> None:
    for name, kind, separator in (("a.csv", "CSV", ","), ("a.tsv", "TSV", "\t")):
        Path(name).write_text("id,answer,truth\n1,5,5\n".replace(",", separator))
        says.refused(numtok("score", name), 2, f"{name} is {kind}", "JSON Lines")


def test_two_files_must_agree_on_the_true_values(numtok: Shell, says: Says) -> None:
    written("a.jsonl", {"id": 1, "answer": "1", "truth": 1})
    written("b.jsonl", {"id": 1, "answer": "1", "truth": 2})
    says.refused(numtok("score", "a.jsonl", "b.jsonl"), 3, "b.jsonl:1: ", "'2'", "'1'", "a.jsonl:1")


def test_options_that_do_not_fit_are_one_line(numtok: Shell, says: Says) -> None:
    path = written("a.jsonl", *(row | {"answer": 11} for row in GOLD))
    for options, parts in (
        (("--rule", "lst"), ("'lst'", "last-number")),
        (("--truth-rule", "after:["), ("regular expression",)),
        (("--metric", "crps"), ("'crps'", "exact-match")),
        (("--compare-by", "accuracy"), ("'accuracy'",)),
        (("--require", "exact-match>=0.5"), ("--require", "--rule", "got 0")),
        (("--answers", "b.jsonl"), ("--answers", "--benchmark nupa")),
        (("--split", "train"), ("--split", "--benchmark nupa")),
        (("--truth", "absent.jsonl"), ("absent.jsonl", "not found")),
        (("--numbers", "roman"), ("'roman'",)),
        ((path,), ("a.jsonl", "twice")),
        (("--benchmark", "nupa", "--id-field", "key"), ("--id-field", "--benchmark nupa")),
        (("b.jsonl", "--benchmark", "nupa"), ("--benchmark nupa", "got 2")),
    ):
        with case(options):
            says.refused(numtok("score", path, *options), 2, *parts)


@pytest.mark.skipif(not SHARED.is_file(), reason="needs ../shared/cases/answers")
def test_the_shared_answers_have_their_known_scores(numtok: Shell) -> None:
    ran = numtok("score", str(SHARED), "--out", "read.jsonl")
    assert (ran.code, ran.err) == (0, "")
    verdicts = {row["id"]: row for row in map(json.loads, SHARED.read_text("utf-8").splitlines())}
    read = {row["id"]: row for row in map(json.loads, Path("read.jsonl").read_text().splitlines())}
    assert read.keys() == verdicts.keys()
    for rule, verdict, right in (
        ("last-number", "right_by_value", 294),
        ("strict", "right_strict", 45),
    ):
        found = {id: row["models"]["answers"][rule]["right"] for id, row in read.items()}
        assert sum(found.values()) == right
        assert found == {id: bool(row[verdict]) for id, row in verdicts.items()}
