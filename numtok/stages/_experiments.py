"""Reports that differ in nothing but the seed are one experiment; what sets experiments apart."""

from collections.abc import Sequence

import msgspec

from numtok.errors import UsageError
from numtok.stages._reports import Evaluation


class Spent(msgspec.Struct, frozen=True):
    """What an experiment cost, the mean over its seeds; seconds are None where nobody looked."""

    samples: float
    tokens: float
    steps: float
    flops: float
    parameters: float
    embedding_parameters: float
    tokens_per_number: float
    train_seconds: float | None
    eval_seconds: float | None


class Experiment(msgspec.Struct, frozen=True):
    """Some seeds of one configuration, on one split, read in one way.

    label
        The scheme, and as many settings as tell experiments of one scheme apart.
    settings
        The settings in which the experiments that are compared differ, but for scheme and data.
    reports, seeds
        REFs and their seeds, in the order given.
    invalid
        The share of numbers without a valid prediction, the mean over the seeds.
    """

    label: str
    scheme: str
    settings: dict[str, str]
    reports: list[str]
    seeds: list[int]
    invalid: float
    spent: Spent


def grouped(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """The evaluations of each experiment, in the order of their first ones.

    Raises UsageError where one experiment has a seed twice.
    """
    groups: dict[bytes, list[Evaluation]] = {}
    for evaluation in evaluations:
        report = evaluation.report
        what = [report.scheme, report.configuration, report.learnt or report.data]
        what += [report.data, report.split, report.decoding]
        seeds = groups.setdefault(msgspec.json.encode(what, order="deterministic"), [])
        for other in seeds:
            if other.report.seed == report.seed:
                raise UsageError(
                    f"{other.ref} and {evaluation.ref} are one experiment with one seed, "
                    f"{report.seed}; name each seed of an experiment once"
                )
        seeds.append(evaluation)
    return list(groups.values())


def described(groups: Sequence[Sequence[Evaluation]]) -> list[Experiment]:
    """The experiments with labels of their own."""
    settings = [told(group[0]) for group in groups]
    differing = _differing(settings)
    found = labels([group[0].report.scheme for group in groups], settings)
    return [
        Experiment(
            label,
            group[0].report.scheme,
            {key: one.get(key, "-") for key in differing if key != "data"},
            [evaluation.ref for evaluation in group],
            [evaluation.report.seed for evaluation in group],
            _mean([evaluation.report.invalid for evaluation in group]),
            spent(group),
        )
        for label, one, group in zip(found, settings, groups, strict=True)
    ]


def told(evaluation: Evaluation) -> dict[str, str]:
    """Every setting but the scheme, which has its own place in a label; the data come last."""
    report = evaluation.report
    settings = {key: str(value) for key, value in report.configuration.items() if key != "scheme"}
    settings |= {f"decoding.{key}": str(value) for key, value in report.decoding.items()}
    if report.learnt not in (None, report.data):
        settings["learnt"] = str(report.learnt)
    return settings | {"split": report.split, "data": report.data}


def labels(schemes: Sequence[str], settings: Sequence[dict[str, str]]) -> list[str]:
    """The schemes, and where several experiments have one, the settings that set them apart.

    >>> labels(["p10", "xval", "xval"], [{"lr": "1", "steps": steps} for steps in "223"])
    ['p10', 'xval, steps=2', 'xval, steps=3']
    """
    found = list(schemes)
    for key in _differing(settings):
        values: dict[str, set[str | None]] = {}
        for label, one in zip(found, settings, strict=True):
            values.setdefault(label, set()).add(one.get(key))
        found = [
            f"{label}, {key}={one.get(key, '-')}" if len(values[label]) > 1 else label
            for label, one in zip(found, settings, strict=True)
        ]
        if len(set(found)) == len(found):
            break
    return found


def _differing(settings: Sequence[dict[str, str]]) -> list[str]:
    """The keys whose values are not all the same.

    A model that began with the weights of no other one has no ``init.`` settings. One of them says
    so, and further ones are told only where the models that have them differ.

    >>> _differing([{}, {"init.objective": "ar", "init.batch": "8"}])
    ['init.objective']
    """
    keys = dict.fromkeys(key for one in settings for key in one)
    found = [key for key in keys if len({one.get(key) for one in settings}) > 1]
    return [
        key
        for key in found
        if not key.startswith("init.")
        or key == "init.objective"
        or len({one[key] for one in settings if key in one}) > 1
    ]


def spent(group: Sequence[Evaluation]) -> Spent:
    """What some seeds of one experiment cost."""

    def clock(seconds: list[float | None]) -> float | None:
        known = [value for value in seconds if value is not None]
        return _mean(known) if len(known) == len(seconds) else None

    costs = [msgspec.structs.asdict(evaluation.report.costs) for evaluation in group]
    return Spent(
        **{key: _mean([cost[key] for cost in costs]) for key in costs[0]},
        train_seconds=clock([evaluation.timing.train_seconds for evaluation in group]),
        eval_seconds=clock([evaluation.timing.eval_seconds for evaluation in group]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
