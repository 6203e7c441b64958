"""``numtok compare``: experiments, seeds, paired differences, requirements and output."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from numtok.cli.output.comparison import _apart
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import DataError, NumtokError, StoreError, UsageError
from numtok.evaluation.comparison.requirements import Requirement
from numtok.evaluation.comparison.seeds import SeedStatistics, bootstrapped, seed_statistics, t_test
from numtok.metrics.base import METRICS, Predictions, ends
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.registry import spec_of
from numtok.reports import PREDICTIONS_FILE, REPORT_FILE, BestBaseline, Figure, Figures
from numtok.stages.compare import Comparison, Config, Difference, run
from numtok.store.store import Store
from tests.cases import case
from tests.chain import csv_rows, there, unpadded
from tests.fakereports import METRIC_NAMES, Fake, make
from tests.forged import forged
from tests.messages import Says
from tests.shell import Ran, Shell


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def compared(store: Store, *fakes: Fake, **options: object) -> Comparison:
    refs = tuple(make(store, fake, f"report-{index}").ref for index, fake in enumerate(fakes))
    return run(msgspec.convert({"reports": refs, **options}, Config), store)


def published(numtok: Shell, store: Store, table: str, *fakes: Fake) -> Any:
    """Return the comparison with a published table, as ``--json`` prints it."""
    refs = [make(store, fake, f"of-{index}").ref for index, fake in enumerate(fakes)]
    return json.loads(numtok("compare", *refs, "--json", "--against", table).out)["published"]


# --- experiments and seeds ---------------------------------------------------------------------


def test_reports_that_differ_in_the_seed_are_one_experiment(store: Store) -> None:
    p1000 = [Fake("p1000", seed, noise=5) for seed in range(3)]
    found = compared(store, p1000[0], Fake("xval", 0, noise=1), *p1000[1:], metrics=["mse"])
    experiments = [(one.label, one.seeds, len(one.reports)) for one in found.experiments]
    assert experiments == [("p1000", [0, 1, 2], 3), ("xval", [0], 1)]
    alone = [compared(store, fake, metrics=["mse"]) for fake in p1000]
    values = [there(one.parts[0].standings["p1000"]["mse"].figure.value) for one in alone]
    figure = found.parts[0].standings["p1000"]["mse"].figure
    assert figure.value == pytest.approx(np.mean(values))
    assert figure.deviation == pytest.approx(np.std(values, ddof=1))
    assert (figure.interval, figure.seeds, figure.n) == ("bootstrap", 3, 200)


def test_seeds_that_answer_alike_have_the_interval_of_one() -> None:
    """Intervals are over samples, so they are comparable with those of baselines."""
    truth = np.arange(80.0)
    answers = Predictions.of(truth, truth + np.random.default_rng(0).normal(0, 9, 80))
    metrics = [METRICS.build(name) for name in ("r2", "mae")]
    several, alone = bootstrapped(metrics, [answers] * 3), bootstrapped(metrics, [answers])
    for name in ("r2", "mae"):
        one, other = several[name], alone[name]
        assert (one.low, one.high) == pytest.approx((other.low, other.high))
        assert one.interval == other.interval == "bootstrap"
        assert (one.deviation, other.deviation) == (0.0, None)
        assert there(other.low) < there(other.high)


def test_a_metric_that_no_baseline_has_is_noted(store: Store) -> None:
    for metric, noted in (("rmse", True), ("mse", False), ("crps", False)):
        found = compared(store, Fake(), metrics=[metric])
        assert any(f"eval --metric {metric}" in note for note in found.notes) is noted, metric


def test_a_share_of_0_or_1_has_an_interval_of_the_samples_with_one_seed_and_with_several(
    store: Store, numtok: Shell
) -> None:
    spec = "number-generation-ratio"
    fakes = [Fake("p10", seed=0), Fake("p10", seed=1), Fake("xval"), Fake("p1000", invalid=9)]
    found = compared(store, *fakes, metrics=(spec,), reference="xval")
    low, high = ends(1.0, 200)
    for label, deviation in (("p10", 0.0), ("xval", None)):
        figure = found.parts[0].standings[label][spec].figure
        assert (figure.value, figure.low, figure.high) == (1.0, low, high)
        assert (figure.interval, figure.deviation) == ("share", deviation)
    between = found.parts[0].standings["p1000"][spec].figure
    assert between.interval == "bootstrap"
    refs = [f"report-{index}" for index in range(4)]
    code, out, _ = numtok("compare", *refs, "--metric", spec)
    assert code == 0 and "98.12 to 100.00%" in out and "Wilson" in out


def test_costs_are_means_over_the_seeds(store: Store) -> None:
    [one] = compared(store, Fake(seed=0), Fake(seed=3)).experiments
    assert (one.costs.train_seconds, one.costs.eval_seconds) == (101.5, 2.0)
    assert (one.costs.samples, one.costs.parameters, one.costs.flops) == (64_000, 2_500_000, 3.1e15)


def test_labels_say_the_scheme_and_what_tells_experiments_of_one_scheme_apart(store: Store) -> None:
    mdn = [Fake("p1000", settings={"head": "mdn:10"} | more) for more in ({}, {"steps": 500})]
    found = compared(store, Fake("xval"), Fake("p1000"), *mdn)
    labels = [f"p1000, head=mdn:10, steps={steps}" for steps in (1000, 500)]
    assert [one.label for one in found.experiments] == ["xval", "p1000", *labels]
    assert found.experiments[0].settings == {"head": "scalar", "steps": "1000"}


def test_a_label_names_each_part_that_is_not_the_schemes_own(store: Store) -> None:
    text = {"text_tokenizer": "words", "preset": "micro"}
    own = {"normalize": "scale", "embedder": "scaled", "head": "scalar"}
    cases: list[tuple[str, dict[str, str], str]] = [
        ("xval", own, "xval"),
        ("xval", own | {"embedder": "fone", "head": "fone"}, "xval, embedder=fone, head=fone"),
        ("xval", own | {"embedder": "fone"}, "xval, embedder=fone"),
        ("xval", own | {"normalize": "none"}, "xval, normalize=none"),
        ("xval", own | {"objective": "mlm:tokens"}, "xval, objective=mlm:tokens"),
        ("xval", own | {"objective": "mlm"}, "xval, objective=mlm:numbers"),
        ("xval", own | {"preset": "bigru"}, "xval, preset=bigru"),
        ("xval", own | {"preset": "hf:gpt2,tune=lora"}, "xval, preset=hf:gpt2,tune=lora"),
        ("xval", own | {"preset": "transformer,layers=2"}, "xval"),
        ("p1000,exponents=-9..9", {"normalize": "none"}, "p1000,exponents=-9..9"),
        ("bpe:40 (given 0123abcd)", {"embedder": "lookup"}, "bpe:40 (given 0123abcd)"),
        ("away", {"embedder": "lookup"}, "away, embedder=lookup, head=token"),
        ("dice", {"embedder": "dice", "head": "numgpt"}, "dice"),
    ]
    for scheme, settings, label in cases:
        [one] = compared(store, Fake(scheme, settings=text | settings)).experiments
        assert one.label == label


def test_a_table_is_labeled_by_its_head_and_another_normalization(store: Store) -> None:
    fitted = {"preset": "mlp", "epochs": "3"}
    for head, normalize, label in (
        ("mdn:5", "unit,start=-0.5", "mdn:5"),
        ("mdn:5", "affine", "mdn:5, normalize=affine"),
        ("riemann:16", "unit", "riemann:16"),
        ("away:3", "unit", "away:3, normalize=unit"),
    ):
        fake = Fake(head, settings=fitted | {"normalize": normalize}, of_texts=False)
        assert [one.label for one in compared(store, fake).experiments] == [label]


def test_a_reference_may_be_a_scheme_that_one_experiment_alone_has(store: Store) -> None:
    text = {"text_tokenizer": "words", "embedder": "fone", "preset": "micro"}
    fakes = [Fake("xval", settings=text), Fake("p10", settings={"preset": "micro"})]
    found = compared(store, *fakes, reference="xval")
    assert found.reference == "xval, embedder=fone"
    assert "All models use preset micro." in found.notes


def test_schemes_name_their_parts_as_reports_say_them() -> None:
    for name in SCHEMES.names():
        scheme = SCHEMES[name].defaults
        assert spec_of(EMBEDDERS.build(scheme.embedder)) == scheme.embedder, name
        assert spec_of(HEADS.build(scheme.head)) == scheme.head, name


def over_seeds(*values: float) -> SeedStatistics:
    return seed_statistics([Figure(value, None, None, 5) for value in values])


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=12))
def test_an_interval_over_seeds_is_centred_on_the_mean(values: list[float]) -> None:
    found = over_seeds(*values)
    assert there(found.low) <= there(found.value) <= there(found.high)
    assert min(values) - 1e-6 <= there(found.value) <= max(values) + 1e-6


def test_the_interval_over_seeds_is_students() -> None:
    for seeds, t in [(2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776), (11, 2.228), (31, 2.042)]:
        found = over_seeds(*(float(index % 2) for index in range(seeds)))
        half = (there(found.high) - there(found.value)) / there(found.deviation) * math.sqrt(seeds)
        assert half == pytest.approx(t, abs=5e-4), seeds


def test_an_interval_over_seeds_has_no_negative_costs() -> None:
    for values, wanted in [
        ((0.0, 0.1), (0.0, 0.685)),
        ((0.9, 1.0), (0.315, 1.585)),
        ((0.5, 0.5), (0.5, 0.5)),
    ]:
        found = over_seeds(*values)
        assert (found.low, found.high) == pytest.approx(wanted, abs=5e-4), values
        assert found.value == pytest.approx(sum(values) / 2)


def test_a_figure_that_one_seed_lacks_is_undefined() -> None:
    found = seed_statistics([Figure(1.0, None, None, 5), Figure(None, None, None, 5)])
    assert (found.value, found.low, found.interval, found.seeds) == (None, None, None, 2)


def test_the_p_is_that_of_scipy() -> None:
    random = np.random.default_rng(0)
    for count, others in ((2, 2), (2, 5), (5, 5), (3, 12)):
        for apart in (0.0, 0.5, 3.0, 30.0):
            first = random.normal(size=count)
            second = random.normal(apart, 2.0, size=others)
            expected = float(ttest_ind(first, second).pvalue)
            one, two = over_seeds(*first.tolist()), over_seeds(*second.tolist())
            assert t_test(one, two) == pytest.approx(expected, rel=1e-9)
            assert t_test(two, one) == t_test(one, two)


def test_the_p_of_one_seed_or_of_equal_seeds_is_undefined() -> None:
    assert t_test(over_seeds(1.0, 2.0), over_seeds(1.0)) is None
    assert t_test(over_seeds(1.0, 1.0), over_seeds(2.0, 2.0)) is None
    undefined = seed_statistics([Figure(None, None, None, 5)] * 2)
    assert t_test(over_seeds(1.0, 2.0), undefined) is None


def test_seeds_that_are_alike_have_no_deviation() -> None:
    alike, other = over_seeds(*[0.8133] * 5), over_seeds(*[0.8233] * 5)
    assert (alike.value, alike.deviation, alike.low, alike.high) == (0.8133, 0.0, 0.8133, 0.8133)
    assert t_test(alike, other) is None


def test_figures_whose_squares_are_beyond_a_double_have_a_spread() -> None:
    found = over_seeds(1e200, 2e200, 3e200)
    assert found.value == 2e200
    assert found.deviation == pytest.approx(1e200)
    small = over_seeds(1.0, 2.0, 3.0), over_seeds(2.0, 3.0, 4.0)
    assert t_test(found, over_seeds(2e200, 3e200, 4e200)) == pytest.approx(t_test(*small))
    endless = over_seeds(math.inf, 1.0)
    assert (endless.value, endless.low, endless.interval) == (math.inf, None, None)


def test_a_difference_has_the_p_of_its_seeds(store: Store) -> None:
    fakes = [Fake("p1000", seed, noise=5) for seed in (0, 1, 2)]
    fakes += [Fake("xval", seed, noise=1) for seed in (0, 1)]
    fakes.append(Fake("p10", noise=9))
    part = compared(store, *fakes, metrics=["mse"]).parts[0]
    assert part.reference == "xval"
    apart, alone = (there(part.standings[label]["mse"].difference) for label in ("p1000", "p10"))
    figures = (part.standings[label]["mse"].figure for label in ("p1000", "xval"))
    assert apart.p == t_test(*figures) and there(apart.p) < 0.01
    assert alone.p is None


def test_p_is_printed_where_two_experiments_have_seeds(numtok: Shell, store: Store) -> None:
    fakes = [Fake("p1000", seed, noise=5) for seed in (0, 1, 2)]
    fakes += [Fake("xval", seed, noise=0.1) for seed in (0, 1)]
    refs = [make(store, fake, f"one-{i}").ref for i, fake in enumerate(fakes)]
    _, out, _ = numtok("compare", *refs, "--metric", "mae")
    lines = unpadded(out)
    assert any("t-test over seeds" in line and line.endswith("against xval") for line in lines)
    assert "p1000 (3 seeds) < 0.0001" in lines
    _, out, _ = numtok("compare", *refs[2:], "--metric", "mae")
    assert "t-test" not in out


# --- paired differences ------------------------------------------------------------------------


def test_a_clear_difference_is_significant(store: Store) -> None:
    found = compared(store, Fake("p1000", noise=20), Fake("xval", noise=2, noise_seed=1))
    [part] = found.parts
    assert part.reference == "xval"
    for metric, better in found.metrics.items():
        apart = there(part.standings["p1000"][metric].difference)
        assert there(apart.low) <= there(apart.value) <= there(apart.high)
        assert (there(apart.value) < 0) == (better == "higher")
        assert (apart.significant, apart.better) == (True, 0.0)
    assert part.standings["xval"]["r2"].difference is None


def test_equal_predictions_do_not_differ(store: Store) -> None:
    part = compared(store, Fake("p1000"), Fake("xval")).parts[0]
    assert part.reference == "p1000"  # the first of equally good ones
    for standing in part.standings["xval"].values():
        apart = there(standing.difference)
        assert (apart.value, apart.low, apart.high, apart.significant) == (0, 0, 0, False)


def test_equally_good_models_do_not_differ_significantly(store: Store) -> None:
    part = compared(store, Fake("p1000", noise_seed=1), Fake("xval", noise_seed=2)).parts[0]
    [other] = {"p1000", "xval"} - {part.reference}
    apart = there(part.standings[other]["r2"].difference)
    assert there(apart.low) < 0 < there(apart.high)
    assert not apart.significant


def test_a_difference_is_of_means_over_seeds(store: Store) -> None:
    fakes = [Fake("p1000", seed, noise=5) for seed in (0, 1)]
    part = compared(store, *fakes, Fake("xval", noise=1), metrics=["mse"]).parts[0]
    assert part.reference == "xval"  # the best by the first metric
    apart = there(part.standings["p1000"]["mse"].difference)
    ours, best = (there(part.standings[one]["mse"].figure.value) for one in ("p1000", "xval"))
    assert apart.value == pytest.approx(ours - best)


def test_without_a_better_direction_the_first_is_the_reference(store: Store) -> None:
    found = compared(store, Fake("p1000", noise=20), Fake("xval"), metrics=["coverage", "mse"])
    assert found.metrics == {"coverage": "neither", "mse": "lower"}
    assert found.parts[0].reference == "p1000"
    apart = there(found.parts[0].standings["xval"]["coverage"].difference)
    assert apart.better is None


def test_without_a_figure_there_is_no_reference(store: Store) -> None:
    part = compared(store, Fake("p1000"), Fake("xval"), metrics=["nll", "mse"]).parts[0]
    assert part.reference is None
    assert all(one["mse"].difference is None for one in part.standings.values())


def test_columns_that_may_be_null_are_read_where_they_are_known(store: Store) -> None:
    fakes, metrics = (Fake("p1000", later=True), Fake("xval")), ["pit-distance", "outside", "mse"]
    found = compared(store, *fakes, metrics=metrics).parts[0]
    assert found.standings["p1000"]["outside"].figure.value == 0.25
    assert found.standings["p1000"]["pit-distance"].figure.value == pytest.approx(1 / 800)
    assert found.standings["xval"]["outside"].figure.value is None


# --- metrics, groups, baselines -------------------------------------------------------------------


def test_the_metrics_are_the_usual_ones_that_the_reports_have(store: Store) -> None:
    usual = ["r2", "signed-log-r2", "median-relative-error", "relative-error-over"]
    assert list(compared(store, Fake()).metrics) == usual
    assert list(compared(store, Fake(metrics=("mse", "r2"))).metrics) == ["r2"]
    assert list(compared(store, Fake(metrics=("mse",))).metrics) == ["mse"]
    assert list(compared(store, Fake(metrics=())).metrics) == ["field-skill", *usual]


def test_any_metric_can_be_asked_for_and_one_asked_for_twice_is_there_once(store: Store) -> None:
    specs = ["relative-error-over,limit=0.5", "rmse", "relative-error-over,limit=0.50"]
    found = compared(store, Fake(noise=20, metrics=("mse",)), metrics=specs)
    assert list(found.metrics) == ["relative-error-over,limit=0.5", "rmse"]
    assert found.parts[0].standings["p1000"]["rmse"].figure.value == pytest.approx(20, rel=0.2)


def test_invalid_predictions_count_as_the_train_mean(store: Store) -> None:
    found = [compared(store, Fake(noise=1, invalid=one), metrics=["mse"]) for one in (0, 20)]
    few, many = (one.parts[0].standings["p1000"]["mse"].figure for one in found)
    assert few.n == many.n == 200
    assert there(many.value) > 100 * there(few.value)


def test_a_group_has_a_table_for_each_value(store: Store) -> None:
    found = compared(store, Fake(), Fake("xval", noise=1), by="operands")
    assert [(part.value, part.numbers) for part in found.parts] == [("2", 67), ("3", 67), ("4", 66)]
    assert {part.reference for part in found.parts} == {"xval"}
    assert all(part.baselines == [] for part in found.parts)
    numbers = {part.value: part.numbers for part in compared(store, Fake(), by="operator").parts}
    assert numbers == {"*": 66, "+": 66, "-": 67, "none": 1}


def test_a_baseline_is_told_once_where_the_reports_agree(store: Store) -> None:
    found = compared(store, Fake("p1000"), Fake("p1000", settings={"steps": 5}), Fake("p10"))
    told = [("quantization", ["p1000"]), ("quantization", ["p10"]), ("mean", [])]
    assert [(baseline.name, baseline.schemes) for baseline in found.parts[0].baselines] == told
    # Baselines also agree if one report has more metrics.
    more = Fake("xvals", metrics=(*METRIC_NAMES, "rmse"))
    found = compared(store, Fake("p1000"), more)
    told = [("quantization", []), ("mean", [])]
    assert [(baseline.name, baseline.schemes) for baseline in found.parts[0].baselines] == told


@pytest.mark.parametrize(
    ("better", "noted"),
    [(("baseline", None), True), (("baseline", "model"), False), ((None, "none"), False)],
)
def test_a_note_says_when_no_model_beats_the_best_baseline(
    store: Store, better: tuple[Any, Any], noted: bool
) -> None:
    """The note requires a best baseline in every report; ``none`` stands for a report without."""
    apart, fakes = Figure(1.0, 0.5, 1.5, 200), []
    for scheme, side in zip(("p1000", "p10"), better, strict=True):
        best = BestBaseline(name="tfidf", metric="mae", value=2.0, difference=apart, better=side)
        fakes.append(Fake(scheme, best=() if side == "none" else (("", best),)))
    notes = [note for note in compared(store, *fakes).notes if "No model beats" in note]
    assert len(notes) == noted and all("tfidf (mae)" in note for note in notes)


def test_baselines_of_one_scheme_that_do_not_agree_go_by_the_experiments(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, one scheme with two normalizations has two quantization baselines."""
    plain, logs = Fake("p10"), Fake("p10", settings={"normalize": "signed-log"})
    figures = Fake._figures

    def rounded(fake: Fake, answers: Predictions) -> Figures:
        off = 0.5 if "normalize" in fake.settings and fake.noise else 0.0
        exact = bool(np.allclose(answers.prediction - answers.truth, len(fake.scheme) / 100))
        return figures(fake, answers._replace(prediction=answers.prediction + off * exact))

    monkeypatch.setattr(Fake, "_figures", rounded)
    found = compared(store, plain, logs, Fake("p1000"))
    first, second, _ = (one.label for one in found.experiments)
    told = [(baseline.name, baseline.schemes) for baseline in found.parts[0].baselines]
    assert told == [*(("quantization", [one]) for one in (first, second, "p1000")), ("mean", [])]
    assert len({first, second}) == 2


