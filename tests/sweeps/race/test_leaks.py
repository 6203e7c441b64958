"""Notes on columns that may contain the target of a race."""

from pathlib import Path

import numpy as np
import pytest

from numtok.data.tables.table import Table, read_table_of
from numtok.reports import Figure
from numtok.stages import table as tables
from numtok.store.store import Store
from numtok.sweeps.race.leaderboard import Contestant, Leaderboard
from numtok.sweeps.race.leaks import correlation, leak_notes


def sales(folder: Path, noise: float) -> Table:
    """Return a table of prices, listed prices with relative noise, and a column with gaps."""
    random = np.random.default_rng(0)
    path = folder / "sales.csv"
    lines = ["listed,rooms,street,price"]
    for _ in range(200):
        price = random.uniform(100, 900)
        listed = 1.02 * price * (1 + noise * random.normal())
        rooms = random.integers(1, 9) if random.random() > 0.2 else ""
        lines.append(f"{listed:.4f},{rooms},{random.choice(['elm', 'oak'])},{price:.4f}")
    path.write_text("\n".join(lines))
    config = tables.Config(str(path), target="price")
    return read_table_of(tables.run(config, Store(folder / "store")).artifact)


def contestant(label: str, error: float, r2: float, is_model: bool) -> Contestant:
    known = Figure(error, error, error, 100)
    return Contestant(
        label=label,
        is_model=is_model,
        skill=known,
        over_baseline=known,
        behind=known,
        tied=False,
        errors={"price": known},
        r2=Figure(r2, r2, r2, 100),
        invalid=known,
    )


def board(error: float, r2: float, model: float) -> Leaderboard:
    """Return a leaderboard of a baseline with this error and R2, and a model with another error."""
    return Leaderboard(
        split="test",
        numbers=100,
        clusters=None,
        fields=["price"],
        places=[contestant("linear", error, r2, False), contestant("mdn:5", model, 0.9, True)],
        baseline="linear",
        best="mdn:5",
        winner="mdn:5",
    )


def test_a_column_that_alone_gives_the_target_is_named(tmp_path: Path) -> None:
    [note] = leak_notes(board(0.1, 0.9999, 20.0), sales(tmp_path, 0.001))
    assert "'listed' alone" in note and "rooms" not in note and "known before the target" in note


def test_a_leak_through_several_columns_names_none(tmp_path: Path) -> None:
    [note] = leak_notes(board(0.1, 0.9999, 20.0), sales(tmp_path, 0.5))
    assert "alone" not in note and "all fields are known" in note


@pytest.mark.parametrize(("r2", "model"), [(0.98, 20.0), (0.9999, 0.15)])
def test_a_weak_baseline_or_a_model_as_good_is_no_sign_of_a_leak(
    tmp_path: Path, r2: float, model: float
) -> None:
    assert not list(leak_notes(board(0.1, r2, model), sales(tmp_path, 0.001)))


def test_correlations_of_constant_large_and_missing_values() -> None:
    up = np.arange(5.0)
    assert correlation(np.full(5, 3.0), up) == 0 and correlation(np.full(5, np.nan), up) == 0
    assert correlation(-1e300 * up, 1e300 * up) == pytest.approx(-1)
    assert correlation(np.array([1, 1, 2, 1, 1.0]), up) == pytest.approx(0, abs=1e-12)
