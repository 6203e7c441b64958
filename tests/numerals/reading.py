"""A slow implementation of docs/reference/numbers.md with regular expressions and no numtok code.

:func:`spans_of` finds numbers by the default rule. :func:`read` applies any policy: it first
rewrites other notations as the default one, in cells that record their original characters.
"""

import re
import unicodedata
from collections.abc import Collection
from fractions import Fraction
from typing import NamedTuple

LETTER = "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u053f"
ENDS_WITH_LETTER = re.compile(rf"[{LETTER}]\Z")
OTHER = "".join(
    char for char in map(chr, range(0x80, 0x110000)) if unicodedata.category(char) == "Nd"
)
ENDS_WITH_OPERAND = re.compile(rf"[{LETTER}0-9{OTHER})\]}}.%°]['\"’”]?\Z")
ENDS_WITH_OTHER_DIGIT = re.compile(rf"[{OTHER}]\Z")
_OTHER_DIGIT = re.compile(rf"\.?[{OTHER}]")
_HEX = "[0-9A-Fa-f]"
_UUID = re.compile(rf"(?<![0-9A-Za-z]){_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}(?![0-9A-Za-z])")
_HOUR = re.compile(r"T[0-9]{2}:[0-9]{2}")
_HEX_TAIL = re.compile("(?=[a-f]+[0-9])[0-9a-f]+(?![0-9a-z])", re.ASCII | re.IGNORECASE)
HASH = re.compile("(?=.{8})[0-9]+e[0-9]{2,}", re.ASCII | re.IGNORECASE)
_DIGITS = re.compile("[0-9]+")
_CHAIN = re.compile("[0-9]+(,[0-9]+)*")
_GROUPS = re.compile("[1-9][0-9]{0,2}(,[0-9]{3})+")
_BASE_PREFIX = re.compile("0[xX][A-Za-z0-9_]|0[bBoO][0-9]")
_EXPONENT = re.compile("[eE][-+]?[0-9]+")
_FRACTION = re.compile(rf"\.[0-9]+|\.(?={_EXPONENT.pattern})")
_MORE_POINTS = re.compile(r"(\.[0-9]+)+")


def spans_of(text: str, thousands: bool = False, percent: bool = False) -> list[tuple[int, int]]:
    """Return the spans of numbers by the default rule, sentence by sentence."""
    found = []
    position = 0
    uuids = [match.span() for match in _UUID.finditer(text)]
    while digits := _DIGITS.search(text, position):
        first, position = digits.span()
        before = text[:first]
        if within := [end for begin, end in uuids if begin <= first < end]:
            position = within[0]
            continue
        if ENDS_WITH_OTHER_DIGIT.search(before) or re.search(rf"[0-9{OTHER}]\.\Z", before):
            continue  # the rest of a number in another script, or the fraction of an identifier
        hour = _HOUR.match(text, first - 1) if first else None
        is_hour = hour and not ENDS_WITH_LETTER.search(before[:-1])
        if ENDS_WITH_LETTER.search(before) and not is_hour:
            continue  # an identifier
        if _BASE_PREFIX.match(text, first):
            continue
        point_before = before.endswith(".")
        own_point = point_before and not ENDS_WITH_OPERAND.search(before[:-1])
        end = position
        if not own_point:
            chain = _CHAIN.match(text, first)
            assert chain
            whole = _GROUPS.fullmatch(chain[0]) and not re.search(r"[0-9],\Z", before)
            if thousands and whole:
                end = chain.end()
            if fraction := _FRACTION.match(text, end):
                end = fraction.end()
        if exponent := _EXPONENT.match(text, end):
            end = exponent.end()
        position = end
        if tail := _HEX_TAIL.match(text, end):
            position = tail.end()
            continue
        if HASH.fullmatch(text, first - own_point, end) or _OTHER_DIGIT.match(text, end):
            continue
        if version := _MORE_POINTS.match(text, end):
            position = version.end()
            continue
        if text.startswith("_", end):
            continue
        if percent and text.startswith("%", end):
            position = end = end + 1
        start = first - own_point
        sign = start - 1
        may_have_sign = own_point or not point_before
        if may_have_sign and sign >= 0 and text[sign] in "+-\u2212":
            start = start if ENDS_WITH_OPERAND.search(text[:sign]) else sign
        found.append((start, end))
    return found


