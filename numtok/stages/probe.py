"""probe: measures how a model responds to the numbers in its input.

A probe can show, for example, whether a model is continuous, or predicts only values from the
training data (xVal, Sections 2.1 and 3.3). Each kind of probe is a class in
``analysis/probing/probes``.
"""

import time
from dataclasses import replace

from numtok.analysis.probing.probe_records import PROBE, Probe, publish
from numtok.analysis.probing.probes.base import PROBES, ProbeInputs
from numtok.encoding.schemes.base import title_of
from numtok.encoding.stored_codec import check_codec
from numtok.errors import UsageError, meaningless
from numtok.evaluation.devices import devices
from numtok.evaluation.scoring import Progress
from numtok.registry import name_of
from numtok.setting_words import command_line
from numtok.settings.probe import Config as Config
from numtok.store.artifact import ENCODED, MODEL, Artifact, MadeArtifact
from numtok.store.store import Store
from numtok.training.device import device_of
from numtok.training.model_files import read_model
from numtok.training.model_json import TableModelFile, read_model_file


def run(config: Config, store: Store, progress: Progress) -> MadeArtifact:
    """Probe a model, or return the existing probe.

    Raises UsageError (including when the data and the model have different encodings), DataError,
    StoreError and TrainingFailed.
    """
    kind = PROBES.build(config.kind, config.options)
    model = store.resolve(config.model, kinds={MODEL})
    file = read_model_file(model)
    if isinstance(file, TableModelFile):
        raise UsageError(
            f"probes only apply to text models; {model.ref} is a table model. To see its "
            "predictions: `numtok eval`, then `numtok figure curve`"
        )
    data = None if config.data is None else store.resolve(config.data, kinds={ENCODED})
    device = device_of(config.device)
    if config.devices != "1" and not kind.reads_rows:
        raise meaningless("devices", f"probe {name_of(kind)}, which reads no rows")
    kind.check(model, data)
    if data is not None:
        check_codec(model, data)
    parents = [artifact.as_parent() for artifact in (model, data) if artifact is not None]
    form, name = name_of(kind), config.name or f"{model.name}-{kind.suffix}"
    settings = {"stage": "probe", "revision": kind.revision, "form": form, "device": device.type}
    again = replace(
        config,
        kind=form,
        model=model.ref,
        data=None if data is None else data.ref,
        device=device.type,
    )
    command = ["numtok", "probe", *command_line(again), *command_line(kind)]
    with store.draft(
        PROBE, name, {**settings, **kind.stored}, parents=parents, command=command, how=config
    ) as draft:
        if isinstance(draft, Artifact):
            return MadeArtifact(draft, made=False)
        started = time.monotonic()
        with devices(config.devices, device) as pool:
            loaded = read_model(model, device, file)
            inputs = ProbeInputs(
                loaded=loaded,
                data=data,
                find=store.find,
                progress=progress,
                note=store.note,
                devices=pool,
            )
            result = kind.run(inputs)
        probe = Probe(
            model=model.ref,
            name=model.name,
            scheme=title_of(loaded.codec.scheme),
            configuration=loaded.trained.configuration,
            seed=loaded.trained.seed,
            form=form,
            found=result.found,
            notes=result.notes,
        )
        timing = {"seconds": time.monotonic() - started, "devices": pool.count}
        return MadeArtifact(publish(draft, probe, result.points, result.seen, timing), made=True)
