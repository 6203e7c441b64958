"""What a model of a table is made of and how it is fitted, with all defaults in place."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.models.heads.base import ValueHead
from numtok.models.presets import shortest, trunk
from numtok.registry import settings_of, spec_of
from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_of
from numtok.training.table_learner import FittingRecipe
from numtok.training.trained_table import table_head

PRESET, HEAD = "mlp", "pointwise"


@dataclass(frozen=True)
class TablePlan:
    """What is fitted to what, with all defaults in place."""

    config: Config
    source: Artifact
    device: torch.device
    head: ValueHead
    preset: str
    normalizer: str
    recipe: FittingRecipe
    folds: list[int]

    @classmethod
    def of(cls, config: Config, source: Artifact) -> "TablePlan":
        """Raises UsageError for a head, a preset, a normalisation or a device that will not do."""
        device, head = device_of(config.device), table_head(config.head or HEAD)
        preset = config.preset or PRESET
        trunk(preset)
        normalizer = spec_of(NORMALIZERS.build(config.normalize or head.normalizer))
        rate, decay = config.learning_rate, config.weight_decay
        again = replace(
            config,
            data=source.ref,
            preset=preset,
            head=spec_of(head),
            normalize=normalizer,
            learning_rate=FittingRecipe.learning_rate if rate is None else rate,
            weight_decay=FittingRecipe.weight_decay if decay is None else decay,
            device=device.type,
        )
        recipe, folds = FittingRecipe.of(again), [] if config.fold is None else [config.fold]
        return cls(again, source, device, head, preset, normalizer, recipe, folds)

    @property
    def head_name(self) -> str:
        """``decoder:ud,base=4 -> decoder-ud-base-4``: what a name may have in it."""
        spec = spec_of(self.head).lower()
        return "".join(one if one.isalnum() or one == "." else "-" for one in spec)

    @property
    def settings(self) -> dict[str, Any]:
        """What the version depends on, beside the stage."""
        return {
            "trunk": settings_of(trunk(self.preset)),
            "head": settings_of(self.head),
            "normalizer": settings_of(NORMALIZERS.build(self.normalizer)),
            "folds": self.folds,
            "recipe": asdict(self.recipe),
            "device": self.device.type,
            **self._rows,
        }

    @property
    def _rows(self) -> dict[str, Any]:
        """The setting ``rows``, where it says something."""
        return {} if self.config.rows is None else {"rows": self.config.rows}

    @property
    def configuration(self) -> dict[str, Any]:
        """The same for people, by which seeds of one experiment are found."""
        recipe = asdict(self.recipe)
        del recipe["seed"]
        shape = {"preset": shortest(self.preset), "normalize": self.normalizer}
        return {"scheme": spec_of(self.head)} | shape | recipe | self._rows