def test_an_interval_that_is_marked_does_not_look_as_if_it_held_0() -> None:
    def printed(value: float, low: float, high: float, significant: bool) -> str:
        figures = {"value": value, "low": low, "high": high, "better": value, "p": None}
        return _apart(msgspec.convert(figures | {"significant": significant}, Difference), "mse")

    assert printed(0.073, 0.004, 0.84, True) == "0.073 [0.004, 0.840] *"
    assert printed(-0.073, -0.84, -0.004, True) == "-0.073 [-0.840, -0.004] *"
    assert printed(0.073, 0.0001, 0.84, True).startswith("0.0730 [0.0001, ")
    assert printed(0.073, -0.004, 0.84, False) == "0.07 [0.00, 0.84]"


def test_differences_are_from_the_given_reference(numtok: Shell, store: Store, says: Says) -> None:
    fakes = [Fake("p10", noise=1.0), Fake("p1000", noise=5.0), Fake("xval", noise=9.0)]
    refs = [make(store, fake, f"of-{fake.scheme}").ref for fake in fakes]
    for asked in ("xval", refs[2], "of-xval"):
        found = run(Config(tuple(refs), metrics=("mae",), reference=asked), store)
        assert found.reference == found.parts[0].reference == "xval"
        plain = run(Config(tuple(refs), metrics=("mae",)), store)
        assert (plain.reference, plain.parts[0].reference) == (None, "p10")
        forth = there(found.parts[0].standings["p10"]["mae"].difference)
        back = there(plain.parts[0].standings["xval"]["mae"].difference)
        assert forth.value == pytest.approx(-there(back.value)) and forth.significant
    _, out, _ = numtok("compare", *refs, "--metric", "mae", "--reference", "xval")
    assert "difference from xval" in out and "Differences are relative to xval (95%" in out
    told = "--reference 'xvla'. Did you mean 'xval'? Known: p10, p1000, xval\n"
    says.refused(numtok("compare", *refs, "--reference", "xvla"), 2, told)


