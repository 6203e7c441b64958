"""Experiments (groups of reports that differ only in the seed) and their labels."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from numtok.declaration import settings_in
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation
from numtok.models.sizes import PRESETS
from numtok.registry import name_in, spec_of
from numtok.settings import encode, train

_OF_TEXTS = frozenset({"text_tokenizer", "embedder", "objective"})  # settings that tables lack
#: Default objectives for rows without targets, with targets and with labels.
_DEFAULT_OBJECTIVES = ("mlm", "mlm:targets", "classify")
_DEFAULT_PRESETS = ("nano", "mlp")  # of text and table models
_DEFAULT_TRUNKS = frozenset({*PRESETS, "transformer", "mlp"})
_WITHOUT_TARGETS = "number"  # target name in predictions for rows without targets


class ExperimentCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Costs of an experiment, averaged over its seeds. A time in seconds is None if it was not
    measured for every seed."""

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
    """Reports with the same configuration, split and decoding but different seeds.

    label
        Scheme, parts of the model that differ from the scheme's defaults, and further settings that
        distinguish the experiment from the others.
    settings
        Settings in which the compared experiments differ, except scheme and data.
    reports, seeds
        REFs of the reports, and their seeds in the same order.
    invalid
        Fraction of numbers without a valid prediction, averaged over the seeds.
    """

    label: str
    scheme: str
    settings: dict[str, str]
    reports: list[str]
    seeds: list[int]
    invalid: float
    costs: ExperimentCosts


def group_by_experiment(evaluations: Sequence[Evaluation]) -> list[list[Evaluation]]:
    """Group reports by experiment, in order of first occurrence.

    Raises UsageError if two reports of an experiment have the same seed.
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
                    f"{other.ref} and {evaluation.ref} are the same experiment with the same seed "
                    f"({report.seed}). Pass each seed only once"
                )
        seeds.append(evaluation)
    return list(groups.values())


def experiments_of(groups: Sequence[Sequence[Evaluation]]) -> list[Experiment]:
    """Build an :class:`Experiment` from each group of reports, with labels that distinguish the
    experiments."""
    settings = [experiment_settings(group[0]) for group in groups]
    differing = _differing(settings)
    experiment_labels = labels([group[0].report.scheme for group in groups], settings)
    return [
        Experiment(
            label=label,
            scheme=group[0].report.scheme,
            settings={key: own_settings.get(key, "-") for key in differing if key != "data"},
            reports=[evaluation.ref for evaluation in group],
            seeds=[evaluation.report.seed for evaluation in group],
            invalid=_mean([evaluation.report.invalid for evaluation in group]),
            costs=costs_of(group),
        )
        for label, own_settings, group in zip(experiment_labels, settings, groups, strict=True)
    ]


def experiment_settings(evaluation: Evaluation) -> dict[str, str]:
    """Return the settings of the experiment that a report belongs to, except the scheme. The data
    set comes last."""
    report = evaluation.report
    settings = {key: str(value) for key, value in report.configuration.items() if key != "scheme"}
    if settings.get("objective") == "mlm" and set(report.by_target) - {_WITHOUT_TARGETS}:
        settings["objective"] = "mlm:numbers"  # in full, since the default there is targets
    settings |= {f"decoding.{key}": str(value) for key, value in report.decoding.items()}
    if report.training_data not in (None, report.data):
        settings["training_data"] = str(report.training_data)
    return settings | {"split": report.split, "data": report.data}


def labels(schemes: Sequence[str], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a label for each experiment, given its scheme and settings.

    A label consists of the scheme and the parts of the model that differ from the scheme's defaults
    (see :func:`own_parts`). Settings in which experiments differ are added only to labels that
    would otherwise be equal.

    >>> labels(["p10", "xval", "xval"], [{"lr": "1", "steps": steps} for steps in "223"])
    ['p10', 'xval, steps=2', 'xval, steps=3']
    >>> labels(["xval"], [{"embedder": "fourier", "head": "scalar", "steps": "2"}])
    ['xval, embedder=fourier']
    """
    named = [
        ", ".join([scheme, *(f"{key}={value}" for key, value in own_parts(scheme, own))])
        for scheme, own in zip(schemes, settings, strict=True)
    ]
    return apart(named, settings)


