"""Wording of NUPA questions, and parsing of the strings in the published data.

A published string consists of a *hint* about the form of the answer, an instruction, one or two
operands, ``" = "`` and the answer. The prompt ``short``, used in Appendix A of the Value-Aware
paper, omits the hint and, for ``count``, also the instruction.
"""

import re
from functools import cache
from typing import NamedTuple

from numtok.data.nupa.keys import FLOAT, FRACTION, INTEGER, SCIENTIFIC, Key

PROMPTS = ("published", "short")
EQUALS = " = "

_LIKE = "Directly return the answer as {} without any comma separator, like {} . "
_HINTS = {
    INTEGER: _LIKE.format("an integer", "123"),
    FLOAT: _LIKE.format("a float", "10.4"),
    FRACTION: _LIKE.format("an **irreducible** fraction", "7/13"),
    SCIENTIFIC: _LIKE.format("a scientific notation", "1.23e4")
    + "The float part should be in the range [1, 10). ",
}
_COMPARE = (
    "Compare two numbers digit by digit and return the {} digit at each position, treating any "
    "missing digits as 0. "
)
_TO_SCIENTIFIC = "Convert the number to scientific notation: "
#: Instruction of each task, and the text between two operands.
_TASKS = {
    "add": ("Add two numbers: ", " + "),
    "sub": ("Subtract two numbers: ", " - "),
    "multiply": ("Multiply two numbers: ", " * "),
    "max": ("Get the maximal number: ", " and "),
    "min": ("Get the mininal number: ", " and "),  # sic, as the benchmark spells it
    "digit_max": (_COMPARE.format("larger"), " and "),
    "digit_min": (_COMPARE.format("smaller"), " and "),
    "digit_add": (
        "The task is to add two given numbers digit by digit and return the result modulo 10 "
        "(ignoring carry), treating any missing digits as 0. ",
        " digit add ",
    ),
    "get_digit": (
        "Get the digit at the given position (from left to right, starting from 0). ",
        " at position ",
    ),
    "length": ("The total number of digits of ", ""),
    "truediv": ("Divide two numbers and return the result as a fraction. ", " / "),
    "floordiv": ("Divide two numbers and return the result as an integer. ", " // "),
    "mod": ("Divide two numbers and return the remainder. ", " % "),
    "to_float": ("Convert the number to float: ", ""),
    "to_scient": (_TO_SCIENTIFIC, ""),
    "count": (
        "Count the number of the given digit in the given number: ",
        " count the occurrence time of digit ",
    ),
    "sig": (_TO_SCIENTIFIC, " and keep significant figures as "),
}
#: Pattern of a number in each representation.
FORMS = {
    INTEGER: "[0-9]+",
    FLOAT: r"[0-9]+\.[0-9]+",
    FRACTION: "[0-9]+/[0-9]+",
    SCIENTIFIC: r"[1-9]\.[0-9]+e-?[0-9]+",  # a minus only in answers: 1.0e1 - 9.5e0 = 5.0e-1
}


class Wording(NamedTuple):
    """Texts before, between and after the operands of a question.

    ``between`` is empty if there is only one operand.
    """

    before: str
    between: str
    after: str


class Read(NamedTuple):
    """Operands and answer of a published string, in their original spelling."""

    operands: tuple[str, ...]
    answer: str


def wording(key: Key, prompt: str) -> Wording:
    """Return the wording of a task's questions with one of the :data:`PROMPTS`.

    >>> from numtok.data.nupa.keys import KEYS
    >>> wording(KEYS["truediv_Fraction_Fraction_Fraction"], "short")
    Wording(before='Divide two numbers and return the result as a fraction. (', \
between=') / (', after=')')
    """
    task = key.task.removesuffix("_easy").removesuffix("_hard")
    instruction, between = _TASKS[task]
    if prompt == "published":
        instruction = _HINTS[key.written] + instruction
    elif task == "count":
        instruction = ""
    if task == "truediv" and key.first == FRACTION:
        return Wording(f"{instruction}(", f"){between}(", ")")
    return Wording(instruction, between, "")


@cache
def _pattern(key: Key) -> re.Pattern[str]:
    question = wording(key, "published")
    operands = [FORMS[key.first]]
    if question.between:
        operands.append(FORMS[INTEGER if key.second == "int" else key.second])
    parts = re.escape(question.between).join(f"({operand})" for operand in operands)
    return re.compile(re.escape(question.before) + parts + re.escape(question.after + EQUALS))


def read(key: Key, text: str) -> Read:
    """Parse a question and its answer from the published data.

    Raises ValueError if the string is invalid; the message gives the reason.

    >>> from numtok.data.nupa.keys import KEYS
    >>> hint = "Directly return the answer as an integer without any comma separator, like 123 . "
    >>> read(KEYS["mod_Integer_Integer_Integer"],
    ...      hint + "Divide two numbers and return the remainder. 617 % 193 = 38")
    Read(operands=('617', '193'), answer='38')
    """
    match = _pattern(key).match(text)
    if match is None:
        raise ValueError(f"{_shown(text)} is not a question of {key.name}")
    answer = text[match.end() :]
    if not re.fullmatch(FORMS[key.written], answer):
        raise ValueError(f"the answer must be of type {key.written} (got {_shown(answer)})")
    return Read(match.groups(), answer)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}")


class WordedRow(NamedTuple):
    """Text of a question with its answer, and the spans of the numbers in it (in code points).

    operands
        Span of each operand; a fraction is one span.
    answer
        Span of each number in the answer; a fraction consists of two numbers.
    """

    text: str
    operands: list[tuple[int, int]]
    answer: list[tuple[int, int]]


def row(wording: Wording, operands: tuple[str, ...], answer: str) -> WordedRow:
    """Return the text of a question with its answer, and the spans of the numbers in it.

    >>> row(Wording("Add: ", " + ", ""), ("1/2", "1/3"), "5/6")
    WordedRow(text='Add: 1/2 + 1/3 = 5/6', operands=[(5, 8), (11, 14)], answer=[(17, 18), (19, 20)])
    """
    text = wording.before
    spans = []
    for index, operand in enumerate(operands):
        text += wording.between if index else ""
        spans.append((len(text), len(text) + len(operand)))
        text += operand
    text += wording.after + EQUALS
    return WordedRow(text + answer, spans, numbers_in(answer, len(text)))


def numbers_in(answer: str, start: int) -> list[tuple[int, int]]:
    """Return the spans of the numbers in an answer at ``start``; a fraction has two numbers."""
    end = start + len(answer)
    bar = answer.find("/")
    return [(start, end)] if bar < 0 else [(start, start + bar), (start + bar + 1, end)]