def test_reports_of_numbers_and_of_answers_do_not_compare(store: Store, says: Says) -> None:
    numbers = make(store, Fake(), "numbers")
    answers = make(store, Fake(seed=1), "answers")
    path = answers.path / REPORT_FILE
    told = msgspec.json.decode(path.read_bytes()) | {"texts": {"longest": 3, "stopped": 0}}
    path.write_bytes(msgspec.json.encode(told))
    answers = forged(answers)
    for first, second in ((numbers, answers), (answers, numbers)):
        both = f"{first.ref} is a report of {first.name} and {second.ref} one of {second.name}"
        told = both, "reports of one kind", "`numtok eval --fill answers`"
        with says.raises(UsageError, *told):
            run(Config((first.ref, second.ref)), store)


# --- errors ------------------------------------------------------------------------------------


def test_reports_that_do_not_compare_are_refused(store: Store, says: Says) -> None:
    few, last = Fake(count=5), "target 'answer', number 3)"
    cases: list[tuple[tuple[Fake, ...], dict[str, Any], type[NumtokError], tuple[str, ...]]] = [
        (
            (few, Fake("xval", count=5, shift=1)), {}, DataError,
            (f"id 'row-0' ({last}", "is in report-0@", "but not in report-1@",
             "the same split of the same data"),
        ),
        ((few, Fake("xval", count=6)), {}, DataError, (f"id 'row-5' ({last} is in report-1@",)),
        (
            (few, Fake("xval", count=5, truth_shift=1)), {}, DataError,
            (f"id 'row-4' ({last} is -45.", " in report-0@", " and -44."),
        ),
        (
            (Fake(count=5, repeat=True),), {}, DataError,
            ("report-0@", f"id 'row-3' ({last} twice", "each row of the data a unique id"),
        ),
        (
            (Fake(invalid=1, train_mean=None),), {}, DataError,
            ("report-0@", "no train mean", "data with a train split"),
        ),
        (
            (Fake(),), {"by": "operand"}, UsageError,
            ("group 'operand'. Did you mean 'operands'? Known: operands, operator",),
        ),
        *(
            ((Fake(),), one, UsageError, ("metric 'r3'. Did you mean 'r2'?",))
            for one in ({"metrics": ["r3"]}, {"require": ["r3>=1"]})
        ),
        (
            (Fake(),), {"column": "2 operands"}, UsageError,
            ("column needs", "(got '2 operands')", "against"),
        ),
    ]  # fmt: skip
    for fakes, options, kind, told in cases:
        with case(told), says.raises(kind, *told):
            compared(store, *fakes, **options)
    compared(store, Fake(train_mean=None))
    ref = make(store, Fake(seed=4)).ref
    told = f"{ref} and {ref}", "the same seed (4)", "each seed only once"
    with says.raises(UsageError, *told):
        run(Config((ref, ref)), store)


