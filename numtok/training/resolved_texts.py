"""Resolves the options of ``numtok train`` for encoded texts, and builds the parts of the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

import torch

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.codec import Codec
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import has_targets, splits
from numtok.encoding.stored_codec import read_codec
from numtok.errors import DataError, UsageError
from numtok.models.embedders.base import EMBEDDERS, Embedder
from numtok.models.heads.base import HEADS, Head
from numtok.models.meta import without_memory
from numtok.models.model import Model, build_model
from numtok.models.number_heads import check_head, lacks_digits
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.places.base import PLACES, DigitPlaces
from numtok.models.presets import Preset, named_source, warmup_with
from numtok.models.settings import ModelSettings
from numtok.models.trunks.base import PretrainedTrunk, TokenTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import name_in, settings_of, spec_of
from numtok.seeds import seed_of
from numtok.setting_versions import of_experiment, of_version
from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.training.curriculum import Curriculum
from numtok.training.device import check_compiler, device_count, device_of
from numtok.training.log import LOG_FILE, check_tensorboard
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import MODEL_FILE
from numtok.training.ranks import ALONE, Ranks, launched
from numtok.training.run import ResolvedTraining
from numtok.training.trainer import Execution, Recipe
from numtok.training.warm_start import (
    check_tokenizer,
    chosen_preset,
    copy_pretrained,
    copy_weights,
    default_parts,
    objective_of,
    read_init,
    warm_start_settings,
)
from numtok.training.weights import WEIGHTS

WEIGHT_DECAY = 0.01
REVISION = 3


@dataclass(frozen=True, kw_only=True)
class ResolvedTexts(ResolvedTraining):
    """A training run on encoded texts, with its parts (head, embedder, objective, ...) built and
    checked.

    devices
        Number of ranks that this process starts.
    spec, title
        The preset as the user typed it, and its name in reports.
    head
        Head that predicts numbers; None if the model predicts labels.
    places
        Embedding of digit positions, if any.
    init
        Model to start from, if any.
    """

    kind: ClassVar[str] = "texts"
    files: ClassVar[tuple[str, ...]] = (WEIGHTS, MODEL_FILE, SCHEME_FILE, LOG_FILE)

    codec: Codec
    preset: Preset
    spec: str
    title: str
    embedder: Embedder
    head: Head | None
    objective: Objective
    places: DigitPlaces | None
    recipe: Recipe
    init: LoadedModel | None
    curriculum: Curriculum | None

    @property
    def default_name(self) -> str:
        """Default name of the model, such as ``arithmetic-p1000-nano``.

        It consists of the name of the data and the name of the preset.
        """
        return f"{self.data.name}-{name_in(self.spec)}"

    @property
    def parents(self) -> list[Artifact]:
        """Artifacts that the model is made from: the data and, if any, the model to start from."""
        return [self.data, *([self.init.artifact] if self.init else [])]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that determine the version of the model."""
        settings = {"stage": "train", "revision": REVISION} | of_version(self.config)
        settings["preset"] = self.preset.settings()
        for key in ("embedder", "head", "objective", "places"):
            settings.pop(key, None)
            if (part := getattr(self, key)) is not None:
                settings[key] = settings_of(part)
        settings["budget"] = self.config.budget
        if self.curriculum is not None:
            settings["curriculum"] = self.curriculum.settings()
        if self.init is not None:
            settings["init"] = warm_start_settings(self.init)
        return settings

    @property
    def configuration(self) -> dict[str, Any]:
        """Settings in readable form, without the seed.

        Runs with the same configuration form one experiment.
        """
        codec, own = self.codec, of_experiment(self.config) | {"preset": self.title}
        parts = {
            "scheme": title_of(codec.scheme),
            "normalize": spec_of(codec.normalizer.normalizer),
            "text_tokenizer": spec_of(codec.text_tokenizer),
        }
        parts |= {key: own.pop(key) for key in ("preset", "embedder", "head", "objective")}
        parts |= {f"budget_{unit}": value for unit, value in self.config.budget.items()} | own
        if self.curriculum is not None:
            parts["curriculum"] = self.curriculum.title
        parts |= warm_start_settings(self.init) if self.init else {}
        return {key: value for key, value in parts.items() if value is not None}

    @property
    def less_memory(self) -> str:
        """Advice for an out-of-memory error: the options in use, and options that need less
        memory."""
        config, parts = self.config, self.config.accumulate
        had, less = f"--batch {config.batch}", []
        if parts > 1:
            had += f" --accumulate {parts}"
        if parts < config.batch:
            less.append(
                f"--accumulate {min(2 * parts, config.batch)} (the same steps in smaller parts)"
            )
        if not config.recompute and self.preset.trunk.recomputes:
            less.append("--recompute (the same steps, slower)")
        return f"{had}. Use " + ", or ".join([*less, "a smaller --preset"])

    @property
    def _source(self) -> str | None:
        """Source of the pretrained weights to start from, if any."""
        return named_source(self.spec) if self.init is None else None

    def model_settings(
        self,
        context: int,
        scaling: FittedNormalizer | None = None,
        classes: Sequence[str] = (),
    ) -> ModelSettings:
        """Return the settings of the model.

        context
            Maximum number of tokens per row, used if the preset sets none.
        scaling
            Normalization of the numbers that the head predicts, if it needs one.
        classes
            Labels that the model predicts, if it classifies.
        """
        return ModelSettings.of(
            self.preset,
            vocabulary=self.codec.vocabulary_size,
            context=context,
            embedder=self.embedder,
            head=self.head,
            objective=self.objective,
            scaling=scaling,
            classes=classes,
            places=self.places,
        )

    def model(self, settings: ModelSettings) -> Model:
        """Build the initial model, which depends only on the settings and the seed.

        Weights are copied from the model to start from or from a pretrained model, if there is one.
        """
        torch.manual_seed(seed_of(self.config.seed, "init"))
        model = build_model(settings, Vocabulary.of(self.codec))
        if self.init is not None:
            copy_weights(model, self.init)
        elif self._source is not None:
            copy_pretrained(model, self._source, self.codec)
        return model

    def check_model(self) -> None:
        """Raise UsageError if the parts of the model cannot be combined.

        Allocates no memory for weights.
        """
        if self._source is not None:
            trunk = cast(PretrainedTrunk, self.preset.trunk)
            check_tokenizer(self._source, trunk, self.codec, self.data)
        with without_memory():
            build_model(self.model_settings(1), Vocabulary.of(self.codec))


