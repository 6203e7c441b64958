"""Resolves the options of ``numtok train`` for a table, and builds the parts of the model."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from numtok.data.tables.text_features import FEATURES_FILE, TextFeatures, read_text_features
from numtok.encoding.normalizers.base import NORMALIZERS, Normalizer
from numtok.errors import UsageError
from numtok.models.heads.base import ValueHead
from numtok.models.presets import shortest, trunk
from numtok.models.trunks.base import ColumnTrunk
from numtok.registry import settings_of, spec_of
from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.training.device import device_count, device_of
from numtok.training.log import LOG_FILE
from numtok.training.model_json import MODEL_FILE
from numtok.training.ranks import Ranks
from numtok.training.run import ResolvedTraining
from numtok.training.trained_table import FittingRecipe, table_head
from numtok.training.trainer import Execution
from numtok.training.weights import WEIGHTS

PRESET, HEAD = "mlp", "pointwise"
REVISION = 1


@dataclass(frozen=True, kw_only=True)
class ResolvedTable(ResolvedTraining):
    """A training run on a table, with its parts (head, trunk, normalizer) built and checked.

    devices
        Number of folds that are fitted in parallel.
    folds
        Folds to fit; empty for all folds.
    text_features
        How the features of the table are computed from texts; None for other tables.
    """

    kind: ClassVar[str] = "tables"

    head: ValueHead
    trunk: ColumnTrunk
    normalizer: Normalizer
    recipe: FittingRecipe
    folds: Sequence[int]
    text_features: TextFeatures | None

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the model's files."""
        more = () if self.text_features is None else (FEATURES_FILE,)
        return (WEIGHTS, MODEL_FILE, LOG_FILE, *more)

    @property
    def default_name(self) -> str:
        """Default name of the model, such as ``rows-decoder-ud-base-4``.

        It consists of the name of the table and the spec of the head.
        """
        spec = spec_of(self.head).lower()
        head = "".join(char if char.isalnum() or char == "." else "-" for char in spec)
        return f"{self.data.name}-{head}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that determine the version of the model."""
        return {
            "stage": "fit",
            "revision": REVISION,
            "trunk": settings_of(self.trunk),
            "head": settings_of(self.head),
            "normalizer": settings_of(self.normalizer),
            "folds": self.folds,
            "recipe": asdict(self.recipe),
            "device": self.execution.device.type,
            **self._rows,
        }

    @property
    def configuration(self) -> dict[str, Any]:
        """Settings in readable form, without the seed.

        Runs with the same configuration form one experiment.
        """
        recipe = asdict(self.recipe)
        del recipe["seed"]
        preset = shortest(self.config.preset or PRESET)
        shape = {"preset": preset, "normalize": spec_of(self.normalizer)}
        return {"scheme": spec_of(self.head)} | shape | recipe | self._rows

    @property
    def less_memory(self) -> str:
        """Advice for an out-of-memory error: the batch size in use, and options that need less
        memory."""
        return f"--batch {self.config.batch}. Use a smaller batch, or a smaller --preset"

    @property
    def _rows(self) -> dict[str, Any]:
        return {} if self.config.rows is None else {"rows": self.config.rows}


def resolve_table(config: Config, table: Artifact, ranks: Ranks) -> ResolvedTable:
    """Build and check the parts of a training run on a table: head, trunk and normalizer.

    Raises UsageError if the head, preset, normalization or device cannot be used, or if there are
    several ranks.
    """
    device, head = device_of(config.device), table_head(config.head or HEAD)
    preset = config.preset or PRESET
    built = trunk(preset)
    normalizer = NORMALIZERS.build(config.normalize or head.normalizer)
    rate, decay = config.learning_rate, config.weight_decay
    config = replace(
        config,
        data=table.ref,
        preset=preset,
        head=spec_of(head),
        normalize=spec_of(normalizer),
        learning_rate=FittingRecipe.learning_rate if rate is None else rate,
        weight_decay=FittingRecipe.weight_decay if decay is None else decay,
        device=device.type,
    )
    recipe = FittingRecipe.of(config)
    if ranks.count > 1:
        raise UsageError(
            f"{table.ref} is a table, which one process trains. Run it without a launcher"
        )
    return ResolvedTable(
        config=config,
        data=table,
        execution=Execution(device=device),
        devices=device_count(config.devices, device),
        head=head,
        trunk=built,
        normalizer=normalizer,
        recipe=recipe,
        folds=[] if config.fold is None else [config.fold],
        text_features=read_text_features(table),
    )
