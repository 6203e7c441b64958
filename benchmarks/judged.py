"""How well simple models predict the labels of `measurement`, `comparison` and `wordproblems`.

Each row has a task, the visible columns, and the test accuracy of boosted trees and of logistic
regression on them. Columns are the logarithm of each number (with its sign), its last digit, and
the template and object of the row. Each task has its default number of rows, 80% for training.

Half of all rows are correct, so chance is 0.5. Its 95% interval is +-0.015 for 4,000 test rows and
+-0.011 for 8,000. Needs scikit-learn. Nothing is asserted.
"""

import argparse
import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from _shared import table  # type: ignore[import-not-found]
from numpy.typing import NDArray
from rich.console import Console

from numtok.data.tasks.base import SHARES, TASKS, TaskSplit, TextTask
from numtok.row import Row

# Visible columns by task: whether they include template and object, and the indices of numbers.
VIEWS: Mapping[str, Mapping[str, tuple[bool, Sequence[int]]]] = {
    "measurement": {
        "answer": (False, [1]),
        "all but the multiplier": (True, [1]),
        "all but the answer": (True, [0]),
        "all": (True, [0, 1]),
    },
    "comparison": {"all but the second number": (True, [0]), "all": (True, [0, 1])},
    "wordproblems": {
        "answer": (False, [2]),
        "all but the numbers of the story": (True, [2]),
        "all but the answer": (True, [0, 1]),
        "all": (True, [0, 1, 2]),
    },
}
SPECS = (
    "measurement",
    "measurement,multipliers=1..1000",
    "measurement,reach=10",
    "comparison",
    "comparison,near=1.1",
    "wordproblems",
    "wordproblems,off=0.01..0.1",
    "wordproblems,wrong=digit",
    "wordproblems,wrong=drawn",
    "wordproblems,wrong=operation",
)


def drawn(task: TextTask, split: TaskSplit, seed: int) -> list[Row]:
    """Return all rows of a split."""
    units = range(-(-split.rows // task.unit_rows))
    lines = b"".join(task.unit(seed, split, index).rows for index in units)
    return msgspec.json.Decoder(Row).decode_lines(lines)


def columns(
    rows: Sequence[Row], kinds: Mapping[str, int], is_seen: bool, places: Sequence[int]
) -> NDArray[np.float64]:
    """Return the visible columns, [rows, columns]. The kind, if visible, is the first one."""
    numbers = np.array([re.findall(r"-?[0-9]+", row.text) for row in rows], np.float64)
    kind = np.array([kinds[str(row.group)] for row in rows], np.float64)
    found = [kind] if is_seen else []
    for place in places:
        value = numbers[:, place]
        found += [np.sign(value) * np.log10(1 + np.abs(value)), np.abs(value) % 10]
    return np.stack(found, 1)


def accuracies(spec: str, seed: int) -> list[tuple[str, ...]]:
    """Return the rows of the table for one task."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    task = TASKS.build(spec)
    assert isinstance(task, TextTask)
    edge = SHARES * 4 // 5
    splits = (
        TaskSplit("train", task.samples * 4 // 5, 0, edge),
        TaskSplit("test", task.samples // 5, edge, SHARES),
    )
    train, test = (drawn(task, split, seed) for split in splits)
    kinds = {name: k for k, name in enumerate(sorted({str(row.group) for row in train}))}
    said, truth = ([row.label == "correct" for row in rows] for rows in (train, test))
    lines = []
    for view, (is_seen, places) in VIEWS[spec.partition(",")[0]].items():
        x, y = (columns(rows, kinds, is_seen, places) for rows in (train, test))
        trees = HistGradientBoostingClassifier(
            max_iter=300, categorical_features=[0] if is_seen else None, random_state=0
        )
        scores = [trees.fit(x, said).score(y, truth)]
        if is_seen:  # one column per kind
            one = np.eye(len(kinds))
            x, y = (np.hstack([one[of[:, 0].astype(int)], of[:, 1:]]) for of in (x, y))
        scores.append(LogisticRegression(max_iter=2000).fit(x, said).score(y, truth))
        lines.append((spec, view, *(f"{score:.3f}" for score in scores)))
    return lines


def main() -> None:
    """Measure all tasks and print the table."""
    parser = argparse.ArgumentParser(
        description="Measure what labels of judged texts give away.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=0, help="of the rows")
    options = parser.parse_args()
    shown = table("accuracy by what is seen", ("task", "seen"), ("trees", "logistic"))
    for spec in SPECS:
        for line in accuracies(spec, options.seed):
            shown.add_row(*line)
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
