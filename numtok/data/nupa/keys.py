"""Keys of NUPA tasks, such as ``add_Integer_Integer_Integer``.

A key consists of a task, the representations of its operands, and the representation of its answer.
Data is published for 44 keys. ``min`` and ``digit_min`` are among the 41 tasks in the paper (Yang
et al. 2025), but have no published data. The rows of a key are divided into strata by their *digit
key*: the number of digits of the longer operand. For floats and scientific notation, only the
digits after the decimal point are counted.
"""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from numtok.errors import UsageError, unknown
from numtok.stored_json import Scalar

INTEGER, FLOAT, FRACTION, SCIENTIFIC = "Integer", "Float", "Fraction", "ScientificNotation"
REPRESENTATIONS = (INTEGER, FLOAT, FRACTION, SCIENTIFIC)
PRESETS = ("published", "paper", "value-aware")
MOST_DIGITS, MOST_DIGITS_OF_VALUE_AWARE = 1000, 7

#: Names of the groups of tasks in Table 6 of Value-Aware; by default the name of the task.
_OPERATIONS = {
    "add": "add", "add_easy": "add", "sub": "subtract", "multiply_easy": "multiply",
    "multiply_hard": "multiply", "mod": "modulo", "mod_easy": "modulo", "max_hard": "max",
    "to_float": "to", "to_scient": "to",
}  # fmt: skip
_MANIPULATE_DIGITS = ("digit_max", "digit_min", "digit_add", "get_digit")
_EASIER = ("add_easy", "multiply_easy", "mod_easy", "max_hard")  # variants that the paper pools
_UNPUBLISHED = ("min", "digit_min")
_DIGITS = re.compile(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?")


class Key(NamedTuple):
    """A task with the representations of its operands and of its answer.

    task
        Name of the task, including its difficulty, as in ``add_easy``.
    first, second
        Representations of the operands. The second is ``none`` for tasks with one operand, and
        ``int`` for a digit position, a digit or a number of significant digits.
    answer
        Representation of the answer; ``int`` is written like Integer.
    tested, trained
        First and last digit key (number of digits, see the module). ``tested`` is the range of the
        published test and validation data, ``trained`` that of the published train data.
    """

    task: str
    first: str
    second: str
    answer: str
    tested: tuple[int, int]
    trained: tuple[int, int]

    @property
    def name(self) -> str:
        """Name of the key, such as ``add_Integer_Integer_Integer``."""
        return f"{self.task}_{self.first}_{self.second}_{self.answer}"

    @property
    def operation(self) -> str:
        """Group of the task in Table 6 of the Value-Aware paper, such as ``add`` for ``add_easy``.

        For a task that is not in a group, this is the name of the task.
        """
        return _OPERATIONS.get(self.task, self.task)

    @property
    def is_published(self) -> bool:
        """True if data for the task is published; false for ``min`` and ``digit_min``."""
        return self.task not in _UNPUBLISHED

    @property
    def written(self) -> str:
        """Representation of the written answer, which is Integer if ``answer`` is ``int``."""
        return INTEGER if self.answer == "int" else self.answer

    def group(self, digits: int) -> dict[str, Scalar]:
        """Return the field ``group`` of rows with this key and the digit key ``digits``."""
        return {
            "task": self.name,
            "operation": self.operation,
            "representation": self.first,
            "digits": digits,
        }


def _keys() -> list[Key]:
    integers, floats, fractions, scientific = REPRESENTATIONS
    near = {integers: (3, 20), floats: (3, 20), fractions: (1, 20), scientific: (3, 20)}
    far = {integers: (5, 100), floats: (3, 100), fractions: (1, 20), scientific: (3, 100)}
    keys: list[Key] = []

    def add(task: str, first: Sequence[str], second: str = "", answer: str = "") -> None:
        is_far = _OPERATIONS.get(task, task) in (
            "max", "min", "count", "length", "sig", "to", *_MANIPULATE_DIGITS,
        )  # fmt: skip
        for representation in first:
            tested = (far if is_far else near)[representation]
            if task == "to_float" and representation == fractions:
                tested = (1, 21)  # reduced and multiplied, a power of ten has one more digit
            trained = (1, 20 if is_far and representation != fractions else 8)
            keys.append(
                Key(
                    task=task,
                    first=representation,
                    second=second or representation,
                    answer=answer or representation,
                    tested=tested,
                    trained=trained,
                )
            )

    for task in ("add", "sub", "multiply_easy", "multiply_hard", "max", "min"):
        add(task, REPRESENTATIONS)
    add("add_easy", [fractions])
    add("max_hard", [integers, floats, scientific])
    for task in ("digit_max", "digit_min", "digit_add"):
        add(task, [integers, floats])
    add("get_digit", [integers, floats], "int", "int")
    add("length", [integers, floats], "none", "int")
    add("count", [integers], "int", "int")
    add("truediv", [integers, fractions], answer=fractions)
    for task in ("floordiv", "mod", "mod_easy"):
        add(task, [integers])
    add("to_float", [fractions, scientific], "none", floats)
    add("to_scient", [integers, floats], "none", scientific)
    add("sig", [integers, floats], "int", scientific)
    return sorted(keys, key=lambda key: key.name)


#: All keys by name, in order.
KEYS = {key.name: key for key in _keys()}


#: Digit key of an operand of each representation.
DIGITS: dict[str, Callable[[str], int]] = {
    INTEGER: len,
    FLOAT: lambda text: len(text) - text.index(".") - 1,
    FRACTION: lambda text: max(map(len, text.split("/"))),
    SCIENTIFIC: lambda text: text.index("e") - text.index(".") - 1,
}


def key_of(name: str) -> Key:
    """Return the key with this name.

    Raises ValueError if the name is unknown; the message suggests the most similar one.

    >>> key_of("sig_Float_int_ScientificNotation").operation
    'sig'
    """
    if name not in KEYS:
        near = get_close_matches(name, KEYS, n=1, cutoff=0.5)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise ValueError(f"unknown task key {name!r}{guess}")
    return KEYS[name]


def chosen(preset: str, tasks: str) -> list[Key]:
    """Return the keys in a preset that are selected by ``tasks``.

    ``tasks`` is ``all``, or a list of names separated by ``+``. A name is a task (``mod``), a task
    with a representation (``sub_Float``) or a complete key.

    >>> [key.name for key in chosen("published", "mod+sub_Float")]
    ['mod_Integer_Integer_Integer', 'sub_Float_Float_Float']

    Raises UsageError if the preset or a name is unknown.
    """
    if preset not in PRESETS:
        raise UsageError(f"--preset must be one of {', '.join(PRESETS)} (got {preset})")
    keys = [key for key in KEYS.values() if _is_of(preset, key)]
    if tasks == "all":
        return keys
    selected: set[str] = set()
    for name in tasks.split("+"):
        named = [key for key in keys if name in (key.name, key.task, f"{key.task}_{key.first}")]
        if not named:
            names = {key.task for key in keys} | {key.name for key in keys}
            raise unknown(f"task of preset {preset}", name, names, "Join several with +")
        selected.update(key.name for key in named)
    return [key for key in keys if key.name in selected]


def _is_of(preset: str, key: Key) -> bool:
    if preset == "paper":
        return key.task not in _EASIER
    return key.is_published and not (preset == "value-aware" and key.task in _MANIPULATE_DIGITS)


def digit_keys(text: str) -> range | None:
    """Parse digit keys such as ``5`` or ``1..7``. Returns None for ``published``.

    >>> digit_keys("1..7")
    range(1, 8)

    Raises UsageError if the text is anything else.
    """
    if text == "published":
        return None
    match = _DIGITS.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= last <= MOST_DIGITS:
        raise UsageError(
            f"--digits must be published, or a number or a range such as 1..7 from 1 to "
            f"{MOST_DIGITS:,} (got {text})"
        )
    return range(first, last + 1)


USUAL = 1000

_KNOWN = {
    "get_digit_Float_int_int": {3: 998},
    "length_Float_none_int": {3: 991, 4: 998},
    "length_Integer_none_int": {5: 999, 6: 998},
    "max_Fraction_Fraction_Fraction": {1: 631, 2: 999},
    "sig_Float_int_ScientificNotation": {3: 998},
    "sub_Fraction_Fraction_Fraction": {1: 839},
    "to_float_Fraction_none_Float": {1: 25, 2: 390, 3: 927, 20: 824, 21: 1},
    "to_float_ScientificNotation_none_Float": {3: 983, 4: 999},
    "to_scient_Float_none_ScientificNotation": {3: 991, 4: 998},
    "to_scient_Integer_none_ScientificNotation": {5: 928, 6: 956, 7: 995, 8: 996},
    "truediv_Fraction_Fraction_Fraction": {1: 996},
}
_ROUGH = "to_float_Fraction_none_Float"
_ROUGH_RANGE = (967, 1038)
_ROUGH_SUMS = {range(4, 8): 4057, range(8, 20): 11_984}


def published(key: Key, digits: int) -> int | None:
    """Return the number of published test rows for a key and a digit key.

    Returns None if no rows are published. The number is approximate for some digit keys of
    ``to_float_Fraction_none_Float``.

    >>> from numtok.data.nupa.keys import KEYS
    >>> [published(KEYS["sub_Fraction_Fraction_Fraction"], digits) for digits in (1, 2, 21)]
    [839, 1000, None]
    """
    if not key.is_published or not key.tested[0] <= digits <= key.tested[1]:
        return None
    if key.name == _ROUGH:
        for part, rows in _ROUGH_SUMS.items():
            if digits in part:  # only the sum is known
                return rows // len(part) + (digits - part.start < rows % len(part))
    return _KNOWN.get(key.name, {}).get(digits, USUAL)


def allowed(key: Key, digits: int) -> tuple[int, int] | None:
    """Return a lower and an upper bound on the number of published test rows.

    The bounds are equal if the number is known exactly (see :func:`published`). Returns None if no
    rows are published for the key and the digit key.
    """
    rows = published(key, digits)
    if rows is None:
        return None
    is_rough = key.name == _ROUGH and any(digits in part for part in _ROUGH_SUMS)
    return _ROUGH_RANGE if is_rough else (rows, rows)
