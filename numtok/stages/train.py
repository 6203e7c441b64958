"""Train: encoded data -> a model.

The draft holds a checkpoint, so a run that was killed goes on where it stood
and ends, on the CPU, in the same bytes. A budget in minutes is measured at the
start and frozen to steps there.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch

from numtok import files
from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer, Moments, Undone, fit
from numtok.encoding.splits import has_targets, learnt_values, read_codec, read_split, splits
from numtok.errors import DataError, UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS, Calibration, ValueHead
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.presets import preset, shortest
from numtok.models.settings import ModelSettings
from numtok.models.vocabulary import Vocabulary
from numtok.records import ENCODED, LOG_FILE, MODEL, SCHEME_FILE, TRAIN, TRUNCATED
from numtok.registry import name_in, settings_of, spec_of
from numtok.seeds import seed_of
from numtok.store.artifact import Artifact, Parent, check_name
from numtok.store.draft import Draft
from numtok.store.store import Store
from numtok.training.checkpoint import Finished, drop_checkpoint, read_finished, write_finished
from numtok.training.curriculum import Curriculum
from numtok.training.curriculum_sampler import CurriculumSampler
from numtok.training.device import check_compiler, tune_malloc
from numtok.training.labels import learnt_classes
from numtok.training.loop import Progress, SplitExamples, Training
from numtok.training.model_files import (
    MODEL_FILE,
    WEIGHTS,
    LoadedModel,
    Trained,
    read_model,
    write_model,
)
from numtok.training.profiler import Cost
from numtok.training.regressor_files import is_regressor
from numtok.training.trainer import WHOLE_STEP, Execution, Recipe, device_of, oom_advice
from numtok.training.warm_start import (
    begin_with,
    check_length,
    check_trunk,
    objective_of,
    usual_parts,
    warm_start_settings,
)

REVISION = 2
BUDGETS = ("steps", "tokens", "minutes")  # of which one says how long
VALIDATION = "validation"  # the split that is looked at during training
_CONTEXT = 16  # what a context that is not said is a multiple of: other data are a little longer


@dataclass(frozen=True)
class Config:
    """What ``numtok train`` was asked for; of ``steps``, ``tokens`` and ``minutes`` one at most.

    None of ``preset``, ``embedder`` and ``head`` means that of ``init``, or without one ``nano``
    and the scheme's own (no head where labels are learnt); of ``objective`` ``mlm:targets`` where
    rows have targets and ``mlm`` otherwise; of ``learning_rate`` the preset's.
    """

    encoded: str
    preset: str | None = None
    objective: str | None = None
    embedder: str | None = None
    head: str | None = None
    steps: int | None = None
    tokens: int | None = None
    minutes: float | None = None
    batch: int = 128
    accumulate: int = 1
    recompute: bool = False
    compile: bool = False
    learning_rate: float | None = None
    final_rate: float = 0.0
    warmup: float = 0.05
    curriculum: str | None = None
    weight_decay: float = 0.01
    clip: float = 1.0
    seed: int = 0
    init: str | None = None
    device: str = "auto"
    precision: str = "auto"
    checkpoint_steps: int | None = None
    batch_workers: int = 0
    profile: Path | None = None
    name: str | None = None
    restart: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        given = [key for key in ("steps", "tokens", "minutes") if getattr(self, key) is not None]
        if len(given) > 1:
            raise UsageError(
                f"--{given[0]} and --{given[1]} are two budgets; give one of --steps, --tokens "
                "and --minutes"
            )
        for option, value, below in (
            *((key, getattr(self, key), math.inf) for key in given),
            ("batch", self.batch, math.inf),
            ("checkpoint-every", self.checkpoint_steps, math.inf),
            ("lr", self.learning_rate, 1),
        ):
            if value is not None and not 0 < value < below:
                also = "" if below == math.inf else f" and below {below}"
                raise UsageError(f"--{option} {value} is not possible; it is above 0{also}")
        if self.curriculum is not None and self.steps is None:
            raise UsageError(
                "--curriculum divides the steps of a run among its phases; give --steps"
            )
        if not 1 <= self.accumulate <= self.batch:
            raise UsageError(
                f"--accumulate {self.accumulate} is not possible; it is from 1 to --batch "
                f"({self.batch})"
            )
        if self.batch_workers < 0:
            raise UsageError(f"--batch-workers {self.batch_workers} is not possible; 0 or more")
        if self.precision not in ("auto", "float32", "bfloat16"):
            raise UsageError(
                f"--precision {self.precision!r} is not possible; allowed are auto, float32 and "
                "bfloat16"
            )
        check_name(self.name)

    @property
    def budget(self) -> dict[str, float]:
        """The budget asked for, by its unit; 5 minutes unless said."""
        for key in ("steps", "tokens", "minutes"):
            if (value := getattr(self, key)) is not None:
                return {key: value}
        return {"minutes": 5.0}


@dataclass(frozen=True)
class Result:
    """The model, whether this call made it, and what a step costs if that was asked for."""

    artifact: Artifact
    made: bool
    costs: Sequence[Cost] = ()


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Train a model, or find the one that is there.

    Raises UsageError, DataError, StoreError, and TrainingFailed (a loss that is not finite, no
    memory). An interrupt is answered by a checkpoint first; the same call then continues.
    """
    encoded = store.resolve(config.encoded, kinds={ENCODED})
    if TRAIN not in splits(encoded):
        raise DataError(f"{encoded.ref} has no split {TRAIN!r} to learn from; encode one")
    codec = read_codec(encoded)
    plan = _Plan.of(config, encoded, codec, store)
    with store.draft(
        MODEL,
        config.name or f"{encoded.name}-{name_in(plan.preset)}",
        plan.settings,
        plan.parents,
        plan.command,
        restart=config.restart,
        force=config.force,
    ) as draft:
        if isinstance(draft, Artifact):
            if config.profile:
                raise UsageError(
                    f"--profile: {draft.ref} is there already, so nothing is trained that could be "
                    "profiled; add --force"
                )
            return Result(draft, made=False)
        if plan.device.type == "cpu":
            tune_malloc()
        memory = oom_advice(_less_memory(plan))
        with memory, ExitStack() as spools:
            reading = _Reading(encoded, lambda: spools.enter_context(store.spool()), store.note)
            artifact, costs = _made(draft, plan, codec, reading, progress)
            return Result(artifact, made=True, costs=costs)


