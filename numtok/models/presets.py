"""Sizes of models by name, and what each is trained with unless asked otherwise.

A preset is a name for some settings of a trunk; each trunk is one at its defaults, by its own name.
One that is a pretrained model names that behind a colon: ``hf:FOLDER,tune=lora``.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, cast

from numtok.class_settings import as_spec, read_setting, spec_fields
from numtok.errors import UsageError, unknown
from numtok.models.embedders.base import Embedder
from numtok.models.sizes import PRESETS
from numtok.models.trunks.base import TRUNKS, ColumnTrunk, PretrainedTrunk, TokenTrunk, Trunk
from numtok.registry import Settings, name_in, parse_spec, settings_of

# Shares of the steps in which the learning rate rises, by default.
_WARMUP, _LONG_WARMUP = 0.05, 0.2


class TrainingDefaults(ABC):
    """A trunk or an embedder that is trained with another learning rate than most, by default.

    An embedder lowers the rate of the preset, which then rises over a fifth of the steps.
    """

    @property
    @abstractmethod
    def learning_rate(self) -> float:
        """The rate that suits it."""


@dataclass(frozen=True)
class Preset:
    """A trunk of tokens, and what goes with it.

    head_layers
        Layers of the token head: 1, a linear map; 2, as in xVal's public code.
    tied
        Whether the token head's last map is the table of token vectors (GPT-2).
    """

    trunk: TokenTrunk
    head_layers: int = 1
    tied: bool = False
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.head_layers not in (1, 2):
            raise UsageError(f"head_layers={self.head_layers} is not possible; allowed: 1 and 2")
        if self.tied and self.head_layers != 1:
            raise UsageError("tied=yes needs head_layers=1: a table can only be the one map")
        if not 0 < self.learning_rate < 1:
            raise UsageError(
                f"learning_rate={self.learning_rate} is not possible; it is between 0 and 1"
            )

    def rate_with(self, embedding: Embedder) -> float:
        """Return the default learning rate with such an embedder."""
        if isinstance(embedding, TrainingDefaults):
            return min(self.learning_rate, embedding.learning_rate)
        return self.learning_rate

    def settings(self) -> Settings:
        """What a version depends on, expanded."""
        beside = {key: getattr(self, key) for key in _beside(type(self.trunk))}
        return settings_of(self.trunk) | beside


def warmup_with(embedding: Embedder) -> float:
    """Return the default share of the steps in which the learning rate rises."""
    return _LONG_WARMUP if isinstance(embedding, TrainingDefaults) else _WARMUP


def preset(spec: str) -> Preset:
    """A preset with some settings changed: ``nano,layers=2,positions=rotary``.

    Raises UsageError for an unknown name or setting.
    """
    kind, own, beside = _parsed(spec)
    _check_takes(kind, spec, TokenTrunk)
    made = cast(TokenTrunk, _built(kind, own))
    known = {field.name: field for field in fields(Preset)}
    read = {key: read_setting(Preset, known, key, text) for key, text in beside.items()}
    return Preset(made, **(_usual_beside(made, _DEFAULTS) | read))


def named_source(spec: str) -> str | None:
    """Where the pretrained model lies that a preset names; None for other presets."""
    name, source, _ = parse_spec(spec, "preset")
    return source if name in TRUNKS and issubclass(TRUNKS[name], PretrainedTrunk) else None


def trunk(spec: str) -> ColumnTrunk:
    """As :func:`preset`, for tables: ``mlp,layers=3,width=256``."""
    kind, own, _ = _parsed(spec)
    _check_takes(kind, spec, ColumnTrunk)
    return cast(ColumnTrunk, TRUNKS.build(own))


def shortest(spec: str) -> str:
    """The shortest spec of the same preset: seeds of one experiment are told by it.

    >>> shortest("nano,width=64,layers=4"), shortest("mlp,layers=3,width=256")
    ('nano,width=64', 'mlp')
    """
    name, kind = name_in(spec), _parsed(spec)[0]
    usual, first = {key: field.default for key, field in spec_fields(kind).items()}, name
    if name in PRESETS:
        usual = _values(name)
    elif _beside(kind):
        trunk_of_it = preset(spec).trunk
        usual |= _usual_beside(trunk_of_it, _beside(kind))
        if isinstance(trunk_of_it, PretrainedTrunk):
            first = f"{name}:{trunk_of_it.title}"
    changed = {key: value for key, value in _values(spec).items() if value != usual[key]}
    return ",".join([first, *(f"{key}={as_spec(value)}" for key, value in changed.items())])


#: The settings of a preset that are none of its trunk.
_DEFAULTS = {field.name: field.default for field in fields(Preset) if field.name != "trunk"}


def _beside(kind: type[Trunk]) -> tuple[str, ...]:
    """Those that presets of a trunk have: they are of what predicts tokens."""
    # Only a trunk that is never built with another sight declares it on the class.
    if not issubclass(kind, TokenTrunk) or getattr(kind, "sight", None) == "row":
        return ()
    return tuple(key for key in _DEFAULTS if key not in spec_fields(kind))


def _usual_beside(made: TokenTrunk, keys: Iterable[str]) -> dict[str, Any]:
    """Return the default values of these settings with a trunk."""
    return {key: getattr(made, key, _DEFAULTS[key]) for key in keys}


def _built(kind: type[Trunk], own: str) -> Trunk:
    """The trunk of its own spec; UsageError for one that has to name a model and does not."""
    if not issubclass(kind, PretrainedTrunk):
        return TRUNKS.build(own)
    name, source, options = parse_spec(own, "preset")
    if source is None:
        raise UsageError(
            f"--preset {name} names a model: {name}:FOLDER, in the layout of transformers, or "
            f"{name}:OWNER/NAME of the hub"
        )
    made = TRUNKS.build(",".join([name, *(f"{key}={text}" for key, text in options.items())]))
    return cast(PretrainedTrunk, made).of(source)


def _values(spec: str) -> dict[str, Any]:
    """All settings, those of the trunk first."""
    kind, own, _ = _parsed(spec)
    made = _built(kind, own)
    values = {key: getattr(made, key) for key in spec_fields(kind)}
    if keys := _beside(kind):
        chosen = preset(spec)
        values |= {key: getattr(chosen, key) for key in keys}
    return values


def _parsed(spec: str) -> tuple[type[Trunk], str, dict[str, str]]:
    """The class of the trunk, its own spec, and what is said beside it."""
    name, positional, options = parse_spec(spec, "preset")
    of, usual = name, dict[str, str]()
    if name in PRESETS:
        if positional is not None:
            raise UsageError(f"preset {name!r} takes no value after ':', got {spec!r}")
        of, _, usual = parse_spec(PRESETS[name], "preset")
    elif name not in TRUNKS:
        raise unknown("preset", name, [*PRESETS, *TRUNKS])
    kind = TRUNKS[of]
    beside = _beside(kind)
    known = [*spec_fields(kind), *beside]
    for key in options:
        if key not in known:
            raise unknown(f"setting of preset {name!r}", key, known)
    options = usual | options
    own = [f"{key}={text}" for key, text in options.items() if key not in beside]
    first = of if positional is None else f"{of}:{positional}"
    return kind, ",".join([first, *own]), {key: options[key] for key in options if key in beside}


def _check_takes(
    kind: type[Trunk], spec: str, wanted: type[TokenTrunk] | type[ColumnTrunk]
) -> None:
    """Raise UsageError for a preset of tables where one of texts is needed, and the reverse."""
    if issubclass(kind, wanted):
        return
    known = [*(PRESETS if wanted is TokenTrunk else ())]
    known += [name for name in TRUNKS if issubclass(TRUNKS[name], wanted)]
    what, mine = ("texts", "a table") if wanted is ColumnTrunk else ("tables", "a text")
    raise UsageError(f"preset {name_in(spec)!r} is of {what}; {mine} takes {', '.join(known)}")
