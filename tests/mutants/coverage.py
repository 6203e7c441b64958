"""Which tests to run for a mutant, the nearest first, by a record of what each test ran."""

import ast
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.mutant import ROOT, Mutant

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Whose calls the recorder does not see, or sees the first time alone.
_UNSEEN = re.compile(r"kernel|inlined|intrinsic|cache|property")


def function_at(source: str, line: int) -> str | None:
    """The outermost function (``Class.method``) at a line, where the recorder sees its calls."""

    def found(body: list[ast.stmt], before: str) -> str | None:
        for one in body:
            if one.lineno <= line <= (one.end_lineno or line):
                if isinstance(one, _Function):
                    seen = not any(_UNSEEN.search(ast.unparse(d)) for d in one.decorator_list)
                    return before + one.name if seen else None
                if isinstance(one, ast.ClassDef):
                    return found(one.body, f"{before}{one.name}.")
        return None

    return found(ast.parse(source).body, "")


def closeness(test_file: str, file: str) -> int:
    """How near a file of tests is to a file of numtok: by its folder, its name, what it imports."""
    ours, theirs = Path(file).parts[1:], Path(test_file).parts[1:]
    score = 0
    for one, other in zip(ours[:-1], theirs[:-1], strict=False):
        if one != other:
            break
        score += 1
    stem = Path(file).stem.strip("_")
    module = file.removesuffix(".py").replace("/", ".")
    text = (ROOT / test_file).read_text()
    score += 2 * (stem in Path(test_file).stem)
    package, _, name = module.rpartition(".")
    imported = re.search(
        rf"{re.escape(module)}\b|from {re.escape(package)} import .*\b{name}\b", text
    )
    return score + 2 * (imported is not None)


@dataclass
class Record:
    """By ``file:function``, and by file, the tests that ran it; of each test how long it took, and
    how many functions it ran."""

    seconds: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    by_function: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def read(cls, path: Path) -> "Record":
        record = cls()
        for line in path.read_text().splitlines():
            one = json.loads(line)
            test = one["test"]
            record.seconds[test] = max(one["seconds"], record.seconds.get(test, 0.0))
            record.sizes[test] += len(one["ran"])
            for name in one["ran"]:
                record.by_function[name].add(test)
                record.by_function[name.partition(":")[0]].add(test)
        return record

    def tests(self, mutant: Mutant) -> list[str]:
        """Those that ran what the mutant changes, the nearest first; all where none was seen to."""
        source = (ROOT / mutant.file).read_text()
        line = source[: source.index(mutant.old) + len(mutant.old) // 2].count("\n") + 1
        function = function_at(source, line)
        names = f"{mutant.file}:{function}", mutant.file
        ran = next(filter(None, map(self.by_function.get, names)), set(self.seconds))
        there = {test for test in ran if (ROOT / test.partition("::")[0]).exists()}
        near = {of: closeness(of, mutant.file) for of in {one.partition("::")[0] for one in there}}

        def rank(test: str) -> float:
            """What runs little else, and is quick, says soonest whether this is right."""
            cost = (20 + self.sizes[test]) * (0.1 + self.seconds[test])
            return cost / 4.0 ** near[test.partition("::")[0]]

        return sorted(there, key=rank)
