"""Training a model of texts in its draft: from encoded splits to the files of the model."""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np
import torch

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import FittedNormalizer
from numtok.encoding.schema import TRUNCATED
from numtok.encoding.schemes.base import LimitedScheme, is_exact
from numtok.encoding.splits import learnt_values, longest_of, read_split, splits
from numtok.errors import DataError
from numtok.models.embedders.base import EMBEDDERS, NumberEmbedder
from numtok.models.heads.base import HEADS, Calibration, ExactHead, ValueHead, learns_unit_interval
from numtok.models.model import Model
from numtok.models.number_heads import calibration_of, own_scaling
from numtok.models.objectives.base import Objective
from numtok.models.settings import ModelSettings
from numtok.registry import spec_of
from numtok.store.artifact import Artifact
from numtok.store.draft import Draft
from numtok.training.checkpoint import Finished
from numtok.training.curriculum_sampler import CurriculumSampler
from numtok.training.examples import SplitExamples
from numtok.training.labels import learnt_classes
from numtok.training.loop import Progress, Training, seconds_per_step
from numtok.training.model_files import write_model
from numtok.training.model_json import Trained
from numtok.training.profiler import Cost
from numtok.training.ranks import Ranks
from numtok.training.run import TrainingRun, write_log
from numtok.training.text_plan import TextPlan
from numtok.training.trainer import WHOLE_STEP, Trainer, TrainerState
from numtok.training.warm_start import check_length
from numtok.training.weights import weights_of

VALIDATION = "validation"  # the split that is looked at during training
_CONTEXT = 16  # what a context that is not said is a multiple of: other data are a little longer


def train_texts(
    draft: Draft,
    plan: TextPlan,
    spill: Callable[[], Path],
    note: Callable[[str], None],
    progress: Progress,
) -> tuple[Finished, Sequence[Cost]]:
    """Leave the files of the model in the draft. ``spill`` makes a folder for what is too large for
    memory, ``note`` is told what is left out."""
    config = plan.config
    train, validation = _splits(plan, spill, note)
    unseen = _unseen(plan, note)
    _tell_unsayable(plan, train, note)
    others = _other_splits(plan)
    settings = _settings(plan, train, validation, others)
    _note_longer_rows(settings, train.objective.causal, others, note)
    execution = plan.execution
    ranks = execution.ranks
    run = TrainingRun(draft, TrainerState, plan.device, note, execution.bfloat16, ranks)
    training = Training(
        run,
        train,
        validation,
        lambda: plan.model(settings),
        plan.recipe,
        execution,
        progress,
        config.log,
    )
    costs = training.profile(config.profile) if config.profile else ()
    trainer = training.learn(config.budget)
    looked_at = validation or train
    with trainer.looking() as lookers:
        calibration = _calibration(trainer.model, looked_at, config.accumulate, lookers)
    split = VALIDATION if validation else TRAIN
    trained = Trained(
        configuration=plan.configuration,
        seed=config.seed,
        calibration=calibration,
        calibrated_on=split if calibration else None,
        train_mean=None if train.classes else _mean(train.samples),
        samples=train.row_count(trainer.step),
        tokens=trainer.tokens,
        steps=trainer.step,
        flops=float(WHOLE_STEP * trainer.all_flops()[0]),
    )
    weights = weights_of(trainer.model, keep=ranks.first)
    if ranks.first:
        write_model(draft.path, settings, weights, plan.codec, trained)
        write_log(draft, run.records)
    parameters, _ = trainer.model.parameter_counts()
    learnt = trainer.model.trained_count()
    counts = {
        "rows": len(train.samples),
        "steps": trainer.step,
        "samples": trained.samples,
        "tokens": trainer.tokens,
        "parameters": parameters,
    } | ({"classes": len(train.classes)} if train.classes else {})
    counts |= {"trained": learnt} if learnt < parameters else {}
    counts |= {TRUNCATED: unseen} if unseen else {}
    return Finished(counts, training.timing(trainer)), costs


def pace_texts(
    plan: TextPlan, spill: Callable[[], Path], note: Callable[[str], None], limit: float
) -> float:
    """Seconds a step, measured for about ``limit`` seconds on a model that is thrown away."""
    train, validation = _splits(plan, spill, note)
    settings = _settings(plan, train, validation, _other_splits(plan))
    trainer = Trainer(plan.model(settings), plan.recipe(1 << 30), plan.execution)
    return seconds_per_step(trainer, train, limit, warm=1)


def _settings(
    plan: TextPlan,
    train: SplitExamples,
    validation: SplitExamples | None,
    others: Mapping[str, int],
) -> ModelSettings:
    """Settings of a model that reads the rows of all splits, unless its context is limited."""
    trained = max(one.samples.longest for one in (train, validation) if one is not None)
    context = _context(plan, trained, max([trained, *others.values()]), train.objective.causal)
    return plan.model_settings(context, _scaling(plan, train.samples), train.classes)


def _other_splits(plan: TextPlan) -> dict[str, int]:
    """Number of tokens of the longest row of each split that training does not read."""
    names = splits(plan.encoded).keys() - {TRAIN, VALIDATION}
    return {name: longest_of(plan.encoded, name) for name in sorted(names)}


def _note_longer_rows(
    settings: ModelSettings, causal: bool, others: Mapping[str, int], note: Callable[[str], None]
) -> None:
    """Note the splits that have rows longer than the model will read."""
    context = settings.context - int(causal)
    for name, longest in others.items():
        if longest > context:
            note(
                f"split {name!r} has a row of {longest:,} tokens, this model reads {context:,}. "
                f"Give the preset context={longest + int(causal)}, or evaluate with --on-error skip"
            )