# --- other notations ---------------------------------------------------------------------------

_ASCII = {
    **dict(zip("．，－＋％／٫٬٪⁄", ".,-+%/.,%/", strict=True)),
    **{char: str(unicodedata.decimal(char)) for char in OTHER},
}
_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞↉"
_SUPER = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SPACE = "[ \u00a0\u2009\u202f]"
_SEPARATORS = {"apostrophe": "['’]", "space": _SPACE, "underscore": "_"}
_MULTIPLES = {"k": 3, "K": 3, "M": 6, "B": 9, "T": 12, "mn": 6, "bn": 9, "tn": 12}
_WORDS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "lakh": 5, "crore": 7}
_WORD_ENDS = rf"(?![{LETTER}0-9{OTHER}])"
_SUFFIX = re.compile(
    rf"(?P<glued>{'|'.join(_MULTIPLES)}){_WORD_ENDS}"
    rf"| (?P<word>mn|bn|tn|{'|'.join(_WORDS)}){_WORD_ENDS}"
)
_TEN_TO = (
    r"10(?:\^(?P<caret>[-+\u2212]?[0-9]{1,3})(?!\.?[0-9])"
    rf"|(?P<super>[⁺⁻]?[{_SUPER}]{{1,3}})(?![{_SUPER}0-9]))"
)
_TIMES = re.compile(rf" ?[×xX*·⋅] ?{_TEN_TO}")
_BARE_POWER = re.compile(_TEN_TO)
_RATIO_ENDS = rf"(?!/|\.[0-9]|[{LETTER}0-9{OTHER}])"
_PART = "[0-9]{1,7}"
_RATIO = re.compile(
    rf"(?:(?P<whole>{_PART}) )?(?P<above>{_PART})/(?P<below>{_PART}){_RATIO_ENDS}"
    rf"|(?:(?P<before>{_PART}) ?)?(?P<vulgar>[{_VULGAR}]){_RATIO_ENDS}"
)
_QUANTITY_ENDS = re.compile(f"(?:[a-z][A-Za-z]*|[KMBT])?{_WORD_ENDS}")


class Cell(NamedTuple):
    """Written characters, and the span of the original text that they represent."""

    written: str
    start: int
    end: int


def _cells(text: str, flags: Collection[str]) -> list[Cell]:
    """Return cells of single characters, with the characters that a policy exchanges."""
    forms: dict[str, str] = dict(_ASCII) if "unicode" in flags else {}
    comma = {".": ",", ",": "."} if "decimal=comma" in flags else {}
    dash = dict.fromkeys("\u2011\u2013", "\u2212") if "signs=dash" in flags else {}
    cells = []
    for index, char in enumerate(text):
        plain = forms.get(char, char)
        cells.append(Cell(comma.get(plain, dash.get(plain, plain)), index, index + 1))
    return cells


def _is_unit(before: str, units: Collection[str]) -> bool:
    word = re.search(r"[A-Za-z]+\Z", before)
    if not word or word[0] not in units:
        return False
    return not re.search(rf"[{LETTER}0-9{OTHER}]\Z", before[: word.start()])