def test_a_malformed_requirement_is_refused(says: Says) -> None:
    for text in ("r2", "r2=0.9", "r2==0.9", ">=0.9", "r2>=", "r2>=high", "r2>nan"):
        told = "--require must", f"(got {text!r})", ">=, >, <=, <", '--require "r2>=0.99"'
        with case(text), says.raises(UsageError, *told):
            Requirement.parse(text)


def test_a_damaged_report_is_refused(store: Store, says: Says) -> None:
    artifact = make(store, Fake())
    text = (artifact.path / REPORT_FILE).read_bytes()
    table = artifact.path / PREDICTIONS_FILE
    whole = pq.read_table(table)
    pq.write_table(whole.drop_columns(["crps"]), table, write_page_checksum=True)
    with pytest.raises(StoreError, match=r"predictions\.parquet cannot be read: .*crps"):
        run(Config((artifact.ref,)), store)
    for name, content, *parts in (
        (
            REPORT_FILE,
            text.replace(b'"schema":1', b'"schema":3'),
            "has schema 3",
            "up to 1",
            "newer",
        ),
        (REPORT_FILE, text.replace(b'"seed":0', b'"seed":"x"'), "damaged", "`$.seed`", "verify`"),
        (PREDICTIONS_FILE, b"PAR1", "cannot be read: ", "`numtok verify`"),
    ):
        with case(parts), says.raises(StoreError, name, *parts):
            (artifact.path / REPORT_FILE).write_bytes(text)
            (artifact.path / name).write_bytes(content)
            run(Config((artifact.ref,)), store)


