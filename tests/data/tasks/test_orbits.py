"""Planetary orbits: samples, correct physics, and out-of-distribution splits."""

import ast
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import cos, hypot, pi, sin, tau
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from numtok.data.tasks import orbits
from numtok.data.tasks._contract import rows_in
from numtok.data.tasks._nbody import PlanetarySystem, come_close, positions, simulation
from numtok.data.tasks.base import TASKS, TaskSplit
from numtok.data.tasks.orbits import Orbits
from numtok.errors import UsageError
from numtok.row import Row
from numtok.setting_values import Range
from numtok.stages.gen import Config
from numtok.store.store import Store
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_gen import make
from tests.stages.test_gen import rows as rows_of

rebound = pytest.importorskip("rebound", reason="needs the package rebound")

Floats = NDArray[np.float64]

FAST = Orbits(planets=Range(2, 2), points=Range(5, 9), span=Range(2, 3))


@cache
def drawn(task: Orbits, split: str = "train", rows: int = 8_000) -> list[PlanetarySystem]:
    return list(task.systems(0, split, range(rows)))


def first_axes(systems: Sequence[PlanetarySystem]) -> Floats:
    return np.array([system.axes[0] for system in systems])


def made(task: Orbits, rows: int, split: str = "train") -> list[Row]:
    return rows_in(task.unit(0, TaskSplit(split, rows), 0).rows)


def read(row: Row) -> dict[str, Any]:
    parsed = ast.literal_eval(row.text)
    assert isinstance(parsed, dict)
    return parsed


def is_uniform(values: Floats, low: float, high: float) -> bool:
    """Return whether values are uniform in the range, within four standard deviations."""
    values = np.sort((np.asarray(values) - low) / (high - low))
    expected = (np.arange(len(values)) + 0.5) / len(values)
    off = np.abs(values - expected).max()
    return bool(values[0] >= 0 and values[-1] <= 1 and off < 2 / np.sqrt(len(values)))


def is_even(values: Sequence[float], of: Sequence[float]) -> bool:
    """Return whether each of the given values occurs equally often, and no other value occurs."""
    counts = Counter(values)
    mean = len(values) / len(of)
    return set(counts) == set(of) and all(abs(n - mean) < 5 * mean**0.5 for n in counts.values())


# --- samples -----------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize("most", [4, 5])
def test_all_quantities_are_drawn_as_published(most: int) -> None:
    systems = drawn(Orbits(planets=Range(2, most)))
    assert is_even([len(system.masses) for system in systems], range(2, most + 1))
    masses = np.concatenate([system.masses for system in systems])
    eccentricities = np.concatenate([system.eccentricities for system in systems])
    assert is_uniform(masses, 1e-5, 5e-5)
    assert is_uniform(eccentricities, 0, 0.1)
    assert abs(np.corrcoef(masses, eccentricities)[0, 1]) < 0.02
    outer = np.array([max(system.axes) for system in systems])
    assert is_uniform(outer, 1.5, 3)
    for system, last in zip(systems, outer, strict=True):
        assert np.allclose(sorted(system.axes), np.linspace(1, last, len(system.axes)))
        assert min(system.axes) == 1
    for planets in range(2, most + 1):
        ranks = [sorted(s.axes).index(s.axes[0]) for s in systems if len(s.axes) == planets]
        assert is_even(ranks, range(planets))


def test_three_rows_of_ten_begin_with_all_planets_in_line() -> None:
    systems = drawn(Orbits())
    aligned = [not any(system.longitudes) for system in systems]
    assert abs(np.mean(aligned) - 0.3) < 5 * (0.21 / len(systems)) ** 0.5
    others = [s.longitudes for s, zero in zip(systems, aligned, strict=True) if not zero]
    assert is_uniform(np.concatenate(others), 0, tau)