def _groups_at(text: str, first: int, flags: Collection[str]) -> tuple[str, str] | None:
    """Return the kind of the groups of digits that begin at an offset, and their text."""
    for kind in ("thousands", *_SEPARATORS, "indian"):
        if (kind if kind == "thousands" else f"groups={kind}") not in flags:
            continue
        mark = _SEPARATORS.get(kind, ",")
        chain = re.compile(f"[0-9]+(?:{mark}[0-9]+)*").match(text, first)
        assert chain
        size, inner = ("{0,1}", 2) if kind == "indian" else ("{0,2}", 3)
        form = f"[1-9][0-9]{size}(?:{mark}[0-9]{{{inner}}})*{mark}[0-9]{{3}}"
        if re.fullmatch(form, chain[0]) and not re.search(f"[0-9]{mark}\\Z", text[:first]):
            return kind, chain[0]
    return None


def _expanded(ratio: "re.Match[str]") -> str | None:
    if ratio["vulgar"]:
        part = Fraction(unicodedata.numeric(ratio["vulgar"])).limit_denominator(10)
        value = int(ratio["before"] or 0) + part
    else:
        above, below = int(ratio["above"]), int(ratio["below"])
        if not below or (ratio["whole"] and above >= below):
            return None
        value = int(ratio["whole"] or 0) + Fraction(above, below)
    whole, rest = divmod(value, 1)
    digits, count = "", len(str(whole)) if whole else 0
    while rest and count < 25:
        digit, rest = divmod(rest * 10, 1)
        digits += str(digit)
        count += bool(count or digit)
    return f"{whole}.{digits}" if digits else str(whole)


def _power(match: "re.Match[str]") -> str:
    digits = (match["caret"] or match["super"]).translate(
        str.maketrans(f"{_SUPER}⁺⁻\u2212", "0123456789+--")
    )
    return f"{int(digits):+d}"