def test_predictions_are_compared_with_their_schema(store: Store, says: Says) -> None:
    artifact = make(store, Fake())
    path = artifact.path / PREDICTIONS_FILE
    whole = pq.read_table(path)
    cases: list[tuple[str, pa.Array[Any] | None, str]] = [
        ("truth", None, "it lacks the column 'truth'"),
        ("valid", pa.array([1.0] * 200), "its column 'valid' is double, not bool"),
        ("valid", pa.nulls(200, pa.bool_()), "a value of its column 'valid' is missing"),
        ("truth_literal", pa.nulls(200, pa.string()), "of its column 'truth_literal' is missing"),
        ("prediction", pa.nulls(200, pa.float64()), "of its column 'prediction' is missing"),
        ("prediction", pa.array([np.inf] * 200), "a valid prediction is not a finite number"),
        ("truth_literal", pa.array(["\n[NUM]"] * 200), "not a written number"),
        ("prediction_literal", pa.array(["e7"] * 200), "not a written number"),
        ("group_x", pa.array([1] * 200), "its column 'group_x' is int64, not string"),
        ("more", pa.array([1] * 200), "unexpected column 'more'"),
    ]
    for name, damage, why in cases:
        with case(why):
            table = whole.drop_columns([name]) if name in whole.column_names else whole
            if damage is not None:
                table = table.append_column(name, damage)
            pq.write_table(table, path)
            with says.raises(StoreError, f"{path} cannot be read: ", why):
                run(Config((artifact.ref,)), store)
    pq.write_table(whole.slice(0, 0), path)
    with says.raises(StoreError, str(path), "it has no rows that can be scored"):
        run(Config((artifact.ref,)), store)


