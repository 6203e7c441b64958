"""The content of ``model.json``, which describes a text model: its parts and their sizes."""

import sys
from collections.abc import Sequence
from functools import cached_property

import msgspec

from numtok.encoding.normalizers.base import (
    Constants,
    FittedNormalizer,
    Scaling,
    no_scaling,
    stored_normalizer,
)
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder
from numtok.models.heads.base import Head
from numtok.models.objectives.base import Objective
from numtok.models.places.base import DigitPlaces
from numtok.models.presets import Preset
from numtok.models.trunks.base import TokenTrunk, stored_trunk, with_context
from numtok.registry import Settings, name_of, settings_of, spec_of


class ScalingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of a fitted normalizer, including defaults, and its fitted constants."""

    normalizer: Settings
    constants: Constants


class ModelSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True
):
    """All settings of a text model, as stored in ``model.json``.

    vocabulary
        Number of tokens.
    trunk, embedder, head, objective, places
        Settings of each part, including defaults (``registry.settings_of``). ``head`` is None if
        the model predicts no numbers, and ``places`` is None if it has no digit positions.
    head_layers, tied
        See :class:`numtok.models.presets.Preset`.
    scaling
        Additional normalization for a value head that is trained on values in the unit interval;
        None for other heads.
    classes
        Labels that the model predicts; empty if it predicts tokens and numbers.
    """

    vocabulary: int
    trunk: Settings
    head_layers: int
    tied: bool
    embedder: Settings
    head: Settings | None
    objective: Settings
    scaling: ScalingSettings | None = None
    classes: tuple[str, ...] = ()
    places: Settings | None = None

    @cached_property
    def of_trunk(self) -> TokenTrunk:
        """The text trunk that the settings describe.

        Raises ValueError if the settings are incomplete or describe a table trunk."""
        trunk = stored_trunk(self.trunk)
        if not isinstance(trunk, TokenTrunk):
            raise ValueError(f"the trunk {name_of(trunk)} takes columns, not tokens")
        return trunk

    @property
    def width(self) -> int:
        """Width of the hidden states."""
        return self.of_trunk.width

    @property
    def fitted_scaling(self) -> Scaling:
        """Scaling from values normalized as in the encoding to the values that the value head
        predicts."""
        if self.scaling is None:
            return no_scaling()
        return stored_normalizer(self.scaling.normalizer, self.scaling.constants)

    @property
    def context(self) -> int:
        """Maximum number of tokens per row; ``sys.maxsize`` if it is unlimited."""
        context = self.of_trunk.context
        return sys.maxsize if context is None else context

    @classmethod
    def of(
        cls,
        preset: Preset,
        *,
        vocabulary: int,
        context: int,
        embedder: Embedder,
        head: Head | None,
        objective: Objective,
        scaling: FittedNormalizer | None = None,
        classes: Sequence[str] = (),
        places: DigitPlaces | None = None,
    ) -> "ModelSettings":
        """Return the settings of a model that consists of the given parts.

        ``context`` is used if the preset does not set the number of tokens per row. Raises
        UsageError if the parts cannot be combined.
        """
        trunk = preset.trunk
        _check_learns(trunk, objective)
        stored = None
        if scaling is not None:
            stored = ScalingSettings(settings_of(scaling.normalizer), scaling.constants)
        return cls(
            vocabulary=vocabulary,
            trunk=settings_of(with_context(trunk, context)),
            head_layers=preset.head_layers,
            tied=preset.tied,
            embedder=settings_of(embedder),
            head=None if head is None else settings_of(head),
            objective=settings_of(objective),
            scaling=stored,
            classes=tuple(classes),
            places=None if places is None else settings_of(places),
        )


def _check_learns(trunk: TokenTrunk, objective: Objective) -> None:
    """Raise UsageError if an objective cannot be combined with a trunk."""
    name, spec, labels = name_of(trunk), spec_of(objective), objective.requires() == "label"
    if trunk.sight == "row" and not labels:
        raise UsageError(
            f"--preset {name} represents whole rows, for labels, and cannot be combined with "
            f"--objective {spec}. Use --objective classify, or another --preset, such as nano"
        )
    if objective.causal and trunk.sight in ("all", "row"):
        raise UsageError(
            f"--objective {spec} cannot be combined with --preset {name}, which reads each row "
            "from both ends. " + ("Omit causal" if labels else "Use another --preset, such as nano")
        )
    if not objective.causal and trunk.sight == "earlier":
        raise UsageError(
            f"--objective {spec} cannot be combined with --preset {name}, whose states see only "
            "earlier tokens. " + ("Add causal=yes" if labels else "Use --objective ar")
        )