def _rewritten(text: str, flags: Collection[str], units: Collection[str]) -> list[Cell]:
    """Return the cells of a text, with other notations rewritten as the default one."""
    cells: list[Cell] = []
    copied = position = 0
    uuids = [match.span() for match in _UUID.finditer(text)]
    anchor = re.compile(f"[0-9]+|[{_VULGAR}]" if "fractions" in flags else "[0-9]+")
    joined = set(flags) - {"groups=space"}
    fresh = -1

    def copy(end: int) -> None:
        nonlocal copied
        cells.extend(Cell(text[at], at, at + 1) for at in range(copied, end))
        copied = end

    while digits := anchor.search(text, position):
        first, position = digits.span()
        before = text[:first]
        if within := [end for begin, end in uuids if begin <= first < end]:
            position = within[0]
            continue
        if ENDS_WITH_OTHER_DIGIT.search(before):
            continue
        is_unit = False
        if ENDS_WITH_LETTER.search(before) and first != fresh:
            is_unit = "units" in flags and _is_unit(before, units)
            if not is_unit:
                continue
        point = before.endswith(".")
        if point and digits[0] in _VULGAR:
            continue
        if point and ENDS_WITH_OPERAND.search(before[:-1]):
            if exponent := _EXPONENT.match(text, position):  # é.25e-3 234
                position = exponent.end()
            continue
        start, end, new, is_ratio = first - point, position, None, False
        if digits[0] in _VULGAR:
            ratio = _RATIO.match(text, first)
            if is_unit or not ratio or re.search("[0-9/]\\Z", before):
                continue
            new, end, is_ratio = _expanded(ratio), ratio.end(), True
        else:
            if not point:
                if groups := _groups_at(text, first, flags):
                    kind, chain = groups
                    end = first + len(chain)
                    new = None if kind == "thousands" else re.sub("[^0-9]", "", chain)
                if decimals := _FRACTION.match(text, end):
                    new = new and new + decimals[0]
                    end = decimals.end()
            if version := _MORE_POINTS.match(text, end):
                position = version.end()
                continue
            is_integer = not point and not _FRACTION.search(text, first, end)
            is_plain = is_integer and end == digits.end()
            exponent = _EXPONENT.match(text, end)
            after = exponent.end() if exponent else end
            if is_unit and not _QUANTITY_ENDS.match(text, after):
                continue
            if exponent:
                new, end = new and new + exponent[0], after
            else:
                plain, mantissa = end, new or text[start:end]
                if "unicode" in flags and (match := _TIMES.match(text, end)):
                    new, end = f"{mantissa}e{_power(match)}", match.end()
                elif (
                    "unicode" in flags
                    and is_plain
                    and digits[0] == "10"
                    and not before.endswith("^")
                    and (match := _BARE_POWER.match(text, first))
                ):
                    new, end = f"1e{_power(match)}", match.end()
                elif (
                    "fractions" in flags
                    and is_integer
                    and not before.endswith("/")
                    and (integer := re.sub("[^0-9]", "", text[first:end]))
                    and (ratio := _RATIO.match(integer + text[end:]))
                    and (value := _expanded(ratio)) is not None
                    and (is_plain or ratio["whole"] or ratio["before"])
                    and (shift := end - len(integer)) >= 0
                    and not (
                        ratio["below"] and _groups_at(text, shift + ratio.start("below"), joined)
                    )
                ):
                    new, end, is_ratio = value, shift + ratio.end(), True
                elif "suffixes" in flags and (match := _SUFFIX.match(text, end)):
                    power = (_MULTIPLES | _WORDS)[match["glued"] or match["word"]]
                    new, end = f"{mantissa}e+{power}", match.end()
                assert end >= plain
            is_zero = digits[0] == "0" and end == digits.end() and not point
            if "dimensions" in flags and re.compile("[xX][0-9]").match(text, end) and not is_zero:
                fresh = end + 1
        position = end
        number = new or text[start:end]
        percent = re.compile(f"{_SPACE}?%").match(text, end) if "percent" in flags else None
        if percent:
            if percent[0] != "%" or new is not None:
                new = number + "%"
            number, end = number + "%", percent.end()
        begin = start
        bracket = re.search(r"\((?:[$€£¥₹] ?)?\Z", text[:start])
        if (
            "signs=paren" in flags
            and not is_unit
            and bracket
            and text.startswith(")", end)
            and not ENDS_WITH_OPERAND.search(text[: bracket.start()])
        ):
            begin, end = bracket.start(), end + 1
            is_percent = "percent" in flags and text.startswith("%", end)
            new = f"-{number}" if is_percent else f"-{number})"
        elif (
            "signs=trailing" in flags
            and not is_unit
            and re.compile(r"[-\u2212](?:[ \u00a0\u2009\u202f\t\r\n.,;:)\]}\"'|]|\Z)").match(
                text, end
            )
            and not re.search(r"[-+\u2212]\Z", text[:start])
            and not ENDS_WITH_OPERAND.search(text[:start])
        ):
            new, end = f"-{number}-", end + 1
        elif is_ratio:
            new = f"{number})"
        if is_ratio and text[:begin].endswith(","):
            new = f" {new}"
        if is_unit:
            copy(start)
            cells.append(Cell(" ", start, start))
        if new is not None:
            copy(begin)
            cells.append(Cell(new, begin, end))
            copied = position = end
        if fresh > position - 1 and fresh > copied:
            copy(fresh - 1)
            cells.append(Cell(" ", fresh - 1, fresh))
            copied = fresh
    copy(len(text))
    return cells


def read(text: str, flags: Collection[str], units: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return the numbers of a text under the flags of a policy.

    Each number is given as in the text and in the notation of the scanner.
    """
    first = _cells(text, flags)
    exchanged = "".join(cell.written for cell in first)
    second = _rewritten(exchanged, flags, units)
    written = "".join(cell.written for cell in second)
    owners = [cell for cell in second for _ in cell.written]
    return [
        (text[owners[start].start : owners[end - 1].end], written[start:end])
        for start, end in spans_of(written, "thousands" in flags, "percent" in flags)
    ]


def reference(text: str, thousands: bool = False, percent: bool = False) -> list[str]:
    """Return the numbers of a text by the default rule."""
    return [text[start:end] for start, end in spans_of(text, thousands, percent)]