# --- requirements ------------------------------------------------------------------------------


def test_a_requirement_is_met_or_told_with_the_digits_that_decide() -> None:
    for text, value, told in [
        ("r2>=0.5", 0.5, None),
        ("r2 > 0.5", 0.5, "a@1 has 0.5, but r2>0.5 is required"),
        ("mse <= 1e3", 1000.0, None),
        ("mse<1000", 1000.0, "a@1 has 1000, but mse<1000 is required"),
        ("relative-error-over,limit=0.5<=0.1", 0.05, None),
        ("r2<1", None, "a@1 has no value, but r2<1 is required"),
        ("r2>=0.99999999", 0.9999999, "a@1 has 0.9999999, but r2>=0.99999999 is required"),
        ("mse<=12345678", 12345679.0, "a@1 has 1.23457e+07, but mse<=12345678 is required"),
        ("nll<1e-7", 0.123456789, "a@1 has 0.123457, but nll<1e-07 is required"),
    ]:
        requirement = Requirement.parse(text)
        verdict = requirement.judge("a@1", {requirement.key: Figure(value, None, None, 9)})
        assert (verdict.report, verdict.value, verdict.met) == ("a@1", value, told is None), text
        assert told is None or verdict.message == told


def test_a_failed_requirement_names_each_report(numtok: Shell, store: Store, says: Says) -> None:
    good, bad = (make(store, Fake("xval", noise=1)), make(store, Fake("p10", noise=90)))
    gates = "--require", "r2>=0.99", "--require", "nll<5"
    code, out, err = numtok("compare", good.ref, bad.ref, *gates)
    assert code == 1
    told = f"numtok: not met: {bad.ref} has 0.0162985, but r2>=0.99"
    says(err, told, *(f"{one.ref} has no value, but nll<5" for one in (good, bad)))
    assert out.count("NOT MET") == 3
    assert out.count(" met\n") == 1
    assert numtok("compare", good.ref, "--require", "r2>=0.99")[0] == 0


# --- the command -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def handful(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """Return the path of a store with some reports, not to be modified, and their REFs."""
    store = Store(tmp_path_factory.mktemp("handful") / "artifacts")
    fakes = [Fake("p1000", seed, noise=5) for seed in (0, 1, 2)]
    fakes += [Fake("xval", noise=0.1), Fake("fp15", noise=7, invalid=3), Fake("p10", noise=40)]
    fakes.append(replace(fakes[-1], settings={"head": "mdn:10", "budget_steps": 2000}))
    refs = [make(store, fake, f"arithmetic-{i}").ref for i, fake in enumerate(fakes)]
    return str(store.root), refs


def compare_them(numtok: Shell, handful: tuple[str, list[str]], *options: str) -> Ran:
    store, refs = handful
    return numtok("--store", store, "compare", *refs, *options)


GATE = "--require", "r2>=0.1", "--against", "xval/table3"


def test_the_tables_fit_80_columns(numtok: Shell, handful: tuple[str, list[str]]) -> None:
    for extra in (("--by", "operands"), ("--metric", "mse")):
        code, out, err = compare_them(numtok, handful, *GATE, *extra)
        assert (code, err) == (0, "")
        assert max(map(len, out.splitlines())) <= 80


def test_the_table_says_what_a_reader_needs(numtok: Shell, handful: tuple[str, list[str]]) -> None:
    code, out, err = compare_them(numtok, handful, *GATE)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    lines = unpadded(out)
    assert lines[0] == "r2: split test, 200 numbers", "four metrics do not fit: a table for each"
    assert {
        "standard deviation over seeds", "difference from xval",
        "Doubt: The table has no row for B1999.", "experiment 1 - r2 95% interval",
    } <= set(lines)  # fmt: skip
    assert any(line.startswith("Intervals: 95%, bootstrap") for line in lines)
    for start, part in (
        ("xval 1.2", "e-6 "),
        ("p1000 (3 seeds) ", ""),
        ("p10, head=mdn:10", ""),
        ("fp15 -0.0", " * "),
        ("2 operands r2 0.99999", "0.99998"),
        ("fp15 64,000 1.28M 1.67 min 2 s", ""),
    ):
        assert [line for line in lines if line.startswith(start) and part in line], start


