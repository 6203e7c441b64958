"""Starts the training of a model from the weights of another model.

With ``--init-from``, the other model is a numtok model. With ``--preset hf:FOLDER``, it is a
pretrained model from the transformers library. Text tokens then start from the embeddings of that
model. Number tokens start from random vectors of the same scale or, with ``rows=digits``, from the
mean of their characters' vectors.
"""

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor

from numtok.declaration import settings_in
from numtok.encoding.codec import Codec
from numtok.errors import DataError, UsageError
from numtok.models.embedders.base import INIT
from numtok.models.model import Model
from numtok.models.modes import in_evaluation_mode
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.presets import Preset, TrainingDefaults, preset, shortest
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.models.pretrained.rows import fill_rows
from numtok.models.trunks.base import CachedModule, PretrainedTrunk, TrunkModule
from numtok.registry import name_of, parse_spec, settings_of, spec_of
from numtok.store.artifact import ENCODED, Artifact
from numtok.training.model_files import LoadedModel, read_model
from numtok.training.model_json import TableModelFile, read_model_file

_SHARED = ("scheme", "normalize", "text_tokenizer")  # configuration keys that both models share
#: Prefixes of the weights that a model of labels takes from another model.
_BODY = ("embedder.", "places.", "trunk.")


def read_init(artifact: Artifact, encoded: Artifact, codec: Codec) -> LoadedModel:
    """Read the model given by ``--init-from``.

    Raises UsageError if it is a table model, or if it was trained on data with a different
    encoding.
    """
    file = read_model_file(artifact)
    if isinstance(file, TableModelFile):
        raise UsageError(f"--init-from {artifact.ref} is a table model. Start from a text model")
    init = read_model(artifact, torch.device("cpu"), file)
    if init.codec.digest != codec.digest:
        raise UsageError(
            f"--init-from {init.artifact.ref} was trained on another encoding than {encoded.ref}. "
            f"Encode the data for it: `numtok encode --reuse-encoding {init.artifact.ref}`"
        )
    return init


def default_parts(codec: Codec, init: LoadedModel | None) -> dict[str, str]:
    """Return the default specs of the preset, the embedder and the head.

    They come from the model to start from if there is one, and from the scheme otherwise.
    """
    embedder, head = codec.scheme.parts
    defaults = {"preset": "nano", "embedder": embedder, "head": head}
    of_init = {} if init is None else init.trained.configuration
    return {part: str(of_init.get(part, default)) for part, default in defaults.items()}


def chosen_preset(spec: str, init: LoadedModel | None) -> tuple[Preset, str]:
    """Return the preset with the given spec, and its title in reports.

    If the model to start from has the same pretrained preset, its trunk is reused, because the
    folder of the pretrained model may no longer exist.

    Raises UsageError if the preset and that model have different kinds of trunk.
    """
    if init is None:
        return preset(spec), shortest(spec)
    settings = init.model.settings
    trunk = settings.of_trunk
    if isinstance(trunk, PretrainedTrunk) and spec == init.trained.configuration.get("preset"):
        same = Preset(trunk, settings.head_layers, settings.tied)
        defaults = trunk if isinstance(trunk, TrainingDefaults) else same
        rate = parse_spec(spec, "preset")[2].get("learning_rate", defaults.learning_rate)
        return replace(same, learning_rate=float(rate)), spec
    chosen = preset(spec)
    if name_of(chosen.trunk) != name_of(trunk):
        raise UsageError(
            f"--init-from {init.artifact.ref} has the trunk {name_of(trunk)}, but --preset {spec} "
            f"has {name_of(chosen.trunk)}. Remove --preset to use the preset of that model"
        )
    return chosen, shortest(spec)


