"""Speed of finding numbers under each numeral policy, against the default one.

    python benchmarks/policies.py [TEXTS.jsonl ...]

Each line is a policy; each column a file: the ratio of its time to that of the default policy in
the same round (least of several), over finding the numbers and reading their values. Texts without
a file are made here: prose with a few numbers, and rows of many.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from numtok.encoding.texts import Texts
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy

ROUNDS = 7
_COMMAS = str.maketrans(".,", ",.")  # for policies with decimal commas
SIZE = 8 << 20  # bytes of a file


def made() -> dict[str, list[str]]:
    """Return texts with few numbers and texts with many."""
    rng = np.random.default_rng(0)
    prose = (
        "The rest of the committee met in room {} on a Tuesday, as it had done for {} years, and "
        "nobody there could say why the minutes of that day are lost."
    )
    few = [prose.format(*rng.integers(1, 999, 2)) for _ in range(SIZE // 150)]
    many = [" ".join(f"{v:.4f}" for v in rng.normal(size=40)) for _ in range(SIZE // 300)]
    return {"prose": few, "numbers": many}


def seconds(texts: Texts, spec: str) -> float:
    """Return the time to find the numbers and to read their values."""
    policy = NumeralPolicy.parse(spec)
    start = time.perf_counter()
    texts.find(policy).numerals()
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    files = {
        Path(name).name: [
            json.loads(line)["text"] for line in Path(name).read_text("utf-8").splitlines()
        ]
        for name in sys.argv[1:]
    }
    texts_of = files or made()
    columns = {name: Texts.of(texts) for name, texts in texts_of.items()}
    with_commas = {
        name: Texts.of([text.translate(_COMMAS) for text in texts])
        for name, texts in texts_of.items()
    }
    specs = ["default", *SINGLE, *PRESETS]
    print("policy".ljust(22), *(f"{name:>16}" for name in columns))
    times = {name: {spec: np.inf for spec in specs} for name in columns}
    for name, texts in columns.items():
        for _ in range(ROUNDS):
            for spec in specs:
                by_comma = NumeralPolicy.parse(spec).decimal == "comma"
                own = with_commas[name] if by_comma else texts
                times[name][spec] = min(times[name][spec], seconds(own, spec))
    for spec in specs:
        cells = []
        for name, texts in columns.items():
            took = times[name]
            speed = len(texts.data) / 1e6 / took[spec]
            cells.append(f"{speed:>6.0f} MB/s {took['default'] / took[spec]:.2f}")
        print(spec.ljust(22), *(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
