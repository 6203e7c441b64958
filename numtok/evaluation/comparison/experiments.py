"""Reports that differ in nothing but the seed are one experiment; what sets experiments apart."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation
from numtok.models.sizes import PRESETS
from numtok.registry import name_in, spec_of

_OF_TEXTS = frozenset({"text_tokenizer", "embedder", "objective"})  # settings that tables lack
#: What is learnt unless an objective is named: of rows without targets, with them, with labels.
_USUAL_OBJECTIVES = ("mlm", "mlm:targets", "classify")
_USUAL_PRESETS = ("nano", "mlp")  # of texts, of tables
_USUAL_TRUNKS = frozenset({*PRESETS, "transformer", "mlp"})
_WITHOUT_TARGETS = "number"  # what predictions have for a target that rows do not name


class ExperimentCosts(msgspec.Struct, frozen=True, kw_only=True):
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


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """Some seeds of one configuration, on one split, read in one way.

    label
        The scheme, each part in which the model is not what the scheme is used with unless asked
        otherwise, and as many further settings as tell experiments apart.
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
    costs: ExperimentCosts


def group_by_experiment(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """The evaluations of each experiment, in the order of their first ones.

    Raises UsageError where one experiment has a seed twice.
    """
    groups: dict[bytes, list[Evaluation]] = {}
    for evaluation in evaluations:
        report = evaluation.report
        what = [report.scheme, report.configuration, report.training_data or report.data]
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


def experiments_of(groups: Sequence[Sequence[Evaluation]]) -> list[Experiment]:
    """The experiments with labels of their own."""
    settings = [experiment_settings(group[0]) for group in groups]
    differing = _differing(settings)
    found = labels([group[0].report.scheme for group in groups], settings)
    return [
        Experiment(
            label=label,
            scheme=group[0].report.scheme,
            settings={key: one.get(key, "-") for key in differing if key != "data"},
            reports=[evaluation.ref for evaluation in group],
            seeds=[evaluation.report.seed for evaluation in group],
            invalid=_mean([evaluation.report.invalid for evaluation in group]),
            costs=costs_of(group),
        )
        for label, one, group in zip(found, settings, groups, strict=True)
    ]


def experiment_settings(evaluation: Evaluation) -> dict[str, str]:
    """Every setting but the scheme, which has its own place in a label; the data come last."""
    report = evaluation.report
    settings = {key: str(value) for key, value in report.configuration.items() if key != "scheme"}
    if settings.get("objective") == "mlm" and set(report.by_target) - {_WITHOUT_TARGETS}:
        settings["objective"] = "mlm:numbers"  # in full: targets are what is usual there
    settings |= {f"decoding.{key}": str(value) for key, value in report.decoding.items()}
    if report.training_data not in (None, report.data):
        settings["training_data"] = str(report.training_data)
    return settings | {"split": report.split, "data": report.data}


def labels(schemes: Sequence[str], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The schemes, each with the parts that are not its own (:func:`own_parts`), and where
    experiments have that in common, the settings that set them apart.

    >>> labels(["p10", "xval", "xval"], [{"lr": "1", "steps": steps} for steps in "223"])
    ['p10', 'xval, steps=2', 'xval, steps=3']
    >>> labels(["xval"], [{"embedder": "fourier", "head": "scalar", "steps": "2"}])
    ['xval, embedder=fourier']
    """
    named = [
        ", ".join([scheme, *(f"{key}={value}" for key, value in own_parts(scheme, one))])
        for scheme, one in zip(schemes, settings, strict=True)
    ]
    return apart(named, settings)


def apart(names: Sequence[str], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """The names, and where several are the same, the settings that set them apart."""
    found = list(names)
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


def own_parts(scheme: str, settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Normalisation, embedder, head, objective, places and trunk where they are not the usual ones
    of the scheme, in this order; of tables, whose scheme is a head, the normalisation alone.

    The size of a transformer is not listed, because every scheme is used with one; any other trunk
    is, such as a pretrained one. All parts of an unknown scheme, of a missing plugin, are listed.

    >>> list(own_parts("xval", {"normalize": "none", "embedder": "scaled", "preset": "bigru"}))
    [('normalize', 'none'), ('preset', 'bigru')]
    >>> list(own_parts("digits", {"preset": "hf:gpt2,tune=lora", "objective": "ar:answer"}))
    [('objective', 'ar:answer'), ('preset', 'hf:gpt2,tune=lora')]
    >>> list(own_parts("digits", {"objective": "mlm", "places": "abacus"}))
    [('places', 'abacus')]
    """
    of_texts = bool(_OF_TEXTS & settings.keys())
    usual = _usual_of_texts(scheme) if of_texts else _usual_of_tables(scheme, settings)
    for key in ("normalize", "embedder", "head"):
        if key in settings and settings[key] != usual.get(key):
            yield key, settings[key]
    if (objective := settings.get("objective")) not in (None, *_USUAL_OBJECTIVES):
        yield "objective", str(objective)
    if "places" in settings:
        yield "places", settings["places"]
    if name_in(settings.get("preset", "nano")) not in _USUAL_TRUNKS:
        yield "preset", settings["preset"]


def shared_size(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """A note of the preset that all have, which no label says, where it is not the usual one."""
    presets = {str(one.report.configuration.get("preset", "nano")) for one in evaluations}
    if (
        len(presets) == 1
        and name_in(preset := presets.pop()) in _USUAL_TRUNKS
        and preset not in _USUAL_PRESETS
    ):
        yield f"Of all: preset {preset}."


def _usual_of_texts(title: str) -> dict[str, str]:
    """Empty for a scheme that is not known."""
    try:
        scheme = SCHEMES.build(title.partition(" ")[0])
        normalizer = spec_of(NORMALIZERS.build(scheme.defaults.normalizer))
    except UsageError:
        return {}
    embedder, head = scheme.parts
    return {"normalize": normalizer, "embedder": embedder, "head": head}


def _usual_of_tables(head: str, settings: Mapping[str, str]) -> dict[str, str]:
    if "normalize" not in settings:
        return {}
    from numtok.models.heads.base import HEADS, ValueHead  # imports torch, which texts need not

    try:
        built = HEADS.build(head)
        if not isinstance(built, ValueHead):
            return {}
        return {"normalize": spec_of(NORMALIZERS.build(built.normalizer))}
    except UsageError:
        return {}


def _differing(settings: Sequence[Mapping[str, str]]) -> list[str]:
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


def costs_of(group: Sequence[Evaluation]) -> ExperimentCosts:
    """What some seeds of one experiment cost."""

    def clock(seconds: list[float | None]) -> float | None:
        known = [value for value in seconds if value is not None]
        return _mean(known) if len(known) == len(seconds) else None

    costs = [msgspec.structs.asdict(evaluation.report.costs) for evaluation in group]
    return ExperimentCosts(
        **{key: _mean([cost[key] for cost in costs]) for key in costs[0]},
        train_seconds=clock([evaluation.timing.train_seconds for evaluation in group]),
        eval_seconds=clock([evaluation.timing.eval_seconds for evaluation in group]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