def test_step_sizes_are_the_seen_ones_and_keep_the_span() -> None:
    systems = drawn(Orbits())
    assert is_even([system.step for system in systems], [0.3, 0.4, 0.5, 0.6, 0.7])
    for step, least, most in ((0.3, 51, 59), (0.4, 39, 59), (0.5, 31, 49), (0.6, 30, 41),
                              (0.7, 30, 35)):  # fmt: skip
        points = [system.points for system in systems if system.step == step]
        assert is_even(points, range(least, most + 1))
        assert step * (least - 1) + 1e-9 >= 15 and step * (most - 1) - 1e-9 <= 24
    mixed = np.array([system.step for system in drawn(Orbits(steps="0.3/0.5..0.6"))])
    assert abs((mixed == 0.3).mean() - 0.5) < 0.03
    assert is_uniform(mixed[mixed > 0.3], 0.5, 0.6)


def test_the_public_sampler_draws_whole_spans_and_points() -> None:
    systems = drawn(Orbits(steps="public"))
    assert is_even([system.points for system in systems], range(30, 60))
    spans = [system.step * (system.points - 1) for system in systems]
    assert is_even([round(span, 9) for span in spans], range(15, 25))
    steps = {f"{system.step:.12g}" for system in systems}
    assert len(steps) == 262
    assert (min(steps), max(steps)) == ("0.258620689655", "0.827586206897")


@pytest.mark.integration
def test_units_of_any_size_make_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = "orbits,planets=2,points=5..9,span=2..3"
    config = Config(spec, samples=300, split="ood-a1=0.1,ood-stepsize=0.1,test=0.1", workers=1)
    alone = make(config, tmp_path / "one")
    monkeypatch.setattr(Orbits, "unit_rows", 70)
    parts = make(Config(spec, samples=300, split=config.split), tmp_path / "three")
    assert rows_of(parts) == rows_of(alone)
    texts = [row.text for split in rows_of(alone).values() for row in split]
    assert len(set(texts)) == len(texts) == 300


# --- out-of-distribution splits ----------------------------------------------------------------


@pytest.mark.integration
def test_only_the_split_for_it_has_step_sizes_in_the_gaps() -> None:
    task = Orbits()
    seen = np.array([0.3, 0.4, 0.5, 0.6, 0.7])
    shifted = drawn(task, "ood-stepsize")
    steps = np.array([system.step for system in shifted])
    nearest = np.abs(steps[:, None] - seen).min(1)
    assert nearest.min() >= 0.005 - 1e-12 and steps.min() > 0.3 and steps.max() < 0.7
    for low in seen[:-1]:
        inside = steps[(steps > low) & (steps < low + 0.1)]
        assert is_uniform(inside, low + 0.005, low + 0.095)
        assert abs(len(inside) - len(steps) / 4) < 5 * len(steps) ** 0.5 / 2
    for system in shifted:
        assert 30 <= system.points <= 59
        assert 15 - 1e-9 <= system.step * (system.points - 1) <= 24 + 1e-9
    assert set(first_axes(shifted) == 1) == {True, False}  # as in training
    assert not ((first_axes(shifted) > 1) & (first_axes(shifted) < 1 + 0.5 / 3 - 1e-12)).any()
    for split in ("train", "test", "validation", "ood-a1"):
        assert {system.step for system in drawn(task, split)} == set(seen)


@pytest.mark.integration
@pytest.mark.parametrize(("most", "end"), [(2, 1.5), (4, 1 + 0.5 / 3), (5, 1.125)])
def test_only_the_split_for_it_has_a_in_the_gap(most: int, end: float) -> None:
    task = Orbits(planets=Range(2, most))
    for split in ("train", "test", "validation", "ood-stepsize"):
        first = first_axes(drawn(task, split))
        assert (first == 1).any() and (first[first != 1] >= end - 1e-12).all()
        assert first[first != 1].min() < end + 0.01
    systems = drawn(task, "ood-a1")
    margin = (end - 1) / 20
    assert is_uniform(first_axes(systems), 1 + margin, end - margin)
    for system in systems:
        assert system.axes[0] == min(system.axes)
        assert np.allclose(
            sorted(system.axes), np.linspace(system.axes[0], max(system.axes), len(system.axes))
        )
    assert is_uniform(np.array([max(system.axes) for system in systems]), 1.5, 3)
    assert is_even([len(system.axes) for system in systems], range(2, most + 1))