def _less_memory(plan: "_Plan") -> str:
    """With what memory is out, and what needs less of it."""
    config, parts = plan.config, plan.config.accumulate
    had, less = f"--batch {config.batch}", []
    if parts > 1:
        had += f" --accumulate {parts}"
    if parts < config.batch:
        less.append(f"--accumulate {min(2 * parts, config.batch)}, the same steps in smaller parts")
    if not config.recompute and preset(plan.preset).trunk.recomputes:
        less.append("--recompute, the same steps in more time")
    return f"{had}; give " + ", or ".join([*less, "a smaller --preset"])


class _Reading(NamedTuple):
    """The data, where to put what is too large for memory, and who is told what is left out."""

    encoded: Artifact
    spill: Callable[[], Path]
    note: Callable[[str], None]

    def split(self, name: str) -> EncodedSplit:
        return read_split(self.encoded, name, spill=self.spill)


@dataclass(frozen=True)
class _Plan:
    """What is trained on what, with all defaults in place."""

    config: Config
    encoded: Artifact
    init: LoadedModel | None
    device: torch.device
    bfloat16: bool
    preset: str
    embedder: str
    head: str | None
    objective: str
    learning_rate: float
    curriculum: Curriculum | None

    @classmethod
    def of(cls, config: Config, encoded: Artifact, codec: Codec, store: Store) -> "_Plan":
        device = device_of(config.device)
        able = device.type == "cuda" and torch.cuda.is_bf16_supported()
        spec = config.objective or ("mlm:targets" if has_targets(encoded) else "mlm")
        objective = OBJECTIVES.build(spec)
        rate = config.learning_rate
        init = None
        if config.init:
            begun = store.resolve(config.init, kinds={MODEL})
            if is_regressor(begun):
                raise UsageError(
                    f"--init {begun.ref} is a model of tables; begin with one of texts"
                )
            init = read_model(begun, torch.device("cpu"))
            if init.codec.digest != codec.digest:
                raise UsageError(
                    f"--init {init.artifact.ref} was trained on another encoding than "
                    f"{encoded.ref}; `numtok encode --like {init.artifact.ref}` encodes data for it"
                )
        usual = usual_parts(codec, init)
        size = config.preset or usual["preset"]
        if init is not None:
            check_trunk(size, init)
            objective = objective_of(spec, objective, init)
        plan = cls(
            config,
            encoded,
            init,
            device,
            config.precision == "bfloat16" or (config.precision == "auto" and able),
            size,
            # As short as they can be said, so that two spellings are one experiment.
            spec_of(EMBEDDERS.build(config.embedder or usual["embedder"])),
            _head(config.head, usual["head"], codec, objective),
            spec_of(objective),
            preset(size).learning_rate if rate is None else rate,
            None if config.curriculum is None else Curriculum.read(Path(config.curriculum)),
        )
        # What cannot be is refused now, before anything is begun.
        trunk = preset(size).trunk
        for option, able in (("recompute", trunk.recomputes), ("compile", trunk.compiles)):
            if getattr(config, option) and not able:
                raise UsageError(
                    f"--{option} does not go with --preset {size}, whose trunk cannot; leave it out"
                )
        if config.compile:
            check_compiler()
        plan.recipe(config.steps or 1)
        if plan.curriculum is not None and config.steps is not None:
            plan.curriculum.starts(config.steps)
        with torch.device("meta"):  # takes no memory
            Model(plan.model_settings(codec, 1), Vocabulary.of(codec))
        return plan

    @property
    def parents(self) -> list[Parent]:
        parents = [self.encoded] + ([self.init.artifact] if self.init else [])
        return [one.as_parent() for one in parents]

    @property
    def command(self) -> list[str]:
        """The command line that makes the model again."""
        config = self.config
        words = ["numtok", "train", self.encoded.ref, "--preset", self.preset]
        words += ["--objective", self.objective, "--embedder", self.embedder]
        words += [] if self.head is None else ["--head", self.head]
        for unit, value in config.budget.items():
            words += [f"--{unit}", str(value)]
        words += ["--batch", str(config.batch), "--lr", repr(self.learning_rate)]
        words += ["--accumulate", str(config.accumulate)] if config.accumulate > 1 else []
        words += ["--compile"] if config.compile else []
        words += ["--lr-end", repr(config.final_rate)] if config.final_rate else []
        words += ["--curriculum", config.curriculum] if config.curriculum else []
        words += ["--warmup", repr(config.warmup), "--weight-decay", repr(config.weight_decay)]
        words += ["--clip", repr(config.clip), "--seed", str(config.seed)]
        words += ["--device", self.device.type]
        words += ["--precision", "bfloat16" if self.bfloat16 else "float32"]
        words += ["--init", self.init.artifact.ref] if self.init else []
        return words + (["--name", config.name] if config.name else [])

    @property
    def settings(self) -> dict[str, Any]:
        """What the version depends on."""
        config = self.config
        settings = {
            "stage": "train",
            "revision": REVISION,
            "preset": preset(self.preset).settings(),
            "embedder": settings_of(EMBEDDERS.build(self.embedder)),
            "objective": settings_of(OBJECTIVES.build(self.objective)),
            "budget": config.budget,
            "batch": config.batch,
            "learning_rate": self.learning_rate,
            "warmup": config.warmup,
            "weight_decay": config.weight_decay,
            "clip": config.clip,
            "seed": config.seed,
            "device": self.device.type,
            "precision": "bfloat16" if self.bfloat16 else "float32",
        }
        if self.head is not None:
            settings["head"] = settings_of(HEADS.build(self.head))
        # They change no more than the rounding: a run without them is as it was before they were.
        if config.accumulate > 1:
            settings["accumulate"] = config.accumulate
        if config.compile:
            settings["compile"] = True
        if config.final_rate:
            settings["final_rate"] = config.final_rate
        if self.curriculum is not None:
            settings["curriculum"] = self.curriculum.settings()
        if self.init is not None:
            settings["init"] = warm_start_settings(self.init)
        return settings

    def configuration(self, codec: Codec) -> dict[str, Any]:
        """The same for people, by which seeds of one experiment are found."""
        settings = self.settings
        parts = {
            "scheme": codec.scheme.title,
            "normalize": spec_of(codec.normalizer.normalizer),
            "text_tokenizer": spec_of(codec.text_tokenizer),
            "preset": shortest(self.preset),
            "embedder": self.embedder,
            "head": self.head,
            "objective": self.objective,
        } | {f"budget_{unit}": value for unit, value in self.config.budget.items()}
        for key in ("batch", "learning_rate", "warmup", "weight_decay", "clip", "precision"):
            parts[key] = settings[key]
        if self.config.final_rate:
            parts["final_rate"] = self.config.final_rate
        if self.curriculum is not None:
            parts["curriculum"] = self.curriculum.title
        parts |= warm_start_settings(self.init) if self.init else {}
        return {key: value for key, value in parts.items() if value is not None}

    @property
    def execution(self) -> Execution:
        config = self.config
        return Execution(
            self.device, self.bfloat16, config.accumulate, config.recompute, config.compile
        )

    def recipe(self, steps: int) -> Recipe:
        config = self.config
        return Recipe(
            steps,
            self.learning_rate,
            config.warmup,
            config.weight_decay,
            config.clip,
            config.seed,
            config.final_rate,
            self.curriculum.restarts(steps) if self.curriculum else None,
        )

    def model_settings(
        self,
        codec: Codec,
        context: int,
        scaling: FittedNormalizer | Undone | None = None,
        classes: Sequence[str] = (),
    ) -> ModelSettings:
        """With ``context`` where the preset names none."""
        return ModelSettings.of(
            preset(self.preset),
            vocabulary=codec.vocabulary_size,
            context=context,
            embedder=self.embedder,
            head=self.head,
            objective=self.objective,
            scaling=scaling,
            classes=classes,
        )

    def model(self, settings: ModelSettings, vocabulary: Vocabulary) -> Model:
        """The model before its first step: a pure function of the settings and the seed."""
        torch.manual_seed(seed_of(self.config.seed, "init"))
        model = Model(settings, vocabulary)
        if self.init is not None:
            begin_with(model, self.init)
        return model


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
    if codec.scheme.channel and not isinstance(head, ValueHead):
        raise UsageError(
            f"--head {spec_of(head)} cannot read {spec_of(codec.scheme)}, whose tokens alone do "
            f"not say a number; give one that reads values, such as {codec.scheme.head}"
        )
    if isinstance(head, ValueHead) and head.raw and codec.scheme.splits:
        raise UsageError(
            f"--head {spec_of(head)} learns whole numbers as they are in the text, and in "
            f"{spec_of(codec.scheme)} the token says a part of each; encode with xval or a scheme "
            f"without a channel, or give --head {codec.scheme.head}"
        )
    return spec_of(head)


