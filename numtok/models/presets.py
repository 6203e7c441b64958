"""Model presets: named model sizes, and their training defaults.

A preset is a name for a combination of trunk settings. The name of a trunk is also a preset, with
the trunk's default settings. For a pretrained model, the location of the model follows a colon:
``hf:FOLDER,tune=lora``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, cast

from numtok.declaration import read_settings, settings_in
from numtok.errors import UsageError, unknown
from numtok.models.embedders.base import Embedder
from numtok.models.sizes import PRESETS
from numtok.models.trunks.base import TRUNKS, ColumnTrunk, PretrainedTrunk, TokenTrunk, Trunk
from numtok.registry import Settings, name_in, parse_spec, settings_of
from numtok.setting_values import as_spec

# Default warm-up, as fractions of the steps.
_WARMUP, _LONG_WARMUP = 0.05, 0.2


class TrainingDefaults(ABC):
    """Base class for trunks and embedders that have their own default learning rate.

    If an embedder has its own rate, the lower of its rate and the preset's is used, and the warm-up
    takes 20% of the steps.
    """

    @property
    @abstractmethod
    def learning_rate(self) -> float:
        """Default learning rate, used if no learning rate is set."""


@dataclass(frozen=True)
class Preset:
    """Preset for text models: a trunk, settings for the token head, and the learning rate.

    head_layers
        Number of layers of the token head: 1 for a linear map, 2 as in xVal's public code.
    tied
        True if the token head uses the table of token vectors as its weights, as GPT-2 does.
    learning_rate
        Default learning rate of the preset.
    """

    trunk: TokenTrunk
    head_layers: int = 1
    tied: bool = False
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.head_layers not in (1, 2):
            raise UsageError(f"head_layers must be 1 or 2 (got {self.head_layers})")
        if self.tied and self.head_layers != 1:
            raise UsageError("tied=yes needs head_layers=1: the table can only be a single layer")
        if not 0 < self.learning_rate < 1:
            raise UsageError(
                f"learning_rate must be above 0 and below 1 (got {self.learning_rate})"
            )

    def rate_with(self, embedding: Embedder) -> float:
        """Return the default learning rate for this preset and the given embedder."""
        if isinstance(embedding, TrainingDefaults):
            return min(self.learning_rate, embedding.learning_rate)
        return self.learning_rate

    def settings(self) -> Settings:
        """Return all settings of the preset, including defaults. Artifact versions are computed
        from them."""
        extra = {key: getattr(self, key) for key in _extra_names(type(self.trunk))}
        return settings_of(self.trunk) | extra


def warmup_with(embedding: Embedder) -> float:
    """Return the default warm-up for the given embedder, as a fraction of the training steps."""
    return _LONG_WARMUP if isinstance(embedding, TrainingDefaults) else _WARMUP


def preset(spec: str) -> Preset:
    """Return the text preset described by a spec, such as ``nano,layers=2,positions=rotary``.

    Raises UsageError if the name or a setting is unknown.
    """
    trunk, extra = _parts(spec, TokenTrunk)
    if isinstance(trunk, TrainingDefaults):  # also if a preset changes only its trunk
        extra = {"learning_rate": trunk.learning_rate} | extra
    return Preset(cast(TokenTrunk, trunk), **extra)


def named_source(spec: str) -> str | None:
    """Return the location of a pretrained model, such as ``FOLDER`` in ``hf:FOLDER``; None for
    other presets."""
    name, source, _ = parse_spec(spec, "preset")
    return source if name in TRUNKS and issubclass(TRUNKS[name], PretrainedTrunk) else None


def trunk(spec: str) -> ColumnTrunk:
    """Return the trunk described by the spec of a table preset, such as
    ``mlp,layers=3,width=256``."""
    return cast(ColumnTrunk, _parts(spec, ColumnTrunk)[0])


def shortest(spec: str) -> str:
    """Return the shortest spec of a preset, which omits settings with default values.

    This spec identifies the runs of an experiment.

    >>> shortest("nano,width=64,layers=4"), shortest("mlp,layers=3,width=256")
    ('nano,width=64', 'mlp')
    """
    name = first = name_in(spec)
    trunk, extra = _parts(spec)
    if isinstance(trunk, PretrainedTrunk):
        first = f"{name}:{trunk.title}"
    if name in PRESETS:
        plain, defaults = _parts(name)
        defaults |= _own(plain)
    else:
        defaults = {key: setting.default for key, setting in settings_in(type(trunk)).items()}
        defaults |= _extra_defaults(trunk)
    values = _own(trunk) | extra
    changed = {key: value for key, value in values.items() if value != defaults[key]}
    return ",".join([first, *(f"{key}={as_spec(value)}" for key, value in changed.items())])


#: Settings of a preset that do not belong to its trunk.
_DEFAULTS = {
    key: setting.default for key, setting in settings_in(Preset).items() if not setting.required
}


def _extra_names(kind: type[Trunk]) -> tuple[str, ...]:
    """Return the names of the preset settings (:data:`_DEFAULTS`) that apply to a trunk.

    They concern the prediction of tokens.
    """
    # Only a trunk that always sees whole rows declares it on the class.
    if not issubclass(kind, TokenTrunk) or getattr(kind, "sight", None) == "row":
        return ()
    return tuple(key for key in _DEFAULTS if key not in settings_in(kind))


def _extra_defaults(trunk: Trunk) -> dict[str, Any]:
    """Return the default values of the preset settings that apply to a trunk."""
    return {key: getattr(trunk, key, _DEFAULTS[key]) for key in _extra_names(type(trunk))}


def _built(kind: type[Trunk], own: str) -> Trunk:
    """Build a trunk from its spec. Raises UsageError for a pretrained trunk without a model."""
    if not issubclass(kind, PretrainedTrunk):
        return TRUNKS.build(own)
    name, source, options = parse_spec(own, "preset")
    if source is None:
        raise UsageError(
            f"--preset {name} needs a model: {name}:FOLDER, in the layout of transformers, or "
            f"{name}:OWNER/NAME from the hub"
        )
    trunk = TRUNKS.build(",".join([name, *(f"{key}={text}" for key, text in options.items())]))
    return cast(PretrainedTrunk, trunk).of(source)


def _own(trunk: Trunk) -> dict[str, Any]:
    """Return the values of a trunk's settings."""
    return {key: getattr(trunk, key) for key in settings_in(type(trunk))}


