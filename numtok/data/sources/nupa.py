"""nupa: published data of NUPA, the number understanding benchmark from the Number Cookbook."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from numtok.data.nupa.keys import (
    DIGITS,
    KEYS,
    MOST_DIGITS_OF_VALUE_AWARE,
    Key,
    allowed,
    chosen,
    digit_keys,
    key_of,
)
from numtok.data.nupa.wording import PROMPTS, Wording, read, row, wording
from numtok.data.sources._json_items import items
from numtok.data.sources.base import Note, OneFileSource, Origin, RejectedSourceRow, TextRow
from numtok.declaration import setting
from numtok.row import Row

_PLACE = (
    "https://huggingface.co/datasets/HaotongYang/NUPA_text/resolve/"
    "01e3831ec00dfd618a77d9f6fe7fc0d327ad16d7"
)
_FILES = {"test": "test", "validation": "valid", "train": "train"}
_MOST_NAMED = 5  # strata that are named in a note


@dataclass(frozen=True)
class NupaSource(OneFileSource):
    """The published data of the NUPA benchmark (Yang et al. 2025).

    from_
        URL, file or folder with ``test.json``, ``valid.json`` or ``train.json``; by default the
        published file.
    set
        Split to fetch: ``test`` (2,387,501 rows), ``validation`` or ``train`` (many gigabytes).
    preset
        ``published`` (all 44 task keys) or ``value-aware`` (38 of them, up to 7 digits).
    tasks, digits
        Subsets, such as ``add+sub_Float`` and ``1..5``, as for ``numtok gen nupa``.
    prompt
        ``published``, or ``short`` (without the hint about the form of the answer).
    on_error
        Bad rows: ``fail`` (an error) or ``skip`` (count and omit them).

    A file has the form ``{task key: {digit key: [string, ...]}}``. Rows have the same fields as
    rows from ``numtok gen nupa``. The number of rows for each task key and digit key is compared
    with that of the published test split, and differences are reported. Strings of unpublished
    tasks are skipped and reported.

    Raises UsageError if a setting is invalid.
    """

    revision = 1
    shares = None
    licence = "MIT"
    attribution = (
        "NUPA: Yang, Hu, Kang, Lin and Zhang, Number Cookbook: Number Understanding of Language "
        "Models and How to Improve It, ICLR 2025 (huggingface.co/datasets/HaotongYang/NUPA_text)"
    )

    from_: str = ""
    set: str = setting("test", choices=tuple(_FILES))
    preset: str = setting("published", choices=("published", "value-aware"))
    tasks: str = "all"
    digits: str = "published"
    prompt: str = setting("published", choices=PROMPTS)
    on_error: str = setting("fail", choices=("fail", "skip"))

    def __post_init__(self) -> None:
        chosen(self.preset, self.tasks)
        digit_keys(self.digits)

    def origins(self) -> Iterator[Origin]:
        file = f"{_FILES[self.set]}.json"
        key = [name for name in self.__dataclass_fields__ if name != "from_"]
        yield self.origin(f"nupa-{self.set}", f"{_PLACE}/{file}", [file], key)

    def rows(
        self, origin: Origin, files: Mapping[str, Path]
    ) -> Iterator[TextRow | RejectedSourceRow | Note]:
        ((_, path),) = files.items()
        counts: dict[tuple[str, ...], int] = {}
        above: tuple[str, ...] | None = None
        stratum: _PublishedStratum | str | None = None
        for keys, text in items(path, 3):
            if keys != above:  # the next list
                above, stratum = keys, self._stratum(keys)
                counts.setdefault(keys, 0)
            number = counts[keys]
            counts[keys] += 1
            if stratum is None:
                continue
            why = stratum
            if isinstance(stratum, _PublishedStratum):
                try:
                    yield stratum.row(self.set, number, text)
                    continue
                except ValueError as error:
                    why = str(error)
            yield RejectedSourceRow(f"{path}: {' '.join(keys)}, string {number + 1:,}: {why}")
        yield from map(Note, self._left_out(counts))
        yield from map(Note, self._checked(counts))

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return frozenset(key.name for key in chosen(self.preset, self.tasks))

    def _has(self, digits: int) -> bool:
        """Return whether the settings select a digit key."""
        is_small = self.preset == "published" or digits <= MOST_DIGITS_OF_VALUE_AWARE
        selected = digit_keys(self.digits)
        return is_small and (selected is None or digits in selected)

    def _stratum(self, keys: tuple[str, ...]) -> "_PublishedStratum | str | None":
        """Return the stratum of the strings below some keys.

        Returns the reason if they cannot be read, or None if they are not selected.
        """
        try:
            if len(keys) != 2:
                raise ValueError("it must be below a task key and a digit key")
            key = key_of(keys[0])
            if not re.fullmatch("[1-9][0-9]{0,3}", keys[1]):
                raise ValueError(f"the digit key must be an integer above 0 (got {keys[1]!r})")
        except ValueError as error:
            return str(error)
        digits = int(keys[1])
        if key.name not in self._wanted or not self._has(digits):
            return None
        return _PublishedStratum(key, digits, wording(key, self.prompt))

    def _left_out(self, counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
        """Report tasks that no published file contains, so that they cannot be selected."""
        unknown = Counter[str]()
        for (name, *_), rows in counts.items():
            if name in KEYS and not KEYS[name].is_published:
                unknown[name] += rows
        if unknown:
            yield (
                f"skipped {unknown.total():,} strings of {', '.join(sorted(unknown))}: these tasks "
                "are not in the published data. Generate them: numtok gen nupa --preset paper"
            )

    def _checked(self, counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
        """Compare the numbers of strings per stratum with the published ones."""
        actual = {
            keys: rows
            for keys, rows in counts.items()
            if isinstance(self._stratum(keys), _PublishedStratum)
        }
        if self.set != "test":
            yield (
                f"the numbers of strings of {len(actual):,} strata were not checked: the published "
                f"numbers of {self.set} are unknown"
            )
            return
        wrong, rough = [], 0
        for name in sorted(self._wanted):
            key = KEYS[name]
            for digits in filter(self._has, range(key.tested[0], key.tested[1] + 1)):
                got = actual.pop((name, str(digits)), 0)
                low, high = allowed(key, digits) or (0, 0)
                rough += low < high
                if not low <= got <= high:
                    expected = f"{low:,}" if low == high else f"{low:,} to {high:,}"
                    wrong.append(f"{name} {digits} has {got:,} strings instead of {expected}")
        wrong += [
            f"{' '.join(keys)} has {rows:,} instead of 0" for keys, rows in sorted(actual.items())
        ]
        if wrong:
            more = f", and {len(wrong) - _MOST_NAMED:,} more" if len(wrong) > _MOST_NAMED else ""
            named = "; ".join(wrong[:_MOST_NAMED])
            yield f"{len(wrong):,} strata differ from the published test split: {named}{more}"
        else:
            yield "every stratum has the published number of strings"
        if rough:
            yield f"only a range is known for {rough} strata of to_float_Fraction_none_Float"
        yield "the strings themselves were not checked: no checksum of the file is published"


class _PublishedStratum(NamedTuple):
    """A task key and a digit key of a file."""

    key: Key
    digits: int
    wording: Wording

    def row(self, split: str, number: int, text: object) -> TextRow:
        """Build a row from a published string. Raises ValueError if it cannot be used."""
        if not isinstance(text, str):
            raise ValueError(f"{text!r:.60} is not a string")
        key = self.key
        parts = read(key, text)
        phrased = row(self.wording, parts.operands, parts.answer)
        noted = () if _digits(key, parts.operands) == self.digits else ("digit_key_differs",)
        more = {"operands": parts.operands, "operand_spans": phrased.operands, "gold": parts.answer}
        return TextRow(
            Row(
                text=phrased.text,
                id=f"{split}-{key.name}-{self.digits}-{number}",
                targets={"answer": phrased.answer},
                answer_start=phrased.answer[0][0],
                group=key.group(self.digits),
                split=split,
            ),
            noted,
            more,
        )


def _digits(key: Key, operands: tuple[str, ...]) -> int:
    """Return the digit key that a question should have, which its longer operand determines."""
    of = operands[: 1 if key.second in ("none", "int") else 2]
    return max(map(DIGITS[key.first], of))