@pytest.mark.integration
def test_what_is_written_of_a_shifted_split_is_never_what_training_sees() -> None:
    task = Orbits(figures=3, points=FAST.points, span=FAST.span)
    assert task.shifted == ("ood-a1", "ood-stepsize")
    steps = [read(row)["description"]["stepsize"] for row in made(task, 200, "ood-stepsize")]
    assert not set(steps) & {0.3, 0.4, 0.5, 0.6, 0.7}
    first = [read(row)["description"]["planet0"]["a"] for row in made(task, 200, "ood-a1")]
    assert min(first) > 1 and max(first) < 1.167


def test_settings_without_a_gap_have_no_split_for_it() -> None:
    for settings, shifted in [
        ("orbits", ("ood-a1", "ood-stepsize")),
        ("orbits,steps=public", ("ood-a1",)),
        ("orbits,steps=0.5", ("ood-a1",)),
        ("orbits,steps=0.5..0.6/0.65,figures=3", ("ood-a1", "ood-stepsize")),
        ("orbits,steps=0.5/0.501,figures=3", ("ood-a1",)),
        ("orbits,outer=1.01..3,figures=3", ("ood-stepsize",)),
        ("orbits,outer=1.01..3,figures=3,steps=0.5", ()),
    ]:
        assert TASKS.build(settings).shifted == shifted, (settings, shifted)


def test_intervals_can_be_held_out() -> None:
    task = Orbits(steps="0.4..0.45/0.6..0.65")
    steps = np.array([system.step for system in drawn(task)])
    assert is_uniform(steps[steps < 0.5], 0.4, 0.45) and is_uniform(steps[steps > 0.5], 0.6, 0.65)
    shifted = np.array([system.step for system in drawn(task, "ood-stepsize")])
    assert is_uniform(shifted, 0.4575, 0.5925)


# --- the physics -------------------------------------------------------------------------------


def lone(
    axis: float, eccentricity: float, longitude: float, step: float, points: int
) -> PlanetarySystem:
    return PlanetarySystem([1e-12], [axis], [eccentricity], [longitude], step=step, points=points)


def test_a_circle_keeps_its_radius_and_its_period() -> None:
    for axis in [1.0, 1.7, 3.0]:
        with case(axis):
            period = tau * axis**1.5
            found = positions(lone(axis, 0, 0.7, period / 40, 81))
            assert found is not None
            assert np.allclose(np.hypot(*found[:, 0].T), axis, rtol=1e-10)
            assert np.allclose(found[[0, 40, 80], 0], found[0, 0], atol=1e-9)
            angles = np.unwrap(np.arctan2(found[:, 0, 1], found[:, 0, 0]))
            assert np.allclose(np.diff(angles), tau / 40, atol=1e-9)


def test_an_ellipse_goes_from_pericentre_to_apocentre_in_half_a_period() -> None:
    found = positions(lone(1.4, 0.09, 0, pi * 1.4**1.5, 3))
    assert found is not None
    expected = [[1.4 * 0.91, 0], [-1.4 * 1.09, 0], [1.4 * 0.91, 0]]
    assert np.allclose(found[:, 0], expected, atol=1e-9)


def test_planets_start_where_their_elements_say() -> None:
    for system in drawn(Orbits(), rows=50):
        found = positions(system._replace(points=1))
        assert found is not None
        elements = zip(*system[1:4], found[0], strict=True)
        for axis, eccentricity, longitude, (x, y) in elements:
            distance = axis * (1 - eccentricity**2) / (1 + eccentricity * cos(longitude))
            # except for the star, which is not the center of mass of the inner bodies
            assert hypot(x - distance * cos(longitude), y - distance * sin(longitude)) < 1e-3
        planets = simulation(system).particles[1:]
        for (mass, axis, eccentricity, longitude), planet in zip(
            zip(*system[:4], strict=True), planets, strict=True
        ):
            assert planet.m == mass
            assert abs(planet.a - axis) < 1e-12 and abs(planet.e - eccentricity) < 1e-12
            assert abs((planet.theta - longitude + pi) % tau - pi) < 1e-9


