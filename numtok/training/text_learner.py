"""Trains a text model on encoded splits and writes the model's files to a draft.

A draft is an artifact that is not yet published (:class:`numtok.store.draft.Draft`).
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import torch

from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.normalizers.base import FittedNormalizer, Moments, splits_answers
from numtok.encoding.schema import TRUNCATED
from numtok.encoding.schemes.base import is_exact, scales_values
from numtok.encoding.splits import learnt_values, longest_of, read_split, splits
from numtok.errors import DataError
from numtok.models.embedders.base import NumberModule
from numtok.models.heads.base import CalibratedReader, Calibration, ValueHead, learns_unit_interval
from numtok.models.meta import without_memory
from numtok.models.model import Model
from numtok.models.number_heads import calibration_of, own_scaling
from numtok.models.objectives.base import Objective
from numtok.models.settings import ModelSettings
from numtok.models.vocabulary import Vocabulary
from numtok.names import counted
from numtok.registry import spec_of
from numtok.row import in_order
from numtok.store.artifact import Artifact
from numtok.store.draft import Draft
from numtok.training.checkpoint import Finished
from numtok.training.curriculum import CurriculumSampler
from numtok.training.examples import SplitExamples
from numtok.training.loop import ENDLESS, Cost, Progress, Training, new_trainer, seconds_per_step
from numtok.training.model_files import write_model
from numtok.training.model_json import Trained
from numtok.training.ranks import Ranks
from numtok.training.resolved_texts import ResolvedTexts
from numtok.training.run import TrainingRun, write_log
from numtok.training.trainer import WHOLE_STEP, Trainer, TrainerState
from numtok.training.warm_start import check_length
from numtok.training.weights import weights_of

VALIDATION = "validation"  # the split that validation runs on during training
Spool = Callable[[], AbstractContextManager[Path]]
Note = Callable[[str], None]
_FEW, _TIMES = 100, 2  # more than _FEW labels must occur _TIMES each, on average
#: Normalized values with a smaller standard deviation leave a loss of at most 1e-4 to learn.
_SMALL_SPREAD = 0.01
_CONTEXT = 16  # default contexts are a multiple of this: other data may have slightly longer rows


def train_texts(
    draft: Draft, resolved: ResolvedTexts, spool: Spool, note: Note, progress: Progress
) -> tuple[Finished, Sequence[Cost]]:
    """Train a text model and write the model's files to the draft.

    spool
        Function that returns a context manager for a temporary folder, for data too large for
        memory.
    note
        Function that prints a note to the user.
    progress
        Function that is called with the progress of training.

    Returns the counts and timing of the model and, if ``--trace`` is set, the costliest operations
    of a training step.
    """
    with ExitStack() as spools:
        train, validation = _splits(resolved, lambda: spools.enter_context(spool()), note)
        unseen = _unseen(resolved, note)
        _note_out_of_range(resolved, train, note)
        _note_small_spread(resolved, train.samples, note)
        lengths = _other_splits(resolved)
        settings = _settings(resolved, train, validation, lengths)
        _note_longer_rows(settings, train.objective.causal, lengths, note)
        training = Training(
            resolved=resolved,
            settings=settings,
            run=TrainingRun(
                draft=draft, plain=TrainerState, execution=resolved.execution, note=note
            ),
            train=train,
            validation=validation,
            progress=progress,
        )
        profile = resolved.config.profile
        costs = training.profile(profile) if profile else ()
        trainer = training.learn()
        trained = _trained(training, trainer)
        weights = weights_of(trainer.model, keep=resolved.execution.ranks.first)
        if resolved.execution.ranks.first:
            write_model(draft.path, settings, weights, resolved.codec, trained)
            write_log(draft, training.run.records)
        counts = _counts(train, trainer) | ({TRUNCATED: unseen} if unseen else {})
        return Finished(counts, training.timing(trainer)), costs


def pace_texts(resolved: ResolvedTexts, spool: Spool, note: Note, limit: float) -> float:
    """Return the seconds per training step, measured over about ``limit`` seconds.

    The model that is trained for the measurement is discarded.
    """
    with ExitStack() as spools:
        train, validation = _splits(resolved, lambda: spools.enter_context(spool()), note)
        settings = _settings(resolved, train, validation, _other_splits(resolved))
        trainer = new_trainer(resolved, settings, ENDLESS)
        return seconds_per_step(trainer, train, limit, warm=1)


def _trained(training: Training, trainer: Trainer) -> Trained:
    """Measure the calibration and return the record of training."""
    resolved, train = training.resolved, training.train
    config = resolved.config
    with trainer.inference() as ranks:
        split = training.validation or train
        calibration = _calibration(trainer.model, split, config.accumulate, ranks)
    name = VALIDATION if training.validation else TRAIN
    return Trained(
        configuration=resolved.configuration,
        seed=config.seed,
        calibration=calibration,
        calibrated_on=name if calibration else None,
        train_mean=None if train.classes else _mean(train.samples),
        samples=train.row_count(trainer.step),
        tokens=trainer.tokens,
        steps=trainer.step,
        flops=float(WHOLE_STEP * trainer.all_flops()[0]),
    )


def _counts(train: SplitExamples, trainer: Trainer) -> dict[str, int]:
    parameters, _ = trainer.model.parameter_counts()
    trained = trainer.model.trained_count()
    counts = {
        "rows": len(train.samples),
        "steps": trainer.step,
        "samples": train.row_count(trainer.step),
        "tokens": trainer.tokens,
        "parameters": parameters,
    } | ({"classes": len(train.classes)} if train.classes else {})
    return counts | ({"trained": trained} if trained < parameters else {})


def _settings(
    resolved: ResolvedTexts,
    train: SplitExamples,
    validation: SplitExamples | None,
    lengths: Mapping[str, int],
) -> ModelSettings:
    """Return settings for the rows of all splits, unless the context is limited.

    ``lengths`` are the longest rows of the splits that training does not read.
    """
    trained = max(split.samples.longest for split in (train, validation) if split is not None)
    context = _context(resolved, trained, max([trained, *lengths.values()]), train.objective.causal)
    return resolved.model_settings(context, _scaling(resolved, train.samples), train.classes)


def _other_splits(resolved: ResolvedTexts) -> dict[str, int]:
    """Return the length of the longest row, in tokens, of each split that training does not
    read."""
    names = splits(resolved.data).keys() - {TRAIN, VALIDATION}
    return {name: longest_of(resolved.data, name) for name in sorted(names)}


def _note_longer_rows(
    settings: ModelSettings, causal: bool, lengths: Mapping[str, int], note: Note
) -> None:
    """Note the splits that have rows longer than the model will read."""
    context = settings.context - int(causal)
    for name, longest in lengths.items():
        if longest > context:
            note(
                f"split {name!r} has a row of {longest:,} tokens, but this model reads "
                f"{context:,}. Set context={longest + int(causal)} in the preset, or evaluate with "
                "--on-error skip"
            )


def _unseen(resolved: ResolvedTexts, note: Note) -> int:
    """Return the number of numbers that have more digits than the embedder reads, and print a
    note."""
    count = resolved.data.manifest.counts.get(TRUNCATED, 0)
    if not count:
        return 0
    with without_memory():
        module = resolved.embedder.build(Vocabulary.of(resolved.codec), resolved.preset.trunk.width)
    if not isinstance(module, NumberModule) or module.sees_all:
        return 0
    limit = resolved.codec.scheme.defaults.embedder_digits
    note(
        f"--embedder {spec_of(resolved.embedder)} reads at most {limit}, fewer than "
        f"{counted(count, 'number')} of {resolved.data.ref} have"
    )
    return count


def _note_out_of_range(resolved: ResolvedTexts, train: SplitExamples, note: Note) -> None:
    """Note how many numbers of the train split a head without normalization cannot represent."""
    head = resolved.head
    if not isinstance(head, ValueHead) or learns_unit_interval(head):
        return
    if not head.exact and not is_exact(resolved.codec.scheme):
        return  # numbers in float32: encode has counted them
    numbers = train.samples.numbers
    if beyond := int((np.isfinite(numbers) & ~head.representable(numbers)).sum()):
        note(
            f"{beyond:,} of {len(numbers):,} numbers of split {TRAIN!r} are out of range for "
            f"--head {spec_of(head)}; training uses the nearest representable value"
        )


def _note_small_spread(resolved: ResolvedTexts, train: EncodedSplit, note: Note) -> None:
    """Note the target whose normalized values vary least, if this is so little that the loss of a
    value head is small from the start, and separate constants for answers would help."""
    codec, normalizer = resolved.codec, resolved.codec.normalizer
    if not scales_values(codec.scheme) or splits_answers(normalizer.normalizer):
        return
    if not len(train.targets) or not train.in_answer[train.targets].all():
        return
    values = normalizer.forward(train.numbers[train.targets])
    coded: Any = train.target_name.dictionary_encode()
    codes, spreads = coded.indices.to_numpy(), {}
    for code, name in enumerate(coded.dictionary.to_pylist()):
        moments = Moments.of(values[codes == code])
        if moments.count and moments.deviation > 0:
            spreads[name] = moments.deviation
    name, spread = min(spreads.items(), key=lambda item: item[1], default=("", np.inf))
    if spread < _SMALL_SPREAD:
        note(
            f"after --normalize {spec_of(normalizer.normalizer)}, the standard deviation of target "
            f"{name!r} is only {spread:.1g}, so the model barely sees its changes. Give targets "
            "constants of their own: encode with --normalize affine,by=answer"
        )


def _context(resolved: ResolvedTexts, trained: int, longest: int, causal: bool) -> int:
    """Return the maximum number of tokens per row: the longest row of all splits, unless the preset
    or ``--init-from`` sets a limit.

    Raises DataError if rows to train on are longer.
    """
    trained, longest = trained + int(causal), longest + int(causal)  # [END] comes first
    chosen = resolved.preset.trunk.context
    if chosen is None:
        return longest  # the trunk has no limit
    context = chosen or -(-longest // _CONTEXT) * _CONTEXT
    if resolved.init is not None:
        check_length(trained, resolved.data, resolved.init)
        of_init = resolved.init.model.settings
        if not chosen:
            fixed = resolved.init.model.trunk.position_weights()
            context = of_init.context if fixed else max(longest, of_init.context)
    if trained > context:
        raise DataError(
            f"{resolved.data.ref} has a row of {trained:,} tokens, but --preset {resolved.spec} "
            f"reads {context:,}. Set context={trained} in the preset"
        )
    return context


def _splits(
    resolved: ResolvedTexts, spill: Callable[[], Path], note: Note
) -> tuple[SplitExamples, SplitExamples | None]:
    """Return the examples to train on, and those to validate with if there is such a split."""
    objective, config, encoded = resolved.objective, resolved.config, resolved.data
    how = resolved.codec, objective, config.batch, config.seed
    samples = read_split(encoded, TRAIN, spill=spill)
    if objective.requires() == "label":
        classes = _classes(samples, encoded)
    else:
        classes = ()
        _check_learnable(objective, samples, encoded)
    curriculum = None
    if resolved.curriculum is not None and config.steps is not None:
        curriculum = CurriculumSampler(resolved.curriculum, samples, config.batch, config.steps)
    train = SplitExamples(samples, *how, classes, curriculum)
    if VALIDATION not in splits(encoded):
        return train, None
    samples = read_split(encoded, VALIDATION, spill=spill)
    if classes and (unusable := int((samples.class_of(classes) < 0).sum())):
        note(
            f"validation skips {unusable:,} of the {len(samples):,} rows of split {VALIDATION!r}: "
            f"they have no label, or one that split {TRAIN!r} lacks"
        )
        if unusable == len(samples):
            return train, None
    return train, SplitExamples(samples, *how, classes)


def _scaling(resolved: ResolvedTexts, samples: EncodedSplit) -> FittedNormalizer | None:
    """Return the scaling of a head that predicts in the unit interval; None for other heads.

    It is fitted to the encoded numbers of the train split, or taken from the model of
    ``--init-from``.
    """
    codec, head = resolved.codec, resolved.head
    if not isinstance(head, ValueHead) or not learns_unit_interval(head):
        return None
    if resolved.init is not None:
        scaling = resolved.init.model.scaling
        assert isinstance(scaling, FittedNormalizer)  # both models have the same head
        return scaling
    return own_scaling(head, learnt_values(samples, codec)(np.arange(len(samples.numbers))))


def _check_learnable(objective: Objective, samples: EncodedSplit, encoded: Artifact) -> None:
    """Raise DataError if some rows lack what the objective requires."""
    wanted = objective.requires()
    complete = {
        None: True,
        "targets": len(np.unique(samples.target_row)) == len(samples),
        "answer_start": bool((samples.answer_start >= 0).all()),
    }
    if not complete[wanted]:
        raise DataError(
            f"--objective {spec_of(objective)} needs {wanted} in every row, but {encoded.ref} has "
            f"rows without. Encode data with {wanted}, or use another --objective"
        )


@torch.no_grad()
def _calibration(model: Model, split: SplitExamples, accumulate: int, ranks: Ranks) -> Calibration:
    """Measure the constants of the head's distribution on the rows of a split."""
    if not isinstance(model.value_head, CalibratedReader):
        return {}
    measured = []
    model.eval()
    for whole in split.queries(ranks):
        parameters, values = [], []
        for example in whole.parts(accumulate):
            inputs = model.given(example)
            states = inputs.predicting_numbers(model.states_of(inputs))
            parameters.append(model.value_head(states.float()))
            values.append(model.head_values(example.number_values, example.number_raw))
        # On the host, because the ranks have different devices.
        measured.append((torch.cat(parameters).cpu(), np.concatenate(values)))
    # Restore the order of the batches, at which the ranks took turns.
    turns = zip_longest(*ranks.gathered(measured))
    batches = [batch for turn in turns for batch in turn if batch is not None]
    predicted = torch.cat([parameters for parameters, _ in batches])
    true = np.concatenate([values for _, values in batches])
    return calibration_of(model.value_head, predicted, true)


