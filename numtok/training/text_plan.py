"""What a model of texts is made of and how it is trained, with all defaults in place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from numtok.declaration import of_experiment, of_version
from numtok.encoding.codec import Codec
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import has_targets
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS
from numtok.models.meta import without_memory
from numtok.models.model import Model, build_model
from numtok.models.number_heads import check_head, lacks_digits
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.places.base import PLACES
from numtok.models.presets import Preset, named_source, warmup_with
from numtok.models.settings import ModelSettings
from numtok.models.trunks.base import PretrainedTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry, settings_of, spec_of
from numtok.seeds import seed_of
from numtok.settings.train import Config
from numtok.store.artifact import Artifact
from numtok.training.curriculum import Curriculum
from numtok.training.device import check_compiler, device_of
from numtok.training.model_files import LoadedModel
from numtok.training.pretrained import begin_pretrained, check_tokenizer
from numtok.training.ranks import ALONE, Ranks
from numtok.training.tensorboard import check_tensorboard
from numtok.training.trainer import Execution, Recipe
from numtok.training.warm_start import (
    begin_with,
    chosen_preset,
    objective_of,
    usual_parts,
    warm_start_settings,
)

WEIGHT_DECAY = 0.01


@dataclass(frozen=True)
class TextPlan:
    """What is trained on what; ``config`` has no default left that depends on something else.

    chosen, title
        The preset, and what people know it by.
    """

    config: Config
    chosen: Preset
    title: str
    encoded: Artifact
    codec: Codec
    init: LoadedModel | None
    device: torch.device
    curriculum: Curriculum | None
    ranks: Ranks

    @classmethod
    def of(
        cls,
        config: Config,
        encoded: Artifact,
        codec: Codec,
        init: LoadedModel | None,
        ranks: Ranks = ALONE,
    ) -> "TextPlan":
        """Raises UsageError for what cannot be, before anything is begun."""
        device = device_of(config.device)
        able = device.type == "cuda" and torch.cuda.is_bf16_supported()
        auto = "bfloat16" if able else "float32"
        spec = config.objective or ("mlm:targets" if has_targets(encoded) else "mlm")
        objective = OBJECTIVES.build(spec)
        usual = usual_parts(codec, init)
        size = config.preset or usual["preset"]
        chosen, title = chosen_preset(size, init)
        if init is not None:
            objective = objective_of(spec, objective, init)
        embedding = EMBEDDERS.build(config.embedder or usual["embedder"])
        rate, warmup, decay = config.learning_rate, config.warmup, config.weight_decay
        made = replace(
            config,
            data=encoded.ref,
            preset=size,
            # As short as they can be said, so that two spellings are one experiment.
            embedder=spec_of(embedding),
            head=_head(config.head, usual["head"], codec, objective),
            objective=spec_of(objective),
            places=_places(config.places, init),
            minutes=config.budget.get("minutes"),
            learning_rate=chosen.rate_with(embedding) if rate is None else rate,
            warmup=warmup_with(embedding) if warmup is None else warmup,
            weight_decay=WEIGHT_DECAY if decay is None else decay,
            device=device.type,
            precision=auto if config.precision == "auto" else config.precision,
            init=None if init is None else init.artifact.ref,
        )
        phases = None if config.curriculum is None else Curriculum.read(Path(config.curriculum))
        plan = cls(made, chosen, title, encoded, codec, init, device, phases, ranks)
        plan._check()
        return plan

    def _check(self) -> None:
        config = self.config
        self._check_exact()
        trunk = self.chosen.trunk
        # PyTorch compiles numtok's own blocks.
        compiles = trunk.recomputes and not isinstance(trunk, PretrainedTrunk)
        for option, able in (("recompute", trunk.recomputes), ("compile", compiles)):
            if getattr(config, option) and not able:
                raise UsageError(
                    f"--{option} does not go with --preset {self.preset}, whose trunk cannot; "
                    "leave it out"
                )
        if config.recompute and self.device.type == "mps" and getattr(trunk, "dropout", False):
            raise UsageError(
                f"--recompute does not go with the dropout of --preset {self.preset} and --device "
                "mps, where PyTorch drops others when it works a block out again; leave it out, or "
                "give the preset dropout=0"
            )
        if config.compile:
            check_compiler()
        if config.log is not None:
            check_tensorboard()
        if config.shard and config.compile:
            raise UsageError("--shard and --compile do not go together yet; leave one of them out")
        self.recipe(config.steps or 1)
        if self.curriculum is not None and config.steps is not None:
            self.curriculum.starts(config.steps)
        if (source := self._begins_with) is not None:
            check_tokenizer(source, cast(PretrainedTrunk, trunk), self.codec, self.encoded)
        with without_memory():
            build_model(self.model_settings(1), Vocabulary.of(self.codec))

    def _check_exact(self) -> None:
        """Raise UsageError where a part is of all digits of a number and the data are scaled."""
        encoding = self.codec.normalizer
        for option, spec, registry in (
            ("embedder", self.config.embedder, EMBEDDERS),
            ("head", self.config.head, HEADS),
        ):
            if spec is not None and lacks_digits(registry.build(spec), encoding):
                raise UsageError(
                    f"--{option} {spec} is of numbers as they are in the text, and those of "
                    f"{self.encoded.ref} are normalised ({spec_of(encoding.normalizer)}); encode "
                    "them with "
                    f"`numtok encode --scheme {spec_of(self.codec.scheme)} --normalize none INPUT`"
                )

    @property
    def preset(self) -> str:
        """The spec of the model's size."""
        assert self.config.preset is not None
        return self.config.preset

    @property
    def _begins_with(self) -> str | None:
        """The pretrained model whose weights training begins with."""
        return named_source(self.preset) if self.init is None else None

    @property
    def objective(self) -> Objective:
        """As the options say, or by the default that the plan put in place."""
        assert self.config.objective is not None
        return OBJECTIVES.build(self.config.objective)

    @property
    def settings(self) -> dict[str, Any]:
        """What the version depends on, beside the stage."""
        settings = of_version(self.config)
        settings["preset"] = self.chosen.settings()
        registries: dict[str, Registry[Any]] = {
            "embedder": EMBEDDERS,
            "head": HEADS,
            "objective": OBJECTIVES,
            "places": PLACES,
        }
        for key, registry in registries.items():
            if (spec := settings.pop(key, None)) is not None:
                settings[key] = settings_of(registry.build(spec))
        settings["budget"] = self.config.budget
        if self.curriculum is not None:
            settings["curriculum"] = self.curriculum.settings()
        if self.init is not None:
            settings["init"] = warm_start_settings(self.init)
        return settings

    @property
    def configuration(self) -> dict[str, Any]:
        """The same for people, by which seeds of one experiment are found."""
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
    def execution(self) -> Execution:
        """The options that change how steps are worked out and not what is learnt."""
        config = self.config
        return Execution(
            self.device,
            config.precision == "bfloat16",
            config.accumulate,
            config.recompute,
            config.compile,
            config.batch_workers,
            config.checkpoint_steps,
            self.ranks,
            config.shard,
        )

    def recipe(self, steps: int) -> Recipe:
        """With so many steps, over which the rate falls; a curriculum may have it begin anew."""
        config = self.config
        assert config.learning_rate is not None and config.weight_decay is not None
        assert config.warmup is not None
        return Recipe(
            steps,
            config.learning_rate,
            config.warmup,
            config.weight_decay,
            config.clip,
            config.seed,
            config.final_rate,
            self.curriculum.restarts(steps) if self.curriculum else None,
        )

    def model_settings(
        self,
        context: int,
        scaling: FittedNormalizer | None = None,
        classes: Sequence[str] = (),
    ) -> ModelSettings:
        """With ``context`` where the preset names none."""
        config = self.config
        assert config.embedder is not None and config.objective is not None
        return ModelSettings.of(
            self.chosen,
            vocabulary=self.codec.vocabulary_size,
            context=context,
            embedder=config.embedder,
            head=config.head,
            objective=config.objective,
            scaling=scaling,
            classes=classes,
            places=config.places,
        )

    def model(self, settings: ModelSettings) -> Model:
        """The model before its first step: a pure function of the settings and the seed."""
        torch.manual_seed(seed_of(self.config.seed, "init"))
        model = build_model(settings, Vocabulary.of(self.codec))
        if self.init is not None:
            begin_with(model, self.init)
        elif (source := self._begins_with) is not None:
            begin_pretrained(model, source, self.codec)
        return model


def _places(given: str | None, init: LoadedModel | None) -> str | None:
    """As short as it can be said; that of the model begun with unless it is given."""
    if given is None and init is not None and init.model.settings.places is not None:
        return spec_of(PLACES.from_settings(init.model.settings.places))
    return None if given is None else spec_of(PLACES.build(given))


def _head(given: str | None, usual: str, codec: Codec, objective: Objective) -> str | None:
    """How numbers come out, None where labels do; UsageError for a head that cannot be."""
    if objective.requires() == "label":
        if given is not None:
            raise UsageError(
                f"--head {given} says numbers, --objective {spec_of(objective)} labels, by "
                "a linear map; leave --head out"
            )
        return None
    head = HEADS.build(given or usual)
    check_head(head, codec.scheme)
    return spec_of(head)