def _unseen(plan: TextPlan, note: Callable[[str], None]) -> int:
    """How many numbers of the data have digits which the embedder does not see; it is noted."""
    count = plan.encoded.manifest.counts.get(TRUNCATED, 0)
    embedding = EMBEDDERS.build(str(plan.config.embedder))
    if not count or not isinstance(embedding, NumberEmbedder) or embedding.sees_all:
        return 0
    scheme = plan.codec.scheme
    assert isinstance(scheme, LimitedScheme)
    note(
        f"{count:,} numbers of {plan.encoded.ref} have more than {scheme.max_digits}, "
        f"and --embedder {plan.config.embedder} sees no further"
    )
    return count


def _tell_unsayable(plan: TextPlan, train: SplitExamples, note: Callable[[str], None]) -> None:
    """Note how many numbers of the train split are too large for a head that learns them as they
    are in the text."""
    head = None if plan.config.head is None else HEADS.build(plan.config.head)
    if not isinstance(head, ValueHead) or learns_unit_interval(head):
        return
    if not isinstance(head, ExactHead) and not is_exact(plan.codec.scheme):
        return  # in float32, which encode has counted
    numbers = train.samples.numbers
    if beyond := int((np.isfinite(numbers) & ~head.representable(numbers)).sum()):
        note(
            f"{beyond:,} of {len(numbers):,} numbers of split {TRAIN!r} are beyond what --head "
            f"{spec_of(head)} says, and are learnt as the nearest that it does"
        )


def _context(plan: TextPlan, trained: int, longest: int, causal: bool) -> int:
    """The most tokens that the model reads: those of the longest row of all splits, unless the
    preset or ``--init`` sets a limit. DataError if rows to train on exceed it."""
    trained, longest = trained + int(causal), longest + int(causal)  # [END] comes first
    chosen = plan.chosen.trunk.context
    if chosen is None:
        return longest  # or more
    context = chosen or -(-longest // _CONTEXT) * _CONTEXT
    if plan.init is not None:
        check_length(trained, plan.encoded, plan.init)
        there = plan.init.model.settings
        if not chosen:
            fixed = plan.init.model.trunk.position_weights()
            context = there.context if fixed else max(longest, there.context)
    if trained > context:
        raise DataError(
            f"{plan.encoded.ref} has a row of {trained:,} tokens, --preset {plan.preset} reads "
            f"{context:,}; give the preset context={trained}"
        )
    return context


def _splits(
    plan: TextPlan, spill: Callable[[], Path], note: Callable[[str], None]
) -> tuple[SplitExamples, SplitExamples | None]:
    """What is learnt and what is looked at, the latter where there is such a split."""
    objective, config = plan.objective, plan.config
    how = plan.codec, objective, config.batch, config.seed
    samples = read_split(plan.encoded, TRAIN, spill=spill)
    if objective.requires() == "label":
        classes = learnt_classes(samples, plan.encoded)
    else:
        classes = ()
        _check_learnable(objective, samples, plan.encoded)
    curriculum = None
    if plan.curriculum is not None and config.steps is not None:
        curriculum = CurriculumSampler(plan.curriculum, samples, config.batch, config.steps)
    train = SplitExamples(samples, *how, classes, curriculum)
    if VALIDATION not in splits(plan.encoded):
        return train, None
    samples = read_split(plan.encoded, VALIDATION, spill=spill)
    if classes and (strange := int((samples.class_of(classes) < 0).sum())):
        note(
            f"{strange:,} of the {len(samples):,} rows of split {VALIDATION!r} have no label, or "
            f"one that split {TRAIN!r} has not; they are not looked at"
        )
        if strange == len(samples):
            return train, None
    return train, SplitExamples(samples, *how, classes)


def _scaling(plan: TextPlan, samples: EncodedSplit) -> FittedNormalizer | None:
    """Return the scaling of a head of the unit interval; None for other heads.

    It is fitted to the encoded numbers of the train split, or taken from the model whose weights
    training begins with, which say numbers by it.
    """
    codec, spec = plan.codec, plan.config.head
    head = None if spec is None else HEADS.build(spec)
    if not isinstance(head, ValueHead) or not learns_unit_interval(head):
        return None
    if plan.init is not None:
        there = plan.init.model.scaling
        assert isinstance(there, FittedNormalizer)  # its head is this one
        return there
    return own_scaling(head, learnt_values(samples, codec)(np.arange(len(samples.numbers))))


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
def _calibration(model: Model, split: SplitExamples, accumulate: int, ranks: Ranks) -> Calibration:
    """What the head's distribution needs, from the rows of a split."""
    if model.value_head is None:
        return {}
    mine = []
    model.eval()
    for whole in split.queries(ranks):
        parameters, values = [], []
        for example in whole.parts(accumulate):
            given = model.given(example)
            parameters.append(model.value_head(given.saying(model.states_of(given)).float()))
            values.append(model.head_values(example.number_values, example.number_raw))
        mine.append((torch.cat(parameters), np.concatenate(values)))
    # In the order of the batches, which the ranks had in turn.
    turns = zip_longest(*ranks.gathered(mine))
    batches = [batch for turn in turns for batch in turn if batch is not None]
    predicted = torch.cat([parameters for parameters, _ in batches])
    true = np.concatenate([values for _, values in batches])
    return calibration_of(model.value_head, predicted, true)


def _mean(samples: EncodedSplit) -> float | None:
    """Of the targets, or of all numbers where rows have none."""
    values = samples.numbers[samples.targets] if len(samples.targets) else samples.numbers
    finite = np.isfinite(values)
    return float(values.mean(where=finite)) if finite.any() else None
