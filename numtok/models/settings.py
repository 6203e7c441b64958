"""What ``model.json`` says of a model of texts: its parts and their sizes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from numtok.encoding.normalizers.base import (
    Constants,
    FittedNormalizer,
    Undone,
)
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.presets import Preset
from numtok.models.trunks.bigru import Bigru
from numtok.models.trunks.transformer import Shape
from numtok.registry import Settings, settings_of, spec_of


class ScalingSettings(TypedDict):
    """A normalisation that was fitted: its expanded settings and its constants; ``undone`` where a
    head learns numbers as they were before it."""

    normalizer: Settings
    constants: Constants
    undone: NotRequired[bool]


@dataclass(frozen=True)
class ModelSettings:
    """Everything that a model is but its weights.

    embedder, head, objective
        Expanded settings (``registry.settings_of``); ``head`` is None where none says numbers.
    scaling
        How a value head of the unit interval normalises what the encoding normalised already:
        expanded settings of a normaliser under ``normalizer``, and its ``constants``. None: not
        at all.
    classes
        The labels that the model tells apart; none where it says tokens and numbers.
    shape, bigru
        The size of the trunk, a transformer or a BiGRU: the other one is None.
    """

    vocabulary: int
    shape: Shape | None
    head_layers: int
    tied: bool
    embedder: Settings
    head: Settings | None
    objective: Settings
    scaling: ScalingSettings | None = None
    classes: tuple[str, ...] = ()
    bigru: Bigru | None = None

    def __post_init__(self) -> None:
        if (self.shape is None) == (self.bigru is None):
            raise ValueError("there is one trunk, a transformer or a BiGRU")

    @property
    def width(self) -> int:
        """Coordinates of a state."""
        size = self.shape or self.bigru
        assert size is not None
        return size.width

    @property
    def context(self) -> int:
        """The most tokens that a row may have."""
        return sys.maxsize if self.shape is None else self.shape.context

    @classmethod
    def of(
        cls,
        preset: Preset | Bigru,
        *,
        vocabulary: int,
        context: int,
        embedder: str,
        head: str | None,
        objective: str,
        scaling: FittedNormalizer | Undone | None = None,
        classes: Sequence[str] = (),
    ) -> "ModelSettings":
        """From a preset and specs; ``context`` is used where the preset names none.

        Raises UsageError for parts that do not go together.
        """
        made, asked = EMBEDDERS.build(embedder), OBJECTIVES.build(objective)
        bigru, shape, head_layers, tied = None, None, 1, False
        if isinstance(preset, Bigru):
            bigru = preset
            _check_reads_both_ways(asked)
        else:
            if made.needs_added_positions and preset.positions == "rotary":
                raise UsageError(
                    f"--embedder {embedder} does not go with positions=rotary: layer norm would "
                    "take the value away, since it is seen only beside an added position; use "
                    "learned or sinusoidal"
                )
            shape = Shape(
                preset.layers,
                preset.heads,
                preset.width,
                preset.context or context,
                preset.positions,
                preset.dropout,
            )
            head_layers, tied = preset.head_layers, preset.tied
        return cls(
            vocabulary,
            shape,
            head_layers,
            tied,
            settings_of(made),
            None if head is None else settings_of(HEADS.build(head)),
            settings_of(asked),
            _stored(scaling),
            tuple(classes),
            bigru,
        )


def _stored(scaling: FittedNormalizer | Undone | None) -> ScalingSettings | None:
    """A scaling as settings hold it; ``undone`` where it is the inverse of what is named."""
    if isinstance(scaling, Undone):
        stored = _stored(scaling.of)
        assert stored is not None
        return {**stored, "undone": True}
    if scaling is None:
        return None
    return {"normalizer": settings_of(scaling.normalizer), "constants": scaling.constants}


def _check_reads_both_ways(objective: Objective) -> None:
    """Raise UsageError for what a BiGRU cannot learn."""
    if objective.requires() != "label":
        raise UsageError(
            "--preset bigru reads a row as a whole, for its label, and cannot learn --objective "
            f"{spec_of(objective)}; give --objective classify, or another --preset, such as nano"
        )
    if objective.causal:
        raise UsageError(
            f"--objective {spec_of(objective)} does not go with --preset bigru, which reads each "
            "row from both ends; leave causal out"
        )