def test_positions_are_those_of_rebound_with_the_elements_as_they_are() -> None:
    for system in drawn(Orbits(), rows=5):
        reference = rebound.Simulation()
        reference.add(m=1)
        for mass, axis, eccentricity, longitude in zip(*system[:4], strict=True):
            reference.add(m=mass, a=axis, e=eccentricity, theta=longitude)
        found = positions(system)
        assert found is not None
        for k in range(system.points):
            reference.integrate(k * system.step)
            expected = [(planet.x, planet.y) for planet in reference.particles[1:]]
            assert np.allclose(found[k], expected, rtol=0, atol=1e-9)


def test_energy_is_conserved() -> None:
    for system in drawn(Orbits(planets=Range(2, 5)), rows=20):
        made = simulation(system)
        before = made.energy()
        for k in range(1, system.points):
            made.integrate(k * system.step)
            assert abs(made.energy() / before - 1) < 1e-10


# --- rows drawn again, and counts --------------------------------------------------------------

WIDE = Orbits(planets=Range(2, 2), outer=Range(5, 14), points=FAST.points, span=FAST.span)


@pytest.mark.integration
def test_rows_that_leave_the_bound_are_drawn_again_and_counted() -> None:
    content, counts = WIDE.unit(0, TaskSplit("train", 100), 0)
    found = rows_in(content)
    for row in found:
        assert np.abs(np.array(read(row)["data"])).max() < 10
    first = [positions(system) for system in WIDE.systems(0, "train", range(100))]
    outside = [x is not None and bool(np.abs(x).max() >= 10) for x in first]
    assert counts["out_of_bounds"] >= sum(outside) > 10
    assert (counts["not_integrated"], counts["close_encounters"]) == (0, 0)
    for number, out in enumerate(outside):
        again = range(number, number + 1)
        draws = [next(WIDE.systems(0, "train", again, attempt)) for attempt in range(30)]
        texts = [f"'m': {draw.masses[0] * 1e5:#.7g}, " for draw in draws]
        (used,) = [k for k, text in enumerate(texts) if text in found[number].text[:60]]
        assert (used > 0) == out


def test_rows_that_cannot_be_integrated_are_drawn_again_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last = next(FAST.systems(0, "train", range(3, 4)))
    monkeypatch.setattr(orbits, "positions", lambda s: None if s == last else positions(s))
    content, counts = FAST.unit(0, TaskSplit("train", 6), 0)
    assert counts == {"out_of_bounds": 0, "not_integrated": 1, "close_encounters": 0}
    monkeypatch.undo()
    lines, usual = content.splitlines(), FAST.unit(0, TaskSplit("train", 6), 0).rows.splitlines()
    assert [a == b for a, b in zip(lines, usual, strict=True)] == [True] * 3 + [False] + [True] * 2


def test_planets_that_collide_are_not_integrated() -> None:
    system = PlanetarySystem([5e-5] * 2, [1.0, 1.0], [0.0, 0.0], [0.0, 1e-7], step=0.5, points=10)
    assert positions(system) is None
    assert positions(lone(1e-160, 0, 0, 0.1, 3)) is None  # results in NaN


