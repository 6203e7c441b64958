"""Runs the blocks of a page in a fresh folder, and compares or rewrites their output.

``console``
    Lines that begin with ``$ `` are commands, ``> `` continues a command, and all other lines are
    output. A line ``...`` in the output matches any lines.
``sh``
    Commands without output, which must succeed. Training is cut to a few steps, data to few
    rows, and races are planned but not run.
``python``
    Code that runs in one namespace per page.

A comment on the line before a block changes this:

``<!-- file: NAME -->``
    The block is written to that file.
``<!-- slow -->``
    This block and all later ones take minutes, and only run if slow blocks do.
``<!-- not run: REASON -->``
    The block is not run.
``<!-- ci: NAME -->``
    CI runs the first line of the block in a new clone.

``<!-- setup`` begins a comment with shell commands, up to ``-->``, that run without being shown.
``cp -r "$SAMPLES" artifacts`` fills the store with the samples of ``docs/site/warm.py``.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.site.warm import ROOT, serving

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[\w ]+?)(?:: (?P<value>[^\n]*?))? -->\n)?"
    r"^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```$"
    r"|^<!-- setup\n(?P<setup>.*?)^-->$",
    re.M | re.S,
)
_COMMAND = re.compile(r"^\$ (.*(?:\n> .*)*)\n?", re.M)
_END = "\x1e"  # between the output of a command and its exit code
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
#: Output that differs between runs and machines, and its replacement in comparisons.
_MASKS = (
    (re.compile(r"@[0-9a-f]{8,64}"), "@VERSION"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|min|minutes?|seconds?|hours?|h)\b"), "TIME"),
    (re.compile(r"\b[\d.,]+ ?(?:[kMG]i?)?B(?:/s)?\b"), "BYTES"),
    (re.compile(r"\b[\d.,]+ ?[kM]? ?(?:tokens|rows|numbers)/s\b"), "RATE"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?"), "DATE"),
    (re.compile(r"─{2,}"), "──"),
    (re.compile(r"[ \t]+"), " "),
)
_TOLERANCE = 0.05  # relative difference of numbers with a decimal point
#: Slow commands in blocks without output, and their replacement.
_BUDGETS = (
    (re.compile(r"(numtok gen .*?--test) \d{3,}"), r"\1 20"),
    (re.compile(r"numtok race "), "numtok race --dry-run "),
    (re.compile(r"(numtok train .*?)--(?:minutes|steps|tokens) [\d.]+"), r"\1--steps 5"),
    (re.compile(r"(numtok gen .*?--(?:rows|train)) \d{4,}"), r"\1 99"),
)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page, or its hidden setup."""

    language: str
    text: str
    mark: str
    value: str
    start: int  # offset of ``text`` in the page


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A command whose output differs from the page."""

    command: str
    expected: str
    found: str


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    for match in _BLOCK.finditer(page):
        if match["setup"] is not None:
            text, language = match["setup"], "setup"
        else:
            text, language = match["text"], match["language"]
        yield Block(
            language=language,
            text=text,
            mark=match["mark"] or "",
            value=match["value"] or "",
            start=match.start("setup" if language == "setup" else "text"),
        )


def is_run(block: Block) -> bool:
    """Return whether the runner executes a block or writes it to a file."""
    if block.mark in ("not run", "ci", "command"):
        return False
    return block.mark == "file" or block.language in ("console", "sh", "python", "setup")


def commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output below it.

    >>> commands("$ echo a\\n> b\\na b\\n$ true\\n")
    [('echo a\\nb', 'a b\\n'), ('true', '')]
    """
    parts = _COMMAND.split(text)
    return [
        (command.replace("\n> ", "\n"), output)
        for command, output in zip(parts[1::2], parts[2::2], strict=True)
    ]