def test_heads_of_a_data_set_stand_beside_their_cells_alone(numtok: Shell, store: Store) -> None:
    """If the rows of a published table are data sets, each column matches one kind of head."""
    data = f"uci-airfoil@{'0' * 16}"
    heads = "mdn:10", "decoder:ud,exponent=1", "decoder:udder", "pointwise"
    fakes = [Fake(head, data=data, of_texts=False) for head in heads]
    cells = published(numtok, store, "decoding-regression/table3", *fakes)["cells"]
    told = [[one["label"], one["column"], one["where"], one["cell"]["value"]] for one in cells]
    decoder = ["decoder:ud,exponent=1", "UD", "head=decoder:ud", "0.40"]
    assert told == [["mdn:10", "MDN", "head=mdn", "0.12"], decoder]


def test_a_column_is_of_a_target_and_distribution(numtok: Shell, store: Store, says: Says) -> None:
    for split, *told in (
        ("test", "a_1", "target=a", "0.000064"),
        ("validation", "a_1", "target=a", "0.000064"),
        ("ood-a1", "a_1 (OoD)", "target=a, split=ood-a1", "0.0010"),
    ):
        fake = Fake("xval", split=split, target="a")
        [cell] = published(numtok, store, "xval/table5", fake)["cells"]
        assert [cell["column"], cell["where"], cell["cell"]["value"]] == told
    ref = make(store, Fake("xval", split="ood-stepsize", target="a"), "orbits").ref
    ran = numtok("compare", ref, "--json", "--against", "xval/table5")
    says.refused(ran, 2, "none of its groups, targets, data or heads")


def test_objectives_that_mask_otherwise_are_named(numtok: Shell, store: Store) -> None:
    """Differences in settings that the paper does not state are not listed."""
    objectives = "mlm:targets", "mlm", "mlm:tokens", "mlm:tokens,rate=0.15", "ar"
    fakes = [
        Fake("xval", split="test", target="a", settings={"objective": one, "normalize": "scale"})
        for one in objectives
    ]
    differs = published(numtok, store, "xval/table5", *fakes)["differs"]
    told = ["objective is mlm:targets", "objective is mlm", "objective is ar"]
    assert [sentence.partition(" for ")[0] for sentence in differs] == told


@pytest.mark.parametrize(
    ("fake", "share", "told"),
    [
        (Fake(split="ood-a1", target="a", off_grammar=3), 0.015, "(1.5% invalid)"),
        (Fake(split="ood-a1", target="a", off_grammar=0), 0.0, "(0% invalid)"),
        (Fake(split="ood-a1", target="a", invalid=4), 0.02, "(2% invalid)"),  # unconstrained
    ],
)
def test_a_printed_share_of_invalid_answers_stands_beside_that_of_a_model_left_to_itself(
    numtok: Shell, store: Store, fake: Fake, share: float, told: str
) -> None:
    """With constrained decoding, no answer is invalid. The report has the fraction that would be
    invalid without it."""
    [cell] = published(numtok, store, "xval/table5", replace(fake, scheme="p10"))["cells"]
    assert (cell["cell"]["invalid"], cell["invalid"]) == ("0.01", pytest.approx(share))
    _, out, _ = numtok("compare", "of-0", "--against", "xval/table5")
    assert [line for line in out.splitlines() if told in line and "(1% invalid)" in line]


def test_a_table_without_invalid_answers_gets_none(numtok: Shell, store: Store) -> None:
    found = published(numtok, store, "xval/table3", Fake("p1000", off_grammar=3))
    assert {cell["invalid"] for cell in found["cells"]} == {None}


def test_a_column_of_one_task_is_found_by_the_name_of_the_data(numtok: Shell, store: Store) -> None:
    """In this table, GPT uses digits, and pre-trained models have their own rows."""
    data = f"comparison-digits@{'0' * 16}"
    began = {"init.objective": "ar"}
    fakes = [Fake("digits", data=data), Fake("digits", data=data, settings=began)]
    fakes += [Fake("dice", data=data), Fake("dice", data=data, settings=began)]
    cells = published(numtok, store, "numgpt/table1", *fakes)["cells"]
    assert {(cell["column"], cell["where"]) for cell in cells} == {("GNC", "data=comparison")}
    assert [cell["cell"] and cell["cell"]["value"] for cell in cells] == [
        *("0.9516", "0.9384", "0.7509"),
        None,  # DICE was not pre-trained
    ]


def test_a_trunk_with_a_row_of_its_own_is_found_by_its_preset(numtok: Shell, store: Store) -> None:
    data = f"numeracy600k-digits@{'0' * 16}"
    presets = ("nano,layers=3", "bigru,width=64")
    fakes = [Fake("digits", data=data, settings={"preset": preset}) for preset in presets]
    cells = published(numtok, store, "numgpt/table2", *fakes)["cells"]
    assert [cell["cell"]["value"] for cell in cells] == ["0.7945", "0.5386", "0.7149", "0.3994"]


