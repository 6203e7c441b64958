"""Where a report stands on an axis of settings, and what it is told by without that setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numtok.analysis.figures._reports import DataSource, settings_of, sources_of
from numtok.errors import UsageError, unknown
from numtok.evaluation.comparison.experiments import apart
from numtok.evaluation.report_files import Evaluation
from numtok.registry import parse_spec, spec_of
from numtok.registry import settings_of as all_settings
from numtok.store.artifact import Resolve

_OF_DATA = "data."
_PARTS = ("head", "embedder")  # of a model, which have settings of their own
_NOT_SET = ("name", "revision", "digest")  # of what settings say of a task


@dataclass(frozen=True)
class Place:
    """Of one report: ``x``, the title of its panel, and what else it is told by."""

    x: float
    panel: str
    scheme: str
    settings: dict[str, str]


def placed(x: str, evaluations: Sequence[Evaluation], resolve: Resolve) -> list[Place]:
    """Each report at its value of the setting ``x`` (``figures.lines``).

    A panel is a data set; where ``x`` is a setting of the task that made it, all data sets that
    differ in nothing else.

    Raises UsageError for a setting that a report has not, or that is no number, and for data of
    no task.
    """
    sources = sources_of(evaluations, resolve)
    if x.startswith(_OF_DATA):
        return _by_data(x.removeprefix(_OF_DATA), evaluations, sources)
    found = []
    for one, source in zip(evaluations, sources, strict=True):
        part, _, key = x.partition(".")
        if part in _PARTS and key:
            found.append(_by_part(part, key, one, source.name))
            continue
        value = _number(x, one.report.configuration | one.report.decoding, one)
        settings = settings_of(one, "data", "seed", x, f"decoding.{x}")
        found.append(Place(value, source.name, one.report.scheme, settings))
    return found


def _by_part(part: str, key: str, evaluation: Evaluation, panel: str) -> Place:
    """By a setting of the head or the embedder; defaults count, so it is asked itself."""
    from numtok.models.embedders.base import EMBEDDERS
    from numtok.models.heads.base import HEADS

    report = evaluation.report
    of_text = part in report.configuration
    if part == "embedder" and not of_text:
        raise UsageError(
            f"--x embedder.{key} is a setting of models of texts, and {evaluation.ref} is of a "
            "table; give another --x"
        )
    if part == "head" and report.labels:
        raise UsageError(
            f"--x head.{key} is a setting of models that predict numbers, and {evaluation.ref} is "
            "of labels; give another --x"
        )
    spec = str(report.configuration[part]) if of_text else report.scheme
    built = EMBEDDERS.build(spec) if part == "embedder" else HEADS.build(spec)
    x = _number(key, all_settings(built), evaluation, f"{part}.")
    bare = without(spec_of(built), key, getattr(built, "positional", ""))
    settings = settings_of(evaluation, "data", "seed", part)
    if of_text:
        return Place(x, panel, report.scheme, settings | {part: bare})
    return Place(x, panel, bare, settings)


def without(spec: str, key: str, positional: str) -> str:
    """A spec without one of its settings; ``positional`` is what the value after ``:`` is.

    >>> without("decoder:ud,base=4,layers=2", "layers", "codec"), without("mdn:7", "n", "n")
    ('decoder:ud,base=4', 'mdn')
    """
    name, value, options = parse_spec(spec, "part")
    first = name if value is None or key == positional else f"{name}:{value}"
    return ",".join([first, *(f"{one}={options[one]}" for one in options if one != key)])


def _by_data(
    key: str, evaluations: Sequence[Evaluation], sources: Sequence[DataSource]
) -> list[Place]:
    values, tasks, rest = [], [], []
    for one, source in zip(evaluations, sources, strict=True):
        made = dict(source.settings)
        task = made.pop("task", None)
        if not isinstance(task, Mapping):
            raise UsageError(
                f"--x {_OF_DATA}{key} is a setting of a task, and {one.report.data} was not made "
                "by `numtok gen`; give another --x"
            )
        values.append(_number(key, task, one, _OF_DATA))
        tasks.append(str(task.get("name")))
        others = {name: value for name, value in task.items() if name not in (*_NOT_SET, key)}
        rest.append({name: str(value) for name, value in (others | made).items()})
    return [
        Place(x, panel, one.report.scheme, settings_of(one, "data", "seed"))
        for x, panel, one in zip(values, apart(tasks, rest), evaluations, strict=True)
    ]


def _number(
    key: str, settings: Mapping[str, Any], evaluation: Evaluation, prefix: str = ""
) -> float:
    """One setting of a report; ``prefix`` is how ``--x`` names its kind."""
    value = settings.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    numbers = [
        name
        for name, one in settings.items()
        if isinstance(one, int | float) and not isinstance(one, bool) and name != "revision"
    ]
    if key in settings:
        raise UsageError(
            f"--x {prefix}{key} is {value!r} in {evaluation.ref}, which is no number; numbers are "
            f"{', '.join(prefix + name for name in numbers) or 'none'}"
        )
    raise unknown(f"--x of {evaluation.ref}", prefix + key, [prefix + name for name in numbers])