def resolve_texts(
    config: Config, encoded: Artifact, former: Artifact | None, ranks: Ranks = ALONE
) -> ResolvedTexts:
    """Build and check the parts of a training run on encoded texts, such as the head and the
    embedder.

    ``former`` is the model artifact given by ``--init-from``, if any.

    Raises UsageError if parts or options cannot be combined, and DataError if the data have no
    train split.
    """
    if TRAIN not in splits(encoded):
        raise DataError(f"{encoded.ref} has no split {TRAIN!r} to train on. Encode one")
    codec = read_codec(encoded)
    init = None if former is None else read_init(former, encoded, codec)
    device = device_of(config.device)
    defaults = default_parts(codec, init)
    spec = config.preset or defaults["preset"]
    preset, title = chosen_preset(spec, init)
    objective = _objective(config.objective, encoded, init)
    embedder = EMBEDDERS.build(config.embedder or defaults["embedder"])
    head = _head(config.head, defaults["head"], codec, objective)
    places = _places(config.places, init)
    curriculum = _curriculum(config)
    recipe = _recipe(config, preset, embedder, curriculum)
    config = replace(
        config,
        data=encoded.ref,
        preset=spec,
        # The shortest specs, so that different spellings count as one experiment.
        embedder=spec_of(embedder),
        head=None if head is None else spec_of(head),
        objective=spec_of(objective),
        places=None if places is None else spec_of(places),
        minutes=config.budget.get("minutes"),
        learning_rate=recipe.learning_rate,
        warmup=recipe.warmup,
        weight_decay=recipe.weight_decay,
        device=device.type,
        precision=_precision(config.precision, device),
        init=None if init is None else init.artifact.ref,
    )
    _check_exact(codec, encoded, embedder=embedder, head=head)
    _check_execution(config, spec, preset.trunk, device)
    resolved = ResolvedTexts(
        config=config,
        data=encoded,
        execution=_execution(config, device, ranks),
        devices=1 if launched() else device_count(config.devices, device),
        codec=codec,
        preset=preset,
        spec=spec,
        title=title,
        embedder=embedder,
        head=head,
        objective=objective,
        places=places,
        recipe=recipe,
        init=init,
        curriculum=curriculum,
    )
    resolved.check_model()
    return resolved


