"""Prints profiles of data: tables of fields and schemes, losses, and the next command to run."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace

from rich.cells import cell_len, set_cell_size

from numtok.analysis.profiling.field_profile import FieldProfile
from numtok.analysis.profiling.field_statistics import MOST_DIGITS
from numtok.analysis.profiling.scheme_error import FieldLoss
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.warnings import ProfileWarning, listed, part, percent
from numtok.cli.output.figures import Formatted, amount
from numtok.cli.output.printing import (
    Format,
    Part,
    Sheet,
    Verbatim,
    one_line,
    print_result,
    width,
)
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.row_keys import KEPT
from numtok.names import counted
from numtok.stages.profile import MOST_FIELDS, Profile, SchemeProfile

_SHORTEST = 14  # characters of a field's name, at least
_MOST_WARNINGS = 6  # kinds of loss that are shown; --json has all
_HEAD = re.compile(r"[A-H] |[^.\[]+\.")  # of a field's name: its template, or its first key
_ENOUGH = 300  # numbers of a field; with fewer, the explained variance is too uncertain
_LIKEWISE = 3  # further fields of one warning that are named


def print_profile(profile: Profile, options: Sequence[str], format: Format) -> None:
    """Print a profile on stdout; ``options`` are added to the suggested ``numtok encode``
    command."""
    parts = _for_terminal(profile, options) if format is Format.TABLE else _for_markdown(profile)
    columns = [*(field.name for field in fields(FieldProfile)), "scheme"]
    columns += [field.name for field in fields(FieldLoss)]
    print_result(format, asdict(profile), columns, _losses(profile), parts)


def _for_markdown(profile: Profile) -> Iterator[Part]:
    yield fields_sheet(profile)
    yield replace(schemes_sheet(profile), title="")
    if profile.policies.effects:
        yield replace(policies_sheet(profile), title="")
    yield Verbatim(f"- {line}" for line in [*_warnings(profile.warnings), *_remarks(profile)])


def _for_terminal(profile: Profile, options: Sequence[str]) -> Iterator[Part]:
    yield _head(profile)
    if profile.numbers:
        limit = width(sys.stdout)
        fields = _fitted_fields(profile, limit)
        note = f"{_LEGEND}; top: commonest" if "top" in fields.columns else _LEGEND
        yield replace(fields, note=note)
        yield from _schemes(profile, limit)
        if warnings := [f"- {line}" for line in _warnings(profile.warnings)]:
            shown = warnings[:_MOST_WARNINGS]
            if len(warnings) > _MOST_WARNINGS:
                shown.append(f"- {len(warnings) - _MOST_WARNINGS} more (see --json)")
            yield ["losses, worst first", *shown]
    if profile.policies.effects:
        yield policies_sheet(profile)
    yield _remarks(profile)
    if profile.recommended and profile.splits.get(TRAIN):  # encode needs rows to fit on
        spec = profile.recommended
        split = len(profile.splits) > 1 or "--split" in options
        others = [] if split else ["--split", "validation=0.1,test=0.1"]
        if profile.recommended_normalize:
            others = ["--normalize", profile.recommended_normalize, *others]
        command = ["numtok", "encode", "--scheme", spec, *others, *options, *profile.inputs]
        yield Verbatim([f"next: {shlex.join(command)}"])


def _schemes(profile: Profile, limit: int) -> Iterator[Part]:
    """Yield the table of schemes, with losses listed below if their column does not fit."""
    whole = schemes_sheet(profile)
    every = whole.without_empty()
    sheet = _cut_column(_sparing(every, ("with text", "tok/row"), limit), -1, limit)
    if sheet.width > limit:
        losses = (f"{row[0]} loses {row[-1]}" for row in whole.rows if row[-1])
        note = "\n".join([*losses, whole.note])
        sheet = replace(every.of_columns(range(len(every.columns) - 1)), note=note)
    yield sheet


def schemes_sheet(profile: Profile) -> Sheet:
    """Return a table of schemes: tokens, vocabulary, clipped numbers, and worst loss."""
    title = "token counts and information loss, by scheme"
    rows = [_scheme_row(scheme, profile) for scheme in profile.schemes]
    picks = [f"label:{one.scheme}" for one in profile.schemes]
    note = "\n".join(_below_schemes(profile))
    return Sheet(title, _SCHEME_COLUMNS, rows, picks=picks, note=note)


def policies_sheet(profile: Profile) -> Sheet:
    """Return a table of what further flags of ``--numbers`` would change, and the proposal."""
    policies = profile.policies
    rows = []
    for effect in policies.effects:
        digits = Formatted(f"{effect.digits:+,}" if effect.digits else "", effect.digits)
        changed = Formatted(f"{effect.changed:,}", effect.changed)
        texts = Formatted(percent(effect.texts / policies.texts), effect.texts)
        value = Formatted(f"{effect.value:.12g}", effect.value)
        rows.append([effect.flag, digits, changed, texts, one_line(effect.example), value])
    note = f"digits: more in numbers; rows: of the first {policies.texts:,} with digits"
    if policies.proposed != policies.current:
        note += f"\nproposed: --numbers {policies.proposed}"
    columns = ("--numbers", "digits", "numbers", "rows", "example", "read as")
    return Sheet("what other notations would change", columns, rows, note=note, words=("example",))


def _head(profile: Profile) -> list[str]:
    """Return lines on the data that was read."""
    lines = [", ".join("standard input" if one == "-" else one for one in profile.inputs)]
    rows = counted(profile.rows, "row")
    if not profile.numbers:
        lines.append(f"{rows} without a number: there is nothing to encode")
    else:
        share = profile.number_bytes / profile.text_bytes
        lines.append(
            f"{rows}, {counted(profile.numbers, 'number')} "
            f"({short_value(profile.numbers / profile.rows)} per row), {percent(share)} of the text"
        )
    if set(profile.splits) != {TRAIN}:
        lines.append(", ".join(f"{name} {rows:,}" for name, rows in profile.splits.items()))
    if profile.rejected:
        lines.append(f"{counted(profile.rejected, 'row')} left out. See why: --on-error fail")
    lines += [f"{letter}: {one_line(text)}" for letter, text in profile.templates.items()]
    return lines


_FIELD_COLUMNS = (
    *("field", "count", "from", "to", "std", "digits"),
    *("<0", "=0", "values", "top", "rows"),
)
_FROM = _FIELD_COLUMNS.index("from")
_SPARED = ("top", "rows", "=0", "<0")  # left out before names are shortened, in this order
_LEGEND = "std: standard deviation; digits: maximum; values: distinct"
_SHOWN_TOP = 0.01  # smallest fraction at which the most frequent value is shown


def fields_sheet(profile: Profile) -> Sheet:
    """Return a table of number statistics, with one row per field."""
    note = f"{_LEGEND}; top: commonest"
    return Sheet(
        "", _FIELD_COLUMNS, [_field_row(field, profile) for field in profile.fields], note=note
    )


def _fitted_fields(profile: Profile, limit: int) -> Sheet:
    """Return the table of fields, shortened to a width.

    First, names are put under headings. Then, as needed, some columns are left out, ends are
    rounded to three digits, and names are shortened.
    """
    rows = [_field_row(field, profile) for field in profile.fields]
    sheet = Sheet("", _FIELD_COLUMNS, rows).without_empty()
    if sheet.width > limit:
        rows = _under_headings(rows)
        sheet = _sparing(Sheet("", _FIELD_COLUMNS, rows).without_empty(), _SPARED, limit)
    if sheet.width > limit:
        own = (row for row in rows if any(row[1:]))  # headings have no figures
        for field, row in zip(profile.fields, own, strict=True):
            row[_FROM], row[_FROM + 1] = _short(field.low), _short(field.high)
        kept = [_FIELD_COLUMNS.index(column) for column in sheet.columns]
        sheet = Sheet("", _FIELD_COLUMNS, rows).of_columns(kept)
    return _cut_column(sheet, 0, limit)


def _sparing(sheet: Sheet, columns: Sequence[str], limit: int) -> Sheet:
    """Leave out columns, in this order, until lines fit."""
    for column in columns:
        if sheet.width > limit and column in sheet.columns:
            sheet = sheet.of_columns([i for i, name in enumerate(sheet.columns) if name != column])
    return sheet


def _cut_column(sheet: Sheet, column: int, limit: int) -> Sheet:
    """Shorten the names of a column in the middle if lines are too long, but not below 14
    characters."""
    if (excess := sheet.width - limit) <= 0:
        return sheet
    room = max(_SHORTEST, max(cell_len(str(row[column])) for row in sheet.rows) - excess)
    rows = [list(row) for row in sheet.rows]
    for row in rows:
        row[column] = _cut(str(row[column]), room)
    return replace(sheet, rows=rows)


def _short(value: float | None, step: float = 0.0) -> str:
    return "" if value is None else Formatted(short_value(value, step), value)


def _share(value: float) -> str:
    return Formatted(percent(value), value)


def _field_row(field: FieldProfile, profile: Profile) -> list[str]:
    step = 0.0 if field.low is None or field.high is None else field.high - field.low
    most = "" if field.digits_most is None else str(field.digits_most)
    share = field.rows / profile.rows
    about = "" if field.rows_exact else "~"
    repeated = field.common_share >= _SHOWN_TOP and field.numbers > 1
    return [
        field.name,
        amount(field.numbers),
        _short(field.low, step),
        _short(field.high, step),
        _short(field.deviation),
        Formatted(f"{most}+" if field.digits_most == MOST_DIGITS else most, field.digits_most),
        _share(field.negative) if field.negative else "",
        _share(field.zero) if field.zero else "",
        Formatted(f"{'' if field.distinct_exact else '~'}{amount(field.distinct)}", field.distinct),
        _share(field.common_share) if repeated else "",
        "" if field.rows == profile.rows else Formatted(f"{about}{percent(share)}", share),
    ]


_SCHEME_COLUMNS = ("scheme", "tok/num", "tok/row", "with text", "vocabulary", "clipped", "loses")


def _under_headings(rows: Sequence[list[str]]) -> list[list[str]]:
    """Move names with the same first key or template under a heading."""
    found: list[list[str]] = []
    heading = ""
    heads = [_HEAD.match(row[0]) for row in rows]
    names = [head[0] if head else "" for head in heads]
    for row, head in zip(rows, names, strict=True):
        if head and names.count(head) > 1:
            if head != heading:
                found.append([head, *[""] * (len(row) - 1)])
            found.append([f"  {row[0].removeprefix(head)}", *row[1:]])
        else:
            found.append(row)
        heading = head
    return found


def _scheme_row(scheme: SchemeProfile, profile: Profile) -> list[str]:
    if scheme.problem:
        vocabulary = Formatted(f"{scheme.vocabulary:,}", scheme.vocabulary)
        return [scheme.scheme, "", "", "", vocabulary, "", "cannot write these"]
    about = "" if scheme.tokens_exact else "~"
    about_all = about if profile.text is None or profile.text.exact else "~"
    clipped = f"{scheme.clipped:,}" if scheme.clipped_exact else f"~{scheme.clipped:,}"
    return [
        scheme.scheme,
        Formatted(f"{about}{_tokens(scheme.tokens_per_number)}", scheme.tokens_per_number),
        Formatted(f"{about}{_tokens(scheme.number_tokens_per_row)}", scheme.number_tokens_per_row),
        Formatted(f"{about_all}{_tokens(scheme.tokens_per_row)}", scheme.tokens_per_row)
        if profile.text
        else "",
        Formatted(f"{scheme.vocabulary:,}", scheme.vocabulary),
        "" if clipped == "0" else Formatted(clipped, scheme.clipped),
        _worst(scheme, profile),
    ]


def _below_schemes(profile: Profile) -> list[str]:
    """Return notes on the tokens of the text, and on estimates."""
    lines = []
    if profile.text:
        about = "" if profile.text.exact else "about "
        tokens = _tokens(profile.text.tokens_per_row)
        lines.append(
            f"The text adds {about}{tokens} token{'' if tokens == '1' else 's'} per row and "
            f"{profile.text.vocabulary:,} to the vocabulary."
        )
    losses = [loss for scheme in profile.schemes for loss in scheme.fields]
    if not all(loss.error_exact and loss.tokens_exact and loss.clipped_exact for loss in losses):
        lines.append(f"~, and losses in large fields: estimated from {KEPT:,} numbers per field")
    return lines


def _tokens(number: float | None) -> str:
    """Format a mean number of tokens: one decimal below 100 unless it is whole."""
    if number is None:
        return ""
    places = 0 if number >= 100 or number == round(number) else 1
    return f"{number:,.{places}f}"


def _worst(scheme: SchemeProfile, profile: Profile) -> str:
    """Return the field that loses most of its spread, and how much."""
    varied = {field.name for field in profile.fields if field.low != field.high}
    lost = [loss for loss in scheme.fields if loss.largest_relative_error]
    if any(loss.error_of_spread is None and loss.field in varied for loss in lost):
        return "unknown"  # the standard deviation is beyond float64
    worst = max(lost, key=lambda loss: loss.error_of_spread or 0.0, default=None)
    if worst is None:
        about = "" if all(loss.error_exact for loss in scheme.fields) else "~"
        return f"{about}nothing else" if scheme.clipped else f"{about}nothing"
    if worst.error_of_spread is None:
        return f"digits of {worst.field}"  # which is always the same
    if worst.error_of_spread < 0.0005:
        return "under 0.1%"
    return f"{part(worst.error_of_spread)} of {worst.field}"


def _warnings(warnings: Sequence[ProfileWarning]) -> list[str]:
    """Return one sentence for each kind of warning and group of schemes, with all fields."""
    alike: dict[tuple[str, tuple[str, ...]], list[ProfileWarning]] = {}
    for one in warnings:
        alike.setdefault((one.kind, one.schemes), []).append(one)
    lines = []
    for first, *others in alike.values():
        line = first.text
        if others:
            named = [f"{warning.field} ({_figure(warning)})" for warning in others[:_LIKEWISE]]
            if len(others) > _LIKEWISE:
                named.append(f"{len(others) - _LIKEWISE} more")
            line += f"; also {', '.join(named)}"
        lines.append(line)
    return lines


def _figure(verdict: ProfileWarning) -> str:
    return part(verdict.figure) if verdict.kind == "rounded" else percent(verdict.figure)


def _lengths(profile: Profile) -> list[str]:
    """Return a note on schemes whose token counts leak values, each with its worst field."""
    named: list[str] = []
    for scheme in profile.schemes:
        shares = {
            loss.field: loss.length_leakage.variance or 0.0
            for loss in scheme.fields
            if loss.length_leakage and loss.length_leakage.numbers >= _ENOUGH
        }
        field = max(shares, key=lambda name: shares[name], default="")
        if shares.get(field):
            named.append(f"{percent(shares[field])} of {field} ({scheme.scheme})")
    if not named:
        return []
    return [
        "length leak: the token count, which masked models see, explains part of the variance: "
        f"{', '.join(named)}. See all fields: --json"
    ]


def _remarks(profile: Profile) -> list[str]:
    """Return a line on what is lossless, and notes on the data."""
    fine = []
    if profile.lossless:
        verb = "loses" if len(profile.lossless) == 1 else "lose"
        fine.append(f"{listed(profile.lossless)} {verb} nothing")
    usable = [scheme for scheme in profile.schemes if not scheme.problem]
    if usable and all(scheme.clipped == 0 and scheme.clipped_exact for scheme in usable):
        fine.append("every number is in the range of every scheme")
    lines = [f"ok: {'; '.join(fine)}"] if fine else []
    if profile.folded:
        lines.append(
            f"note: {profile.folded} fields with few numbers are merged into the last one "
            f"(at most {MOST_FIELDS} are shown)"
        )
    return [*lines, *(f"note: {note}" for note in (*_lengths(profile), *profile.notes))]


def _cut(text: str, room: int) -> str:
    """Shorten a text in the middle: ``description.coords`` -> ``descrip…oords``."""
    if cell_len(text) <= room:
        return text
    tail = (room - 1) * 2 // 3
    end = set_cell_size(text[::-1], tail)[::-1]
    return f"{set_cell_size(text, room - 1 - tail).rstrip()}…{end.lstrip()}"


def _losses(profile: Profile) -> Iterator[dict[str, object]]:
    """Return one row for each field and scheme, for CSV."""
    losses = [
        {"scheme": scheme.scheme}
        | asdict(loss)
        | {"length_leakage": loss.length_leakage and loss.length_leakage.variance}
        for scheme in profile.schemes
        for loss in scheme.fields
    ]
    for field in profile.fields:
        own = asdict(field) | {"quartiles": " ".join(map(repr, field.quartiles or ()))}
        yield from (own | loss for loss in losses if loss["field"] == field.name)