def objective_of(spec: str, objective: Objective, init: LoadedModel) -> Objective:
    """Return the objective, adapted to the model to start from.

    The setting ``causal`` of a classification objective is changed to match that model. ``spec`` is
    the spec that ``objective`` was built from.

    Raises UsageError if ``spec`` sets ``causal`` differently, or if the model has no head for the
    objective.
    """
    ref, model = init.artifact.ref, init.model
    if objective.requires() != "label":
        if model.settings.classes:
            raise UsageError(
                f"--init-from {ref} was trained on labels and has no head for --objective {spec}. "
                "Start from a model of numbers, or use --objective classify"
            )
        return objective
    causal = model.objective.causal
    if objective.causal == causal:
        return objective
    can_change = "causal" in settings_in(type(objective))
    if not can_change or "causal" in parse_spec(spec, "objective")[2]:
        kind = "causal" if causal else "not causal"
        raise UsageError(
            f"--objective {spec} cannot be combined with --init-from {ref}, which is {kind} "
            f"({spec_of(model.objective)}). Remove causal from the objective"
        )
    return OBJECTIVES.from_settings(settings_of(objective) | {"causal": causal})


def check_length(longest: int, encoded: Artifact, init: LoadedModel) -> None:
    """Raise DataError if the longest row has more tokens than the model has trained position
    embeddings."""
    settings = init.model.settings
    if init.model.trunk.position_weights() and longest > settings.context:
        raise DataError(
            f"{encoded.ref} has a row of {longest:,} tokens, but --init-from {init.artifact.ref} "
            f"has only {settings.context:,} trained positions. Shorten such rows, or start from a "
            f"model whose preset has context={longest}"
        )


def warm_start_settings(init: LoadedModel) -> dict[str, Any]:
    """Return the configuration and the data of the model to start from, under keys ``init.KEY``.

    The seed is omitted, so that runs that differ only in the seeds of the two models form one
    experiment. The encoding is omitted because both models share it.
    """
    configuration = init.trained.configuration
    of_init: dict[str, Any] = {
        "objective": spec_of(init.model.objective),
        "data": init.artifact.made_from(ENCODED).where,
    }
    of_init |= {key: value for key, value in configuration.items() if key not in _SHARED}
    return {f"init.{key}": value for key, value in of_init.items()}


@torch.no_grad()
def copy_weights(model: Model, init: LoadedModel) -> None:
    """Copy the weights of ``init``, the model to start from, into a new model.

    If the new model predicts labels, only the embedders and the trunk are copied. Raises UsageError
    if the two models do not match.
    """
    labels = bool(model.settings.classes)
    own, source = (
        {
            name: parameter
            for name, parameter in side.named_parameters()
            if not labels or name.startswith(_BODY)
        }
        for side in (model, init.model)
    )
    shapes = [(name, *(_shape(side.get(name)) for side in (own, source))) for name in own | source]
    # Weights come first: the other differences only concern how they are used.
    for name, new, old in [*sorted(shapes), *_used(model, init.model)]:
        if new != old:
            parts = "--preset and --embedder" if labels else "--preset, --embedder and --head"
            old, new = ("missing" if value is None else value for value in (old, new))
            raise UsageError(
                f"--init-from {init.artifact.ref} does not match: its {name} is {old}, but the new "
                f"model's is {new}. Remove {parts} to use those of that model"
            )
    for name in own:
        own[name].copy_(source[name])


def _places(model: Model) -> str | None:
    return None if model.places is None else spec_of(model.places.places)


def _shape(weight: torch.nn.Parameter | None) -> tuple[int, ...] | None:
    return None if weight is None else tuple(weight.shape)


def _used(model: Model, init: Model) -> list[tuple[str, object, object]]:
    """Return the settings that determine how weights are used, as (name, value, value in
    ``init``)."""
    used: list[tuple[str, object, object]] = [
        ("embedder", spec_of(model.embedding), spec_of(init.embedding)),
        ("places", _places(model), _places(init)),
    ]
    if model.head is not None and init.head is not None:
        used.append(("head", spec_of(model.head), spec_of(init.head)))
    new, old = (side.settings.of_trunk.uses() for side in (model, init))
    return [*((key, new[key], old[key]) for key in new), *used]


_LONG, _SHORT = 6, 2  # tokens of the longer and the shorter row of the test inputs
_NEAR = 1e-3  # tolerance for equal hidden states, which are about 1 in size