@pytest.mark.integration
def test_close_encounters_are_counted() -> None:
    task = Orbits(planets=Range(5, 5), mass=Range(5e-4, 9e-4))
    counts = task.unit(0, TaskSplit("train", 8), 0).counts
    close = 0
    for number in range(8):
        for attempt in range(100):
            (system,) = task.systems(0, "train", range(number, number + 1), attempt)
            found = positions(system)
            if found is not None and np.abs(found).max() < 10:
                break
        assert found is not None
        pairs = [
            np.hypot(*(found[:, i] - found[:, j]).T).min()
            < ((system.masses[i] + system.masses[j]) / 3) ** (1 / 3)
            * (system.axes[i] + system.axes[j]) / 2
            for i in range(5)
            for j in range(i)
        ]  # fmt: skip
        assert come_close(system, found) == any(pairs)
        close += any(pairs)
    assert counts["close_encounters"] == close > 0


@pytest.mark.integration
def test_counts_are_shown_by_gen_and_show(numtok: Shell) -> None:
    options = "--planets 2 --outer 5..14 --points 5..9 --span 2..3 --rows 300"
    ran = numtok("gen", "orbits", *options.split())
    assert ran.code == 0, ran.err
    counts = Store(Path("artifacts")).resolve(ran.out.strip()).manifest.counts
    total = Counter[str]()
    for split, rows in (("train", 240), ("validation", 30), ("test", 30)):
        total.update(WIDE.unit(0, TaskSplit(split, rows), 0).counts)
    assert counts == {
        "rows": 300, "rows_test": 30, "rows_train": 240, "rows_validation": 30, **total,
    }  # fmt: skip
    assert total["out_of_bounds"] > 30
    lines = [line.split() for line in ran.err.splitlines()]
    assert ["out", "of", "bounds", str(total["out_of_bounds"])] in lines
    assert ["not", "integrated", "0"] in lines and ["close", "encounters", "0"] in lines
    shown = [line.split() for line in numtok("show", ran.out.strip()).out.splitlines()]
    assert ["out_of_bounds", str(total["out_of_bounds"])] in shown


# --- the text ----------------------------------------------------------------------------------


def test_a_row_says_what_was_drawn_and_where_the_planets_are() -> None:
    for figures in [0, 3, 7, 17]:
        with case(figures):
            task = Orbits(figures=figures, points=FAST.points, span=FAST.span)

            def written(value: float, figures: int = figures) -> float:
                return float(f"{value:.{figures}g}") if figures else value

            found = made(task, 30)
            for row, system in zip(found, task.systems(0, "train", range(30)), strict=True):
                text = read(row)
                numbers = text["description"]
                assert list(numbers) == [f"planet{k}" for k in range(len(system.masses))] + [
                    "stepsize"
                ]
                for k in range(len(system.masses)):
                    assert numbers[f"planet{k}"] == {
                        "m": written(system.masses[k] * 1e5),
                        "a": written(system.axes[k]),
                        "e": written(system.eccentricities[k] * 20),
                    }
                assert numbers["stepsize"] == written(system.step)
                where = positions(system)
                assert where is not None
                assert text["data"] == [
                    [[written(v) for v in xy] for xy in row] for row in where.tolist()
                ]
                assert row.group == {"planets": len(system.masses)}


def test_every_number_has_as_many_figures_as_it_should() -> None:
    (row,) = made(Orbits(planets=Range(2, 2), figures=4, aligned=1), 1)
    head, _, rest = row.text.partition(", 'data': ")
    assert head.startswith("{'description': {'planet0': {'m': ")
    assert "'a': 1.000" in head and "'stepsize': 0." in head
    first = rest.partition("], [")[0]
    assert first.endswith(", 0.000")  # all planets begin on the x axis: y is 0, and never -0
    digits = head.partition("'m': ")[2].partition(",")[0].replace(".", "")
    assert len(digits) == 4


def test_targets_are_the_numbers_of_the_first_planet() -> None:
    for row in made(FAST, 40):
        numbers = read(row)["description"]
        assert row.targets is not None
        assert list(row.targets) == ["stepsize", "a", "e", "m"]
        for name, spans in row.targets.items():
            ((start, end),) = spans
            wanted = numbers["stepsize"] if name == "stepsize" else numbers["planet0"][name]
            assert float(row.text[start:end]) == wanted
            assert row.text[start - 2 : start] == ": " and row.text[end] in ",}"