def apart(names: Sequence[str], settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Make equal names distinct by appending settings in which their experiments differ. Names that
    are already unique are returned unchanged."""
    results = list(names)
    for key in _differing(settings):
        values: dict[str, set[str | None]] = {}
        for label, own in zip(results, settings, strict=True):
            values.setdefault(label, set()).add(own.get(key))
        results = [
            f"{label}, {option_of(key)}={own.get(key, '-')}" if len(values[label]) > 1 else label
            for label, own in zip(results, settings, strict=True)
        ]
        if len(set(results)) == len(results):
            break
    return results


def option_of(key: str) -> str:
    """Return the name of the command-line option that sets the entry ``key`` of a report's
    configuration.

    >>> option_of("budget_steps"), option_of("learning_rate"), option_of("head.layers")
    ('steps', 'lr', 'head.layers')
    """
    known = {**settings_in(encode.Config), **settings_in(train.Config)}
    setting = known.get(key.removeprefix("budget_"))
    return key if setting is None else setting.flag


def own_parts(scheme: str, settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a model that differ from the defaults of its scheme, as pairs of name and
    spec.

    The order is normalization, embedder, head, objective, ``places`` and trunk. For tables, whose
    scheme is a head, only the normalization is compared. Sizes of the default transformer are not
    listed, because they do not depend on the scheme; other trunks, such as pretrained ones, are
    listed. If the scheme is unknown, for example because its plugin is missing, all parts are
    listed.

    >>> list(own_parts("xval", {"normalize": "none", "embedder": "scaled", "preset": "bigru"}))
    [('normalize', 'none'), ('preset', 'bigru')]
    >>> list(own_parts("digits", {"preset": "hf:gpt2,tune=lora", "objective": "ar:answer"}))
    [('objective', 'ar:answer'), ('preset', 'hf:gpt2,tune=lora')]
    >>> list(own_parts("digits", {"objective": "mlm", "places": "abacus"}))
    [('places', 'abacus')]
    """
    try:
        of_texts = _OF_TEXTS & settings.keys()
        defaults = (_parts_of_texts if of_texts else _parts_of_tables)(scheme, settings)
    except UsageError:  # an unknown scheme
        defaults = {}
    for key in ("normalize", "embedder", "head"):
        if key in settings and settings[key] != defaults.get(key):
            yield key, settings[key]
    if (objective := settings.get("objective")) not in (None, *_DEFAULT_OBJECTIVES):
        yield "objective", str(objective)
    if "places" in settings:
        yield "places", settings["places"]
    if name_in(settings.get("preset", "nano")) not in _DEFAULT_TRUNKS:
        yield "preset", settings["preset"]


def shared_size(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """Yield a note if all models share a preset other than the default, because labels do not show
    the preset."""
    presets = {
        str(evaluation.report.configuration.get("preset", "nano")) for evaluation in evaluations
    }
    if (
        len(presets) == 1
        and name_in(preset := presets.pop()) in _DEFAULT_TRUNKS
        and preset not in _DEFAULT_PRESETS
    ):
        yield f"All models use preset {preset}."


def _parts_of_texts(title: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the default parts of a scheme."""
    scheme = SCHEMES.build(title.partition(" ")[0])
    normalizer = spec_of(NORMALIZERS.build(scheme.defaults.normalizer))
    embedder, head = scheme.parts
    return {"normalize": normalizer, "embedder": embedder, "head": head}


def _parts_of_tables(head: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the default parts of a head."""
    if "normalize" not in settings:
        return {}
    from numtok.models.heads.base import HEADS, ValueHead  # imports torch, not needed for texts

    built = HEADS.build(head)
    if not isinstance(built, ValueHead):
        return {}
    return {"normalize": spec_of(NORMALIZERS.build(built.normalizer))}


def _differing(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the keys whose values differ.

    Only models initialized from another model have ``init.`` settings. ``init.objective`` shows
    this; other ``init.`` settings are listed only if the models that have them differ.

    >>> _differing([{}, {"init.objective": "ar", "init.batch": "8"}])
    ['init.objective']
    """
    keys = dict.fromkeys(key for own in settings for key in own)
    differing = [key for key in keys if len({own.get(key) for own in settings}) > 1]
    return [
        key
        for key in differing
        if not key.startswith("init.")
        or key == "init.objective"
        or len({own[key] for own in settings if key in own}) > 1
    ]


def costs_of(group: Sequence[Evaluation]) -> ExperimentCosts:
    """Return the costs of an experiment, averaged over its reports."""

    def clock(seconds: list[float | None]) -> float | None:
        measured = [value for value in seconds if value is not None]
        return _mean(measured) if len(measured) == len(seconds) else None

    costs = [msgspec.structs.asdict(evaluation.report.costs) for evaluation in group]
    return ExperimentCosts(
        **{key: _mean([cost[key] for cost in costs]) for key in costs[0]},
        train_seconds=clock([evaluation.timing.train_seconds for evaluation in group]),
        eval_seconds=clock([evaluation.timing.eval_seconds for evaluation in group]),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
