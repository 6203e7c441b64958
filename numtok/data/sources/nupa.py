"""nupa: the published data of the Number Cookbook's benchmark, arithmetic and more in digits."""

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
_TOLD = 5  # strata that are named


@dataclass(frozen=True)
class NupaSource(OneFileSource):
    """NUPA (Yang et al. 2025) as it was published, ``{task key: {digit key: [string, ...]}}``.

    from_
        A URL, a file or a folder with ``test.json``, ``valid.json`` or ``train.json``.
    set
        ``test`` (2,387,501 rows), ``validation`` or ``train`` (many gigabytes): the split.
    preset
        ``published``, all 44 task keys, or ``value-aware``: 38 of them, up to 7 digits.
    tasks, digits
        Some of these: ``add+sub_Float``, ``1..5``; as of ``numtok gen nupa``.
    prompt
        ``published``, or ``short``: without the hint at the form of the answer.
    on_error
        ``fail``, or ``skip``: rows that cannot be used are counted and left out.

    Rows have what those of ``numtok gen nupa`` have. How many there are of each stratum is compared
    with what is known of the published test split, for the strata that were asked for; of the
    others is told how many strings are of tasks that no published file has.

    Raises UsageError for settings that cannot be.
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
        stratum: _Stratum | str | None = None
        for keys, text in items(path, 3):
            if keys != above:  # the next list
                above, stratum = keys, self._stratum(keys)
                counts.setdefault(keys, 0)
            number = counts[keys]
            counts[keys] += 1
            if stratum is None:
                continue
            why = stratum
            if isinstance(stratum, _Stratum):
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
        """Whether a digit key was asked for."""
        is_small = self.preset == "published" or digits <= MOST_DIGITS_OF_VALUE_AWARE
        given = digit_keys(self.digits)
        return is_small and (given is None or digits in given)

    def _stratum(self, keys: tuple[str, ...]) -> "_Stratum | str | None":
        """What the strings below some keys are; why they cannot be read, or None where they were
        not asked for."""
        try:
            if len(keys) != 2:
                raise ValueError("a task key and a digit key should stand above it")
            key = key_of(keys[0])
            if not re.fullmatch("[1-9][0-9]{0,3}", keys[1]):
                raise ValueError(f"{keys[1]!r} is no digit key, which is a number above 0")
        except ValueError as error:
            return str(error)
        digits = int(keys[1])
        if key.name not in self._wanted or not self._has(digits):
            return None
        return _Stratum(key, digits, wording(key, self.prompt))

    def _left_out(self, counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
        """Tasks that no published file has, so that nobody can have asked for them."""
        unknown = Counter[str]()
        for (name, *_), rows in counts.items():
            if name in KEYS and not KEYS[name].is_published:
                unknown[name] += rows
        if unknown:
            yield (
                f"{unknown.total():,} strings of {', '.join(sorted(unknown))} were left out: these "
                "tasks are not in the published data; `numtok gen nupa --preset paper` makes them"
            )

    def _checked(self, counts: Mapping[tuple[str, ...], int]) -> Iterator[str]:
        """What the counts of strata say beside those that are known, and what cannot be said."""
        found = {
            keys: rows for keys, rows in counts.items() if isinstance(self._stratum(keys), _Stratum)
        }
        if self.set != "test":
            yield (
                f"the counts of the strata ({len(found):,}) could not be checked: those of "
                f"{self.set} are not known"
            )
            return
        wrong, rough = [], 0
        for name in sorted(self._wanted):
            key = KEYS[name]
            for digits in filter(self._has, range(key.tested[0], key.tested[1] + 1)):
                got = found.pop((name, str(digits)), 0)
                low, high = allowed(key, digits) or (0, 0)
                rough += low < high
                if not low <= got <= high:
                    known = f"{low:,}" if low == high else f"{low:,} to {high:,}"
                    wrong.append(f"{name} {digits} has {got:,} strings for {known}")
        wrong += [f"{' '.join(keys)} has {rows:,} for none" for keys, rows in sorted(found.items())]
        if wrong:
            more = f", and {len(wrong) - _TOLD:,} more" if len(wrong) > _TOLD else ""
            told = "; ".join(wrong[:_TOLD])
            yield f"{len(wrong):,} strata are not as in the published test split: {told}{more}"
        else:
            yield "every stratum has as many strings as in the published test split"
        if rough:
            yield f"of {rough} strata of to_float_Fraction_none_Float a range alone is known"
        yield "the strings themselves could not be checked: no checksum of the file is published"


class _Stratum(NamedTuple):
    """A task key and a digit key of a file."""

    key: Key
    digits: int
    asked: Wording

    def row(self, split: str, number: int, text: object) -> TextRow:
        """A row of data; ValueError says why there cannot be one."""
        if not isinstance(text, str):
            raise ValueError(f"{text!r:.60} is no string")
        key = self.key
        parts = read(key, text)
        made = row(self.asked, parts.operands, parts.answer)
        noted = () if _digits(key, parts.operands) == self.digits else ("digit_key_differs",)
        more = {"operands": parts.operands, "operand_spans": made.operands, "gold": parts.answer}
        return TextRow(
            Row(
                text=made.text,
                id=f"{split}-{key.name}-{self.digits}-{number}",
                targets={"answer": made.answer},
                answer_start=made.answer[0][0],
                group=key.group(self.digits),
                split=split,
            ),
            noted,
            more,
        )


def _digits(key: Key, operands: tuple[str, ...]) -> int:
    """The digit key that a question should stand under: that of its longer operand."""
    of = operands[: 1 if key.second in ("none", "int") else 2]
    return max(map(DIGITS[key.first], of))