def test_settings_are_compared_with_those_of_the_paper(numtok: Shell, store: Store) -> None:
    """If the columns of a table are metrics, each report gets a value in every column."""
    plain = {"objective": "ar", "preset": "gpt2"}
    passes = {"objective": "numvalue", "preset": "gpt2"}
    fakes = [
        *(Fake(one, settings=plain) for one in ("digits", "digits:3", "numerologic:answer")),
        Fake("numvalue", settings=passes | {"embedder": "numvalue:mlp"}),
        Fake("numvalue", settings=passes | {"embedder": "numvalue:mlp,auxiliary=no"}),
        Fake("numvalue", settings=passes | {"embedder": "numvalue:scalar", "preset": "nano"}),
        Fake("digits", settings=plain | {"objective": "ar:answer"}),
    ]
    found = published(numtok, store, "numvalue/table1", *fakes)
    columns = ["Exact Match", "Digit Match", "d-Length"]
    assert [cell["column"] for cell in found["cells"]] == columns * 7
    assert [cell["cell"]["value"] for cell in found["cells"][::3]] == [
        "0.687", "0.687", "0.633", "0.720", "0.720", "0.724", "0.687",
    ]  # fmt: skip
    labels = [cell["label"] for cell in found["cells"][::3]]
    assert found["differs"] == [
        f"scheme is digits:3 for {labels[1]}, but digits in the paper.",
        f"embedder is numvalue:mlp,auxiliary=no for {labels[4]}, but numvalue:mlp in the paper.",
        f"preset is nano for {labels[5]}, but gpt2 in the paper.",
        f"embedder is numvalue:scalar for {labels[5]}, but numvalue in the paper.",
        f"objective is ar:answer for {labels[6]}, but ar in the paper.",
    ]


def test_other_training_data_is_another_experiment(numtok: Shell, store: Store) -> None:
    own = f"arithmetic-p1000@{'0' * 16}"
    small, large = (f"{size}-p1000@{'0' * 16}" for size in ("small", "large"))
    fakes = [
        Fake(data=own, training_data=training_data, seed=seed)
        for training_data in (own, small, large)
        for seed in (0, 1)
    ]
    fakes.append(Fake(data=own, seed=2))  # an older report, without training data
    refs = [make(store, fake, f"of-{index}").ref for index, fake in enumerate(fakes)]
    _, out, _ = numtok("compare", *refs, "--json")
    experiments = json.loads(out)["experiments"]
    assert [one["seeds"] for one in experiments] == [[0, 1, 2], [0, 1], [0, 1]]
    told = [{"training_data": one} for one in ("-", small, large)]
    assert [one["settings"] for one in experiments] == told
    assert experiments[1]["label"] == f"p1000, training_data={small}"


def test_csv_has_one_row_a_figure(numtok: Shell, handful: tuple[str, list[str]]) -> None:
    _, out, _ = compare_them(numtok, handful, "--format", "csv", "--against", "xval/table3")
    rows = csv_rows(out)
    key = ("experiment", "p1000", "r2")
    [row] = [row for row in rows if (row["kind"], row["label"], row["metric"]) == key]
    assert (row["seeds"], row["n"], row["reference"]) == ("3", "200", "xval")
    assert float(row["low"]) < float(row["figure"]) < float(row["high"])
    assert float(row["difference_low"]) < float(row["difference"]) < 0
    assert row["significant"] == "True"
    key = ("printed in xval/table3", "xval", "2 operands")
    [printed] = [row for row in rows if (row["kind"], row["label"], row["value"]) == key]
    assert printed["figure"] == "0.99998"
    assert {row["kind"] for row in rows} >= {"baseline", "cost"}


def test_json_holds_everything(numtok: Shell, handful: tuple[str, list[str]]) -> None:
    store, refs = handful
    options = "--json", "--by", "operands", "--require", "r2>0"
    _, out, _ = compare_them(numtok, handful, *options)
    found = json.loads(out)
    assert found.pop("schema") == 1
    assert msgspec.convert(found, Comparison).group == "operands"
    assert found["experiments"][0]["reports"] == refs[:3]
    assert found["parts"][0]["standings"]["p1000"]["r2"]["figure"]["interval"] == "bootstrap"
    assert [result["met"] for result in found["requirements"]] == [True] * 7
    one = "--store", store, "compare", refs[0]
    assert numtok(*one, "--format", "json") == numtok(*one, "--json")


def test_markdown_has_whole_tables(numtok: Shell, handful: tuple[str, list[str]]) -> None:
    _, out, _ = compare_them(numtok, handful, "--format", "md")
    title, empty, header, rule, best = out.splitlines()[:5]
    assert (title, empty, rule) == ("split test, 200 numbers", "", "|" + " --- |" * 5)
    assert header.startswith("| experiment | 1 - r2 | ") and "| median-relative-error |" in header
    assert best.startswith("| xval | "), "the best by the first metric"


def test_experiments_are_sorted_by_the_first_metric(
    numtok: Shell, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    noises = {"p10": 30.0, "xval": 5.0, "p1000": 90.0}
    refs = [make(store, Fake(scheme, noise=noise)).ref for scheme, noise in noises.items()]
    for metric in ("r2", "mae"):  # higher, lower
        out = numtok("compare", *refs, "--metric", metric).out
        rows = [line.split()[0] for line in out.splitlines()[3:6]]
        assert rows == ["xval", "p10", "p1000"]
    # All metrics fit next to each other, so there is one table.
    assert numtok("compare", *refs).out.splitlines()[1].split()[:2] == ["experiment", "r2"]


def test_errors_are_one_line_with_their_exit_code(numtok: Shell, store: Store, says: Says) -> None:
    ref = make(store, Fake()).ref
    for option, value, told in (
        ("--require", "r2", "(got 'r2')"),
        ("--metric", "r3", "metric 'r3'"),
        ("--by", "x", "group 'x'. Known: operands, operator"),
        ("--against", "xval/table9", "table 'xval/table9'"),
        ("--column", "x", "got 'x'). Name it with --against"),
    ):
        with case(option):
            says.refused(numtok("compare", ref, option, value), 2, told)
    refs = [make(store, Fake("p10", count=5)).ref, make(store, Fake("xval", count=6)).ref]
    says.refused(numtok("compare", *refs), 3, "numtok: different test sets: id 'row-5'")