class Shell:
    """A bash process in a folder, with the script ``numtok`` from the folder ``served``."""

    def __init__(self, folder: Path, served: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMTOK_")}
        environment = kept | {
            "PATH": f"{served}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SAMPLES": str(served / "artifacts"),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "default",
            "COLUMNS": "100",
            "NUMTOK_THREADS": "1",  # another number changes the last digits of a loss
        }
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, command: str) -> str:
        """Run a command and return its output, with a line about its exit code unless it is 0."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f'{{ {command}\n}} </dev/null\necho "{_END}$?"\n')
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            rest, end, code = line.rstrip("\n").partition(_END)
            lines += [f"{rest.rstrip()}\n"] * (bool(rest) or not end)
            if end:
                return "".join(lines) + f"exit code {code}\n" * (code != "0")
        raise RuntimeError(f"the shell ended in: {command}")

    def check(self, commands: str) -> None:
        """Run commands in a subshell, each of which must succeed."""
        output = self.run(f"(\nset -eo pipefail\n{commands}\n)")
        if re.search(r"^exit code \d+$", output, re.M):
            raise RuntimeError(f"{commands}failed: {output}")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def run(page: Path, folder: Path, served: Path, *, slow: bool) -> tuple[list[Difference], str]:
    """Run a page in a folder; return the differences, and the page with the new output."""
    text = page.read_text(encoding="utf-8")
    found, shell, names = [], Shell(folder, served), {"__name__": "page"}
    replaced: list[tuple[int, int, str]] = []
    here = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks(text):
            if block.mark == "slow" and not slow:
                break
            if not is_run(block):
                continue
            if block.mark == "file":
                file = folder / block.value
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                _execute(block, page, text, names)
            elif block.language == "setup":
                shell.check(block.text)
            elif block.language == "sh":
                shell.check(cut(block.text))
            else:
                new = []
                for command, expected in commands(block.text):
                    output = shell.run(command)
                    if not same(expected, output):
                        found.append(Difference(command=command, expected=expected, found=output))
                    shown = "\n> ".join(command.split("\n"))
                    new.append(f"$ {shown}\n{elided(expected, output)}")
                replaced.append((block.start, block.start + len(block.text), "".join(new)))
    finally:
        os.chdir(here)
        shell.close()
    for start, end, new_text in reversed(replaced):
        text = text[:start] + new_text + text[end:]
    return found, text


def cut(commands: str) -> str:
    """Return commands that take seconds at most.

    >>> cut("numtok train rooms-xval --minutes 5")
    'numtok train rooms-xval --steps 5'
    """
    for budget, short in _BUDGETS:
        commands = budget.sub(short, commands)
    return commands


def _execute(block: Block, page: Path, text: str, names: dict[str, Any]) -> None:
    line = text.count("\n", 0, block.start)
    exec(compile("\n" * line + block.text, str(page), "exec"), names)


def masked(text: str) -> str:
    """Return a text with times, versions, sizes and layout masked, because they differ between
    runs."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def same(expected: str, found: str) -> bool:
    """Return whether an output matches the page, up to masks, last digits and ``...``.

    >>> same("r2 0.988\\n", "r2   0.987\\n"), same("3 rows\\n", "4 rows\\n")
    (True, False)
    """
    lines, before = masked(found).splitlines(), masked(expected).splitlines()
    if "..." not in before:
        return _same_lines(before, lines)
    wanted, last = before[: before.index("...")], before[before.index("...") + 1 :]
    if len(lines) < len(wanted) + len(last):
        return False
    return _same_lines(wanted, lines[: len(wanted)]) and _same_lines(
        last, lines[len(lines) - len(last) :]
    )


def _same_lines(expected: Sequence[str], found: Sequence[str]) -> bool:
    return len(expected) == len(found) and all(map(_same_line, expected, found))


def _same_line(expected: str, found: str) -> bool:
    if _NUMBER.sub("#", expected) != _NUMBER.sub("#", found):
        return False
    pairs = zip(_NUMBER.findall(expected), _NUMBER.findall(found), strict=True)
    return all(_near(*pair) for pair in pairs)


def _near(expected: str, found: str) -> bool:
    if expected == found:
        return True
    if "." not in expected + found:
        return False
    a, b = (float(number.replace(",", "")) for number in (expected, found))
    last = 10.0 ** -min(len(n.partition(".")[2].partition("e")[0]) for n in (expected, found))
    return abs(a - b) <= max(2 * last, _TOLERANCE * max(abs(a), abs(b)))


def elided(expected: str, output: str) -> str:
    """Return the output, shortened by ``...`` at the same lines as on the page."""
    lines, old = output.splitlines(), expected.splitlines()
    if "..." in old:
        at = old.index("...")
        tail = len(old) - at - 1
        lines = [*lines[:at], "...", *lines[len(lines) - tail :]]
    return "".join(f"{line}\n" for line in lines)


def pages() -> list[Path]:
    """Return the pages with blocks that run."""
    candidates = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        page
        for page in candidates
        if page.parent.name != "log" and any(map(is_run, blocks(page.read_text(encoding="utf-8"))))
    ]


def update(only: Sequence[Path], *, slow: bool) -> None:
    """Run pages and rewrite the output of their console blocks."""
    with tempfile.TemporaryDirectory() as served, serving(Path(served)):
        for page in only or pages():
            with tempfile.TemporaryDirectory() as folder:
                differences, text = run(page, Path(folder), Path(served), slow=slow)
            print(f"{page.relative_to(ROOT)}: {len(differences)} outputs changed", file=sys.stderr)
            page.write_text(text, encoding="utf-8")
