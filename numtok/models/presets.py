"""Sizes of models by name, and what each is trained with unless asked otherwise.

A preset is a name for some settings of a trunk; each trunk is one at its defaults, by its own name.
One that is a pretrained model names that behind a colon: ``hf:FOLDER,tune=lora``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast

from numtok.declaration import as_spec, read_settings, settings_in
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
    made, beside = _parts(spec, TokenTrunk)
    if isinstance(made, TrainingDefaults):  # also where a preset has no setting beside its trunk
        beside = {"learning_rate": made.learning_rate} | beside
    return Preset(cast(TokenTrunk, made), **beside)


def named_source(spec: str) -> str | None:
    """Where the pretrained model lies that a preset names; None for other presets."""
    name, source, _ = parse_spec(spec, "preset")
    return source if name in TRUNKS and issubclass(TRUNKS[name], PretrainedTrunk) else None


def trunk(spec: str) -> ColumnTrunk:
    """As :func:`preset`, for tables: ``mlp,layers=3,width=256``."""
    return cast(ColumnTrunk, _parts(spec, ColumnTrunk)[0])


def shortest(spec: str) -> str:
    """The shortest spec of the same preset: seeds of one experiment are told by it.

    >>> shortest("nano,width=64,layers=4"), shortest("mlp,layers=3,width=256")
    ('nano,width=64', 'mlp')
    """
    name = first = name_in(spec)
    made, beside = _parts(spec)
    if isinstance(made, PretrainedTrunk):
        first = f"{name}:{made.title}"
    if name in PRESETS:
        plain, usual = _parts(name)
        usual |= _own(plain)
    else:
        usual = {key: one.default for key, one in settings_in(type(made)).items()}
        usual |= _usual_beside(made)
    values = _own(made) | beside
    changed = {key: value for key, value in values.items() if value != usual[key]}
    return ",".join([first, *(f"{key}={as_spec(value)}" for key, value in changed.items())])


#: The settings of a preset that are none of its trunk.
_DEFAULTS = {key: one.default for key, one in settings_in(Preset).items() if not one.required}


def _beside(kind: type[Trunk]) -> tuple[str, ...]:
    """Those that presets of a trunk have: they are of what predicts tokens."""
    # Only a trunk that is never built with another sight declares it on the class.
    if not issubclass(kind, TokenTrunk) or getattr(kind, "sight", None) == "row":
        return ()
    return tuple(key for key in _DEFAULTS if key not in settings_in(kind))


def _usual_beside(made: Trunk) -> dict[str, Any]:
    """What they are for a trunk where nothing is said."""
    return {key: getattr(made, key, _DEFAULTS[key]) for key in _beside(type(made))}


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


def _own(made: Trunk) -> dict[str, Any]:
    """The values of a trunk's settings."""
    return {key: getattr(made, key) for key in settings_in(type(made))}


def _parts(spec: str, wanted: Any = Trunk) -> tuple[Trunk, dict[str, Any]]:
    """Build the trunk of a preset; return it with the values of the preset's other settings."""
    kind, own, beside = _parsed(spec)
    _check_takes(kind, spec, wanted)
    made = _built(kind, own)
    return made, _usual_beside(made) | read_settings(Preset, beside)


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
    known = [*settings_in(kind), *beside]
    for key in options:
        if key not in known:
            raise unknown(f"setting of preset {name!r}", key, known)
    options = usual | options
    own = [f"{key}={text}" for key, text in options.items() if key not in beside]
    first = of if positional is None else f"{of}:{positional}"
    return kind, ",".join([first, *own]), {key: options[key] for key in options if key in beside}


def _check_takes(kind: type[Trunk], spec: str, wanted: type[Trunk]) -> None:
    """Raise UsageError for a preset of tables where one of texts is needed, and the reverse."""
    if issubclass(kind, wanted):
        return
    known = [*(PRESETS if wanted is TokenTrunk else ())]
    known += [name for name in TRUNKS if issubclass(TRUNKS[name], wanted)]
    what, mine = ("texts", "a table") if wanted is ColumnTrunk else ("tables", "a text")
    raise UsageError(f"preset {name_in(spec)!r} is of {what}; {mine} takes {', '.join(known)}")