def _objective(chosen: str | None, encoded: Artifact, init: LoadedModel | None) -> Objective:
    """Return the chosen objective, or the default for the data."""
    spec = chosen or ("mlm:targets" if has_targets(encoded) else "mlm")
    objective = OBJECTIVES.build(spec)
    return objective if init is None else objective_of(spec, objective, init)


def _head(chosen: str | None, default: str, codec: Codec, objective: Objective) -> Head | None:
    """Return the head that predicts numbers, or None if the objective predicts labels.

    Raises UsageError if the head fits neither the objective nor the scheme.
    """
    if objective.requires() == "label":
        if chosen is not None:
            raise UsageError(
                f"--head {chosen} predicts numbers, but --objective {spec_of(objective)} predicts "
                "labels. Remove --head"
            )
        return None
    head = HEADS.build(chosen or default)
    check_head(head, codec.scheme)
    return head


def _places(chosen: str | None, init: LoadedModel | None) -> DigitPlaces | None:
    """Return the chosen embedding of digit positions, or the one of the model to start from."""
    if chosen is not None:
        return PLACES.build(chosen)
    settings = None if init is None else init.model.settings.places
    return None if settings is None else PLACES.from_settings(settings)


def _precision(chosen: str, device: torch.device) -> str:
    if chosen != "auto":
        return chosen
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return "bfloat16" if able else "float32"


def _curriculum(config: Config) -> Curriculum | None:
    if config.curriculum is None:
        return None
    if config.steps is None:
        raise UsageError("--curriculum needs the number of steps to divide. Set --steps")
    return Curriculum.read(Path(config.curriculum))


def _recipe(
    config: Config, preset: Preset, embedder: Embedder, curriculum: Curriculum | None
) -> Recipe:
    """Build the recipe, with the defaults of preset and embedder."""
    starts = None
    if curriculum is not None and config.steps is not None:
        starts = curriculum.restarts(config.steps)
    rate, warmup, decay = config.learning_rate, config.warmup, config.weight_decay
    return Recipe(
        learning_rate=preset.rate_with(embedder) if rate is None else rate,
        warmup=warmup_with(embedder) if warmup is None else warmup,
        weight_decay=WEIGHT_DECAY if decay is None else decay,
        clip=config.clip,
        seed=config.seed,
        final_rate=config.final_rate,
        starts=starts,
    )


def _execution(config: Config, device: torch.device, ranks: Ranks) -> Execution:
    return Execution(
        device=device,
        bfloat16=config.precision == "bfloat16",
        accumulate=config.accumulate,
        recompute=config.recompute,
        compiled=config.compile,
        ranks=ranks,
        shard=config.shard,
    )


def _check_exact(codec: Codec, encoded: Artifact, *, embedder: Embedder, head: Head | None) -> None:
    """Raise UsageError if a part needs all digits of a number but the data are normalized."""
    for option, part in (("embedder", embedder), ("head", head)):
        if part is not None and lacks_digits(part, codec.normalizer):
            raise UsageError(
                f"--{option} {spec_of(part)} needs the numbers of the text, but {encoded.ref} is "
                f"normalized ({spec_of(codec.normalizer.normalizer)}). Encode without: "
                f"`numtok encode --scheme {spec_of(codec.scheme)} --normalize none INPUT`"
            )


def _check_execution(config: Config, spec: str, trunk: TokenTrunk, device: torch.device) -> None:
    """Raise UsageError for options that the trunk, the device or this machine does not support."""
    # PyTorch compiles only numtok's own blocks.
    compiles = trunk.recomputes and not isinstance(trunk, PretrainedTrunk)
    for option, able in (("recompute", trunk.recomputes), ("compile", compiles)):
        if getattr(config, option) and not able:
            raise UsageError(
                f"--{option} cannot be combined with --preset {spec}, whose trunk does not support "
                f"it. Remove --{option}"
            )
    if config.recompute and device.type == "mps" and getattr(trunk, "dropout", False):
        raise UsageError(
            f"--recompute cannot be combined with the dropout of --preset {spec} on --device mps, "
            "where recomputed blocks drop other values. Remove --recompute, or set dropout=0 in "
            "the preset"
        )
    if config.compile:
        check_compiler()
    if config.log is not None:
        check_tensorboard()
    if config.shard and config.compile:
        raise UsageError("--fsdp and --compile cannot be combined. Remove one of them")
