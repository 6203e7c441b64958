"""How far a calibrated head is off, target by target.

Training measures one deviation over all numbers of the validation split. Where rows have several
targets, some are told to a thousandth and others hardly at all, and one deviation would be wrong
for each of them.
"""

from collections.abc import Mapping

import numpy as np
import torch

from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_values
from numtok.evaluation.predict import Options, Predictor
from numtok.evaluation.queries import number_names
from numtok.models.heads.base import CalibratedReader, Calibration
from numtok.training.model_files import LoadedModel

_MOST = 2000  # rows: what a deviation is measured on


def target_calibrations(
    loaded: LoadedModel, samples: EncodedSplit, options: Options
) -> Mapping[str, Calibration]:
    """What a calibrated head's distribution needs for each target, by name, from predictions of a
    split that was not learnt; empty for other heads, and where all targets have one name."""
    reader = loaded.model.value_head
    samples = samples.sample(_MOST)
    several = len(set(samples.target_name.to_pylist())) > 1
    if not isinstance(reader, CalibratedReader) or not several:
        return {}
    predictor = Predictor(loaded, samples, options)
    passes = [
        (numbers, predictor.reader.read(steps).parameters)
        for queries in predictor.parts()
        for numbers, steps in predictor.passes(queries)
    ]
    numbers = np.concatenate([one for one, _ in passes])
    parameters = torch.cat([one for _, one in passes if one is not None])
    values = learnt_values(samples, loaded.codec)(numbers)
    learnt = loaded.model.head_values(values, samples.numbers[numbers])
    valid = parameters.isfinite().all(dim=1).cpu().numpy() & ~np.isnan(values)
    names = number_names(samples)[numbers]
    found = {}
    for name in sorted(set(names[valid].tolist())):
        mine = np.flatnonzero(valid & (names == name))
        found[name] = reader.calibrate(parameters[mine], learnt[mine])
    return found