def _parts(spec: str, wanted: Any = Trunk) -> tuple[Trunk, dict[str, Any]]:
    """Build the trunk of a preset; return it with the values of the preset's other settings."""
    kind, own, extra = _parsed(spec)
    _check_takes(kind, spec, wanted)
    trunk = _built(kind, own)
    return trunk, _extra_defaults(trunk) | read_settings(Preset, extra)


def _parsed(spec: str) -> tuple[type[Trunk], str, dict[str, str]]:
    """Return the class of the trunk, its own spec, and the preset's other settings."""
    name, positional, options = parse_spec(spec, "preset")
    of, defaults = name, dict[str, str]()
    if name in PRESETS:
        if positional is not None:
            raise UsageError(f"preset {name!r} takes no value after ':' (got {spec!r})")
        of, _, defaults = parse_spec(PRESETS[name], "preset")
    elif name not in TRUNKS:
        raise unknown("preset", name, [*PRESETS, *TRUNKS])
    kind = TRUNKS[of]
    extra = _extra_names(kind)
    keys = [*settings_in(kind), *extra]
    for key in options:
        if key not in keys:
            raise unknown(f"setting of preset {name!r}", key, keys)
    options = defaults | options
    own = [f"{key}={text}" for key, text in options.items() if key not in extra]
    first = of if positional is None else f"{of}:{positional}"
    return kind, ",".join([first, *own]), {key: options[key] for key in options if key in extra}


def _check_takes(kind: type[Trunk], spec: str, wanted: type[Trunk]) -> None:
    """Raise UsageError if a table preset is given for text, or a text preset for a table."""
    if issubclass(kind, wanted):
        return
    names = [*(PRESETS if wanted is TokenTrunk else ())]
    names += [name for name in TRUNKS if issubclass(TRUNKS[name], wanted)]
    what, needed = ("texts", "a table") if wanted is ColumnTrunk else ("tables", "a text")
    raise UsageError(
        f"preset {name_in(spec)!r} is for {what}. For {needed}, use {', '.join(names)}"
    )
