"""Speed of finding numbers under each numeral policy, relative to the default policy.

    python benchmarks/policies.py [TEXTS.jsonl ...]

Each row is a policy, and each column a file. A cell is the speed of finding numbers and reading
their values, and its ratio to that of the default policy (best of several rounds). Without files,
the script generates texts: prose with a few numbers, and rows of many numbers. The last column has
rows in which every number is in the policy's own notation.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from numtok.encoding.texts import Texts
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy

ROUNDS = 7
SIZE = 8 << 20  # bytes of a file
_COMMAS = str.maketrans(".,", ",.")  # for policies with decimal commas
_OWN = {
    "thousands": "{:,}",
    "percent": "{} %",
    "suffixes": "{}k",
    "fractions": "{}/64",
    "units": "pH{}",
    "dimensions": "{0}x{0}",
    "unicode": "{}×10⁵",
    "decimal=comma": "{},5",
    "groups=apostrophe": "1'{:03}",
    "groups=space": "1 {:03};",
    "groups=underscore": "1_{:03}",
    "groups=indian": "1,12,{:03}",
    "signs=dash": "–{}",
    "signs=paren": "({})",
    "signs=trailing": "{}-",
}


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


def in_own_notation(policy: NumeralPolicy) -> list[str]:
    """Return rows of numbers that are all in a notation of the policy."""
    numbers = np.random.default_rng(0).integers(1, 999, 40)
    flags = policy.flags()
    row = " ".join(_OWN[flags[k % len(flags)]].format(v) for k, v in enumerate(numbers.tolist()))
    return [row] * (SIZE // len(row))


def seconds(texts: Texts, policy: NumeralPolicy) -> float:
    """Return the time to find the numbers and to read their values."""
    start = time.perf_counter()
    texts.find(policy).numerals()
    return time.perf_counter() - start


def compared(texts: list[str], default_texts: list[str], policy: NumeralPolicy) -> str:
    """Return the speed under a policy, and its ratio to that of the default policy on
    ``default_texts``."""
    pair = (Texts.of(default_texts), NumeralPolicy()), (Texts.of(texts), policy)
    rounds = [[seconds(*one) for one in pair] for _ in range(ROUNDS)]
    plain, own = map(min, zip(*rounds, strict=True))
    return f"{len(pair[1][0].data) / 1e6 / own:>6.0f} MB/s {plain / own:.2f}"


def main() -> None:
    """Print the table."""
    files = {
        Path(name).name: [
            json.loads(line)["text"] for line in Path(name).read_text("utf-8").splitlines()
        ]
        for name in sys.argv[1:]
    }
    texts_of = files or made()
    print("policy".ljust(22), *(f"{name:>16}" for name in (*texts_of, "own notation")))
    for spec in (*SINGLE, *PRESETS):
        policy = NumeralPolicy.parse(spec)
        cells = []
        for texts in texts_of.values():
            own = texts
            if policy.decimal == "comma":
                own = [text.translate(_COMMAS) for text in texts]
            cells.append(compared(own, texts, policy))
        rows = in_own_notation(policy)
        cells.append(compared(rows, rows, policy))
        print(spec.ljust(22), *(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
