"""Candidates of a race, and the reasons for leaving others out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from numtok.arrays import Floats
from numtok.encoding.schemes.base import SCHEMES, is_exact
from numtok.errors import UsageError
from numtok.models.heads.base import HEADS
from numtok.stages import profile
from numtok.store.store import Store
from numtok.sweeps.race.candidates import (
    Entrant,
    Verdict,
    judged,
    judged_heads,
    table_entries,
    text_entries,
)
from numtok.sweeps.race.words import FieldSummary
from tests.cases import each


def profiled(folder: Path, values: Sequence[float], *schemes: str) -> profile.Profile:
    path = folder / "rows.jsonl"
    lines = [json.dumps({"text": f"the value is {value!r} here"}) for value in values]
    path.write_text("\n".join(lines) + "\n")
    config = profile.Config((str(path),), schemes=schemes)
    return profile.run(config, Store(folder / "artifacts"), lambda *_: None)


def by_name(verdicts: Sequence[Verdict]) -> dict[str, Verdict]:
    return {one.scheme: one for one in verdicts}


@pytest.fixture
def plain(tmp_path: Path) -> profile.Profile:
    values = np.random.default_rng(0).uniform(1, 99, 400).round(2).tolist()
    return profiled(tmp_path, values)


def test_every_scheme_there_is_has_a_verdict_with_a_reason(plain: profile.Profile) -> None:
    verdicts = judged(plain, ())
    assert {one.scheme.partition(",")[0] for one in verdicts} == set(SCHEMES)
    assert all(one.reason for one in verdicts)


def test_a_scheme_with_more_tokens_than_numbers_is_out(plain: profile.Profile) -> None:
    fp15 = by_name(judged(plain, ()))["fp15"]
    assert not fp15.takes_part and "400 numbers" in fp15.reason


def test_a_scheme_that_cannot_write_the_numbers_is_out(tmp_path: Path) -> None:
    found = by_name(judged(profiled(tmp_path, [1e15 + k for k in range(50)]), ()))
    assert not found["p1000"].takes_part and "100%" in found["p1000"].reason
    assert found["digits"].takes_part


def test_a_scheme_that_rounds_away_what_numbers_differ_in_is_out(tmp_path: Path) -> None:
    found = by_name(judged(profiled(tmp_path, [100_000 + k for k in range(90)]), ()))
    assert not found["p1000"].takes_part and "rounding" in found["p1000"].reason


def test_what_is_named_takes_part_and_is_told_what_it_loses(tmp_path: Path) -> None:
    found = profiled(tmp_path, [100_000 + k for k in range(90)], "p1000")
    [verdict] = judged(found, ("p1000",))
    assert verdict.takes_part and "rounding" in verdict.reason and "named" in verdict.reason


def test_candidates_are_schemes_as_usual_then_other_heads_of_values(
    plain: profile.Profile,
) -> None:
    verdicts = judged(plain, ())
    entries = text_entries(plain, verdicts)
    usual = [one for one in entries if one.head is None and one.normalize is None]
    found = {one.scheme for one in usual}
    assert found == {one.scheme for one in verdicts if one.takes_part}
    assert "fone,whole=2,decimals=2" in found
    assert usual[0].scheme == "xval"
    lengths = {one.scheme: one.tokens_per_row or 0 for one in plain.schemes}
    known = [lengths[one.scheme] for one in usual if one.scheme in lengths]
    assert known == sorted(known)  # short encodings first: they train on more rows per minute
    others = {one.scheme for one in entries if one.head is not None}
    assert others == {"xval"}
    assert len({one.label for one in entries}) == len(entries)


def test_what_is_of_all_digits_races_as_it_is_used_alone(plain: profile.Profile) -> None:
    """Exact schemes race only with their own parts: those reject scaled data, and the embedder may
    need a wide model."""
    entries = text_entries(plain, judged(plain, ()))
    exact = [one for one in entries if is_exact(SCHEMES.build(one.scheme))]
    assert sorted(exact, key=lambda one: one.scheme) == [
        Entrant(scheme="base10"),
        Entrant(scheme="bits", embedder="bits:linear"),
        Entrant(scheme="fone,whole=2,decimals=2"),  # as many digits as the numbers have
    ]
    assert not {"base10", "fone", "bits"} & {one.head for one in entries}


def test_settings_that_are_named_are_kept(plain: profile.Profile) -> None:
    verdicts = [Verdict("fone,whole=6,decimals=0", True, "")]
    assert text_entries(plain, verdicts) == [Entrant(scheme="fone,whole=6,decimals=0")]


def test_numbers_of_several_lengths_are_read_from_left_to_right(plain: profile.Profile) -> None:
    found = {one.scheme: one for one in text_entries(plain, judged(plain, ()))}
    assert found["digits"].objective == "ar" and found["p10"].objective is None
    assert found["numvalue"].objective == "numvalue"


def test_a_logarithm_races_where_numbers_have_a_heavy_tail(tmp_path: Path) -> None:
    values = np.random.default_rng(0).lognormal(0, 3, 400).round(3).tolist()
    found = profiled(tmp_path, values)
    labels = {one.label for one in text_entries(found, judged(found, ()))}
    assert "xval, normalize=signed-log" in labels


def test_what_a_profile_recommends_races_first(plain: profile.Profile) -> None:
    assert (plain.recommended, plain.recommended_normalize) == ("xval", "signed-log")
    entries = text_entries(plain, judged(plain, ()))
    assert entries[:2] == [
        Entrant(scheme="xval", normalize="signed-log"),
        Entrant(scheme="xval"),
    ]
    assert not by_name(judged(plain, ()))["fp15"].takes_part
    advised = by_name(judged(replace(plain, recommended="fp15"), ()))["fp15"]
    assert advised.takes_part and "recommends" in advised.reason


def test_affine_races_first_where_numbers_are_at_a_high_level(
    tmp_path: Path, plain: profile.Profile
) -> None:
    values = (20_000 + np.random.default_rng(0).uniform(-9, 9, 400)).round(2).tolist()
    found = profiled(tmp_path, values)
    entries = text_entries(found, judged(found, ()))
    affine = [one for one in entries if one.normalize == "affine"]
    assert entries[0] == Entrant(scheme="xval", normalize="affine")
    assert {one.head for one in affine} > {None, "mdn:5"}
    assert len({one.label for one in entries}) == len(entries)
    usual = text_entries(plain, judged(plain, ()))
    assert "affine" not in {one.normalize for one in usual}


@pytest.mark.parametrize(
    ("inputs", "spread", "first", "second"),
    [
        (1, 1.0, "affine,by=answer", "signed-log"),
        (0, 1.0, "affine", "signed-log"),  # the target is the only number
        (1, 1e9, "signed-log", "affine,by=answer"),  # some targets are outliers
    ],
)
def test_the_target_of_records_has_a_scale_of_its_own(
    tmp_path: Path, inputs: int, spread: float, first: str, second: str
) -> None:
    lines = []
    for place, value in enumerate(np.random.default_rng(0).uniform(1990, 2012, 400).round()):
        text = f"size: {place % 7}; " * inputs + "year: "
        literal = f"{value * (spread if place % 20 == 0 else 1):.0f}"
        span = [len(text), len(text) + len(literal)]
        row = {"text": text + literal, "targets": {"year": [span]}, "answer_start": span[0]}
        lines.append(json.dumps(row))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    config = profile.Config((str(tmp_path / "rows.jsonl"),))
    store = Store(tmp_path / "artifacts")
    found = profile.run(config, store, lambda *_: None, target="year")
    entries = text_entries(found, judged(found, ()))
    assert [one.normalize for one in entries[:2]] == [first, second]
    tried = {one.normalize for one in entries if one.scheme == "xval"}
    assert tried == {None, first, second}


# --- tables ------------------------------------------------------------------------------------


def test_every_head_there_is_has_a_verdict() -> None:
    verdicts = judged_heads(())
    assert {one.scheme.partition(":")[0] for one in verdicts} == set(HEADS)
    found = by_name(verdicts)
    assert not found["token"].takes_part and "table" in found["token"].reason
    assert found["pointwise"].takes_part and found["decoder:ud"].takes_part
    assert not found["decoder:digits"].takes_part


def test_heads_that_are_named_race_alone() -> None:
    assert [one.scheme for one in judged_heads(("mdn:2", "pointwise"))] == ["mdn:2", "pointwise"]
    with pytest.raises(UsageError, match="token"):
        judged_heads(("token",))


def test_a_heavy_tail_of_a_target_adds_a_logarithm() -> None:
    random = np.random.default_rng(0)
    verdicts = judged_heads(("mdn:2", "riemann:8"))
    flat = FieldSummary.of_column("y", random.normal(size=500))
    heavy = FieldSummary.of_column("y", random.lognormal(0, 2, 500))
    assert table_entries(flat, verdicts) == [
        Entrant(scheme="mdn:2", table=""),
        Entrant(scheme="riemann:8", table=""),
    ]
    # riemann predicts only the unit interval, so it has no signed-log variant
    more = Entrant(scheme="mdn:2", table="", normalize="signed-log")
    assert table_entries(heavy, verdicts) == [
        Entrant(scheme="mdn:2", table=""),
        Entrant(scheme="riemann:8", table=""),
        more,
    ]


# --- descriptions of columns --------------------------------------------------------------------


def words(values: Floats) -> str:
    return FieldSummary.of_column("x", values).words


@each(
    ("values", "said"),
    [
        ([1.5, 2.5, 97.0], ["1.5 to 97", "middle half 2 to 49.8", "3 distinct values"]),
        ([-1.0, 0.0, 1.0, 2.0], ["whole numbers", "25% negative"]),
        ([7.0, 7.0], ["always 7"]),
        ([1.0, 1.0, 1.0, 5.0], ["75% are 1"]),
        ([1e-3, 1.0, 1e3], ["6 orders of magnitude"]),
    ],
)
def test_what_a_column_is_like(values: list[float], said: list[str]) -> None:
    told = words(np.array(values))
    assert all(one in told for one in said), told


def test_a_heavy_tail_is_one_that_normal_numbers_have_not() -> None:
    random = np.random.default_rng(0)
    assert not FieldSummary.of_column("x", random.normal(size=5000)).heavy_tail
    assert not FieldSummary.of_column("x", random.exponential(size=5000)).heavy_tail
    heavy = FieldSummary.of_column("x", random.lognormal(0, 2, 5000))
    assert heavy.heavy_tail and "heavy-tailed" in heavy.words


def test_half_a_column_of_one_value_has_no_tail_that_can_be_told() -> None:
    assert not FieldSummary.of_column("x", np.array([1.0] * 9 + [2.0])).heavy_tail


def test_facts_of_a_column() -> None:
    field = FieldSummary.of_column("x", np.array([1.0, 2.0, 2.5, -4.0]))
    assert (field.numbers, field.low, field.high, field.distinct) == (4, -4.0, 2.5, 4)
    assert (field.integer, field.negative) == (0.75, 0.25)
    assert field.decades == pytest.approx(np.log10(4))