def _made(
    draft: Draft, plan: _Plan, codec: Codec, reading: _Reading, progress: Progress
) -> tuple[Artifact, Sequence[Cost]]:
    finished = read_finished(draft)
    costs: Sequence[Cost] = ()
    if finished is None:
        finished, costs = _train(draft, plan, codec, reading, progress)
        write_finished(draft, (WEIGHTS, MODEL_FILE, SCHEME_FILE, LOG_FILE), finished)
    drop_checkpoint(draft)
    return draft.publish(finished.counts, finished.timing), costs


def _train(
    draft: Draft, plan: _Plan, codec: Codec, reading: _Reading, progress: Progress
) -> tuple[Finished, Sequence[Cost]]:
    """Leave the files of the model in the draft."""
    config = plan.config
    train, validation = _splits(plan, codec, reading)
    longest = max(one.samples.longest for one in (train, validation) if one is not None)
    longest += int(train.objective.causal)
    context = _context(plan, longest)
    unseen = _unseen(plan, codec, reading.note)
    scaling = _scaling(plan, codec, train.samples)
    settings = plan.model_settings(codec, context, scaling, train.classes)
    training = Training(
        draft,
        train,
        validation,
        lambda: plan.model(settings, Vocabulary.of(codec)),
        plan.recipe,
        execution=plan.execution,
        batch_workers=config.batch_workers,
        checkpoint_steps=config.checkpoint_steps,
        progress=progress,
        note=reading.note,
    )
    costs = training.profile(config.profile) if config.profile else ()
    trainer = training.run(config.budget)
    looked_at = validation or train
    calibration = _calibration(trainer.model, looked_at, config.accumulate)
    split = VALIDATION if validation else TRAIN
    trained = Trained(
        configuration=plan.configuration(codec),
        seed=config.seed,
        calibration=calibration,
        calibrated_on=split if calibration else None,
        train_mean=None if train.classes else _mean(train.samples),
        samples=train.row_count(trainer.step),
        tokens=trainer.tokens,
        steps=trainer.step,
        flops=float(WHOLE_STEP * trainer.flops),
    )
    write_model(draft.path, trainer.model, codec, trained)
    # Sorted, because a checkpoint gives the fields back in another order.
    lines = [msgspec.json.encode(record, order="sorted") + b"\n" for record in training.records]
    files.write_atomic(draft.path / LOG_FILE, b"".join(lines))
    parameters, _ = trainer.model.parameter_counts()
    counts = {
        "rows": len(train.samples),
        "steps": trainer.step,
        "samples": trained.samples,
        "tokens": trainer.tokens,
        "parameters": parameters,
    } | ({"classes": len(train.classes)} if train.classes else {})
    counts |= {TRUNCATED: unseen} if unseen else {}
    return Finished(counts, training.timing(trainer)), costs