def check_tokenizer(source: str, trunk: PretrainedTrunk, codec: Codec, encoded: Artifact) -> None:
    """Raise UsageError if the data was not encoded with the tokenizer of the pretrained model.

    source
        Source of the pretrained model, as given in ``--preset hf:SOURCE``.
    """
    from numtok.encoding.text_tokenizers.file import File  # imports their library

    words, rows = len(codec.text.vocabulary()), trunk.words
    if not rows:
        return
    folder = PretrainedFolder.of(source)
    same = words == rows
    if (path := folder.tokenizer()) is not None:
        try:
            settings, text = File.read(path)
        except UsageError as error:
            raise UsageError(f"{folder.shown}: {error}") from None
        same = settings == codec.text_tokenizer or text.state() == codec.text.state()
    if not same or words > rows:
        raise UsageError(
            f"{folder.shown} has its own {rows:,} tokens, but the {words:,} text tokens of "
            f"{encoded.ref} are from another tokenizer. Encode with `--text-tokenizer "
            f"hf:{source}`, or set random=yes in the preset for random weights"
        )


@torch.no_grad()
def copy_pretrained(model: Model, source: str, codec: Codec) -> None:
    """Copy the weights of the pretrained model at ``source`` into a new model.

    Nothing is copied if the preset specifies random weights. Raises UsageError if the weights do
    not fit, if the hidden states of the trunk depend on the wrong tokens or on padding, or if
    decoding with a cache gives different states.
    """
    trunk = cast(PretrainedTrunk, model.settings.of_trunk)
    weights = trunk.weights(source)
    if weights is not None:
        try:
            trunk.begin(model.trunk, weights)
        except ValueError as error:
            raise UsageError(f"--preset hf:{source}: its weights do not fit ({error})") from None
        outputs = weights.vectors if weights.outputs is None else weights.outputs
        tables = [(model.vectors, weights.vectors)]
        if model.outputs is not None and (weights.outputs is not None or trunk.tied):
            tables.insert(0, (model.outputs, outputs))
        for name, own_TD in tables:
            table_VD = model.get_parameter(name)
            fill_rows(table_VD, own_TD, codec, by_digits=trunk.by_digits)
        model.rescale(float(weights.vectors.std(dim=0).mean()) / INIT)
    with in_evaluation_mode(model.trunk):
        _check_sight(model.trunk, model.objective.causal, trunk.width, f"--preset hf:{source}")


def _check_sight(module: TrunkModule, causal: bool, width: int, shown: str) -> None:
    """Raise UsageError if hidden states attend to the wrong tokens, if they depend on padding, or
    if cached decoding differs from a full pass: architectures differ in all of these."""
    random = torch.Generator().manual_seed(0)
    x_BLD = torch.randn(2, _LONG, width, generator=random)
    other_BLD = x_BLD.clone()
    other_BLD[:, -1] = x_BLD[:, -1].flip(1)
    before = _LONG - 1
    try:
        states, changed = module(x_BLD, None), module(other_BLD, None)
        wrong = _near(states[:, :before], changed[:, :before]) is not causal
        real_BL = torch.arange(_LONG) < torch.tensor([[_LONG], [_SHORT]])
        alone, padded = module(x_BLD[1:, :_SHORT], None)[0], module(x_BLD, real_BL)[1, :_SHORT]
        wrong |= not _near(padded, alone)
        if causal and isinstance(module, CachedModule) and not wrong:
            rows, length_B = torch.arange(2), torch.tensor([before, _SHORT])
            cache = module.cache(len(x_BLD), _LONG)
            module.extend(x_BLD[:, :before], cache)
            cache.rewind(length_B, before)
            following = module.extend(x_BLD[rows, length_B][:, None], cache)[:, 0]
            wrong = not _near(following, states[rows, length_B])
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{shown}: its architecture cannot be a trunk ({' '.join(str(error).split())[:200]}). "
            "Use another architecture, such as GPT-2, Llama, Qwen or RoBERTa"
        ) from None
    if wrong:
        kind = "causal" if causal else "masked"
        raise UsageError(
            f"{shown}: its hidden states do not attend as in a {kind} model, depend on padding, or "
            "differ in cached decoding. Use another architecture, such as GPT-2, Llama, Qwen or "
            "RoBERTa"
        )


def _near(states: Tensor, other: Tensor) -> bool:
    return torch.allclose(states, other, rtol=_NEAR, atol=_NEAR)