# --- interrupts and errors ---------------------------------------------------------------------


def test_interrupts_are_again_what_they_were() -> None:
    """REBOUND replaces the handler of interrupts and would not restore it."""
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    try:
        assert positions(lone(1, 0, 0, 0.1, 3)) is not None
        os.kill(os.getpid(), signal.SIGINT)
        assert told == [signal.SIGINT]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert positions(lone(1, 0, 0, 0.1, 3)) is not None
        os.kill(os.getpid(), signal.SIGINT)
        assert told == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_rebound_one_line_says_what_to_install(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setitem(sys.modules, "rebound", None)
    ran = numtok("gen", "orbits", "--rows", "20")
    assert (ran.code, ran.out) == (2, "")
    says(ran.err, "numtok: orbits", "`pip install rebound`")
    told = numtok("gen", "orbits", "--help")
    assert told.code == 0 and "--eccentricity" in told.out


WRONG = [
    ("--planets 1", ["planets", "1", "a whole number, or a range, from 2 to 20"]),
    ("--planets 2..3.5", ["planets", "2..3.5", "a whole number, or a range, from 2 to 20"]),
    ("--planets two", ["'two'", "0.5..2"]),
    ("--planets 4..2", ["4..2", "range 4..2: the first number must not exceed"]),
    ("--mass 0..1e-5", ["mass", "0..1e-05", "a number, or a range, from 1e-09 to"]),
    ("--mass 1e-5", ["mass", "1e-05", "range"]),
    ("--outer 1..3", ["outer", "1..3", "a number, or a range, from 1.01 to 90"]),
    ("--eccentricity 0..1", ["eccentricity", "0..1", "a number, or a range, from 0 to 0.99"]),
    ("--span 0..5", ["span", "0..5", "a whole number, or a range, from 1 to"]),
    ("--points 1", ["points", "1", "a whole number, or a range, from 2 to"]),
    ("--aligned 2", ["--aligned ", "from 0 to 1", "got 2"]),
    ("--bound 0.5", ["--bound ", "from 1 to 90", "got 0.5"]),
    ("--figures 2", ["figures", "2", "3 to 17, or 0"]),
    ("--steps 0.4/0.3", ["steps", "0.4/0.3", "values or intervals from 0.001 to"]),
    ("--steps no", ["steps", "no", "values or intervals from 0.001 to"]),
    ("--steps 0.3/0.9", ["points=30..59", "0.863793", "steps or points", "wider span"]),
    ("--points 15..25", ["points=15..25", "0.3", "steps or points", "wider span"]),
    ("--split ood-a2=0.1", ["orbits has no split 'ood-a2'", "ood-NAME is reserved", "ood-a1"]),
    ("--steps public --split ood-stepsize=0.1", ["'ood-stepsize'", "steps=public"]),
    ("--bound 1.2 --rows 10", ["bound=1.2", "100", "larger bound, a smaller outer"]),
]


@pytest.mark.integration
def test_what_cannot_be_done_is_told_in_one_line(numtok: Shell, says: Says) -> None:
    for arguments, parts in WRONG:
        with case(arguments, parts):
            ran = numtok("gen", "orbits", *arguments.split())
            says(ran.err, "numtok: ", *parts)
            assert (ran.code, ran.out) == (2, "")


def test_a_task_without_shifted_splits_takes_any_name(tmp_path: Path) -> None:
    artifact = make(Config("arithmetic", samples=20, split="ood-low=1"), tmp_path)
    assert artifact.manifest.counts == {"rows": 20, "rows_ood-low": 20}


def test_settings_that_can_never_be_integrated_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orbits, "positions", lambda system: None)
    with pytest.raises(UsageError) as caught:
        Orbits().unit(0, TaskSplit("train", 1), 0)
    assert "of 100 samples of one row, 0 reached bound=10 in x or y and 100 could not be" in str(
        caught.value
    )