def _unseen(plan: _Plan, codec: Codec, note: Callable[[str], None]) -> int:
    """How many numbers of the data have digits which the embedder does not see; it is noted."""
    count = plan.encoded.manifest.counts.get(TRUNCATED, 0)
    if not count or EMBEDDERS.build(plan.embedder).sees_all:
        return 0
    note(
        f"{count:,} numbers of {plan.encoded.ref} have more than {codec.scheme.max_digits}, and "
        f"--embedder {plan.embedder} sees no further"
    )
    return count


def _context(plan: _Plan, longest: int) -> int:
    """The most tokens that the model reads; DataError where the longest row has more."""
    chosen = preset(plan.preset).trunk.context
    if chosen is None:
        return longest  # or more
    context = chosen or -(-longest // _CONTEXT) * _CONTEXT
    if plan.init is not None and not chosen:
        context = max(longest, plan.init.model.settings.context)
    if plan.init is not None:
        check_length(longest, plan.encoded, plan.init)
    if longest > context:
        raise DataError(
            f"{plan.encoded.ref} has a row of {longest:,} tokens, --preset {plan.preset} reads "
            f"{context:,}; give the preset context={longest}"
        )
    return context


def _splits(
    plan: _Plan, codec: Codec, reading: _Reading
) -> tuple[SplitExamples, SplitExamples | None]:
    """What is learnt and what is looked at, the latter where there is such a split."""
    objective, config = OBJECTIVES.build(plan.objective), plan.config

    def split(
        samples: EncodedSplit, classes: Sequence[str], curriculum: CurriculumSampler | None = None
    ) -> SplitExamples:
        return SplitExamples(
            samples, codec, objective, config.batch, config.seed, classes, curriculum
        )

    samples = reading.split(TRAIN)
    if objective.requires() == "label":
        classes = learnt_classes(samples, plan.encoded)
    else:
        classes = ()
        _check_learnable(objective, samples, plan.encoded)
    curriculum = None
    if plan.curriculum is not None and config.steps is not None:
        curriculum = CurriculumSampler(plan.curriculum, samples, config.batch, config.steps)
    train = split(samples, classes, curriculum)
    if VALIDATION not in splits(plan.encoded):
        return train, None
    samples = reading.split(VALIDATION)
    if classes and (strange := int((samples.class_of(classes) < 0).sum())):
        reading.note(
            f"{strange:,} of the {len(samples):,} rows of split {VALIDATION!r} have no label, or "
            f"one that split {TRAIN!r} has not; they are not looked at"
        )
        if strange == len(samples):
            return train, None
    return train, split(samples, classes)


def _scaling(plan: _Plan, codec: Codec, samples: EncodedSplit) -> FittedNormalizer | Undone | None:
    """For a head of the unit interval: the encoded numbers of the train split into it, or of that
    of the model whose weights it begins with, which say numbers by it; for a head of raw numbers,
    what undoes the normalisation of the encoding."""
    head = None if plan.head is None else HEADS.build(plan.head)
    if isinstance(head, ValueHead) and head.raw:
        return None if codec.normalizer.normalizer.identity else Undone(codec.normalizer)
    if not isinstance(head, ValueHead) or not head.scaled:
        return None
    if plan.init is not None:
        there = plan.init.model.scaling
        assert isinstance(there, FittedNormalizer)  # its head is this one
        return there
    values = learnt_values(samples, codec)(np.arange(len(samples.numbers)))
    return fit(NORMALIZERS.build(head.normalizer), Moments.of(values.astype(np.float64)))


def _check_learnable(objective: Objective, samples: EncodedSplit, encoded: Artifact) -> None:
    """Refuse an objective that asks for what some rows have not."""
    wanted = objective.requires()
    found = {
        None: True,
        "targets": len(np.unique(samples.target_row)) == len(samples),
        "answer_start": bool((samples.answer_start >= 0).all()),
    }
    if not found[wanted]:
        raise DataError(
            f"--objective {spec_of(objective)} needs {wanted} in every row, {encoded.ref} has rows "
            f"without; encode data with {wanted}, or give another --objective"
        )


@torch.no_grad()
def _calibration(model: Model, split: SplitExamples, accumulate: int) -> Calibration:
    """What the head's distribution needs, from the rows of a split."""
    if model.value_head is None:
        return {}
    parameters, values = [], []
    model.eval()
    for example in (part for whole in split.queries() for part in whole.parts(accumulate)):
        given = model.given(example)
        hidden = model.hidden(given.tokens, given.values, given.real, given.asked)
        flat = hidden.flatten(0, 1)
        parameters.append(model.value_head(flat[given.number_where].float()))
        values.append(model.head_values(example.number_values, example.number_raw))
    predicted, true = torch.cat(parameters), np.concatenate(values)
    valid = predicted.isfinite().all(dim=1)  # beside a 1e30 that is seen they are NaN
    if not valid.any():
        return {}
    return model.value_head.calibrate(predicted[valid], true[valid.cpu().numpy()])


def _mean(samples: EncodedSplit) -> float | None:
    """Of the targets, or of all numbers where rows have none."""
    values = samples.numbers[samples.targets] if len(samples.targets) else samples.numbers
    finite = np.isfinite(values)
    return float(values.mean(where=finite)) if finite.any() else None