def _mean(samples: EncodedSplit) -> float | None:
    """Return the mean of the finite targets, or of all numbers if there are no targets; None if
    none is finite."""
    values = samples.numbers[samples.targets] if len(samples.targets) else samples.numbers
    finite = np.isfinite(values)
    return float(values.mean(where=finite)) if finite.any() else None


def _classes(train: EncodedSplit, encoded: Artifact) -> tuple[str, ...]:
    """Return the labels of a train split, in the order of :func:`in_order`.

    Raises DataError if a row has no label, if all rows have the same one, and if many labels are
    rare, as with ids or free text.
    """
    where = f"split {TRAIN!r} of {encoded.ref}"
    if lacking := train.labels.null_count:
        raise DataError(
            f"--objective classify needs a label in every row, but {lacking:,} of the "
            f"{len(train):,} rows of {where} have none. Encode data with labels, or use another "
            "--objective"
        )
    classes = in_order(pc.unique(train.labels).to_pylist())
    if len(classes) < 2:
        raise DataError(
            f"--objective classify needs at least two labels, but all rows of {where} have "
            f"{classes[0]!r}. Encode data with more labels, or use another --objective"
        )
    if len(classes) > _FEW and len(classes) * _TIMES > len(train):
        raise DataError(
            f"--objective classify needs labels that repeat, but {where} has {len(classes):,} in "
            f"{len(train):,} rows, such as {classes[0]!r}. Encode data whose label is a class, or "
            "use another --objective"
        )
    return classes
