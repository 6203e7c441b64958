"""A model that starts from the weights of another numtok model (``--init-from``), or of a
pretrained one (``--preset hf:FOLDER``): then text tokens start from its vectors, and numbers are
drawn at their scale.
"""

from dataclasses import replace
from typing import Any, cast

import torch

from numtok.declaration import settings_in
from numtok.encoding.codec import Codec
from numtok.errors import DataError, UsageError
from numtok.models.embedders.base import EMBEDDERS, INIT
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES, Objective
from numtok.models.places.base import PLACES
from numtok.models.presets import Preset, TrainingDefaults, preset, shortest
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.models.pretrained.rows import fill_rows
from numtok.models.trunks.base import CachedModule, PretrainedTrunk, TrunkModule
from numtok.registry import name_of, parse_spec, settings_of, spec_of
from numtok.store.artifact import ENCODED, Artifact
from numtok.training.model_files import LoadedModel, read_model
from numtok.training.model_json import TableModelFile, read_model_file

_SHARED = ("scheme", "normalize", "text_tokenizer")  # of a configuration
#: What the names of the weights begin with that a model of labels begins with.
_BODY = ("embedder.", "places.", "trunk.")


def read_init(found: Artifact, encoded: Artifact, codec: Codec) -> LoadedModel:
    """Read the model to start from; UsageError for a model of tables, or of another encoding."""
    file = read_model_file(found)
    if isinstance(file, TableModelFile):
        raise UsageError(f"--init-from {found.ref} is a model of tables; begin with one of texts")
    init = read_model(found, torch.device("cpu"), file)
    if init.codec.digest != codec.digest:
        raise UsageError(
            f"--init-from {init.artifact.ref} was trained on another encoding than "
            f"{encoded.ref}; `numtok encode --reuse-encoding {init.artifact.ref}` encodes data "
            "for it"
        )
    return init


def usual_parts(codec: Codec, init: LoadedModel | None) -> dict[str, str]:
    """What preset, embedder and head are unless they are said: those of the model begun with."""
    embedder, head = codec.scheme.parts
    own = {"preset": "nano", "embedder": embedder, "head": head}
    there = {} if init is None else init.trained.configuration
    return {part: str(there.get(part, usual)) for part, usual in own.items()}


def chosen_preset(spec: str, init: LoadedModel | None) -> tuple[Preset, str]:
    """The preset ``spec``, and what people know it by. Where that is what the model begun with is
    known by, its own: the folder of a pretrained trunk need not be there any more.

    Raises UsageError where the preset is of another kind of trunk than that of the model.
    """
    if init is None:
        return preset(spec), shortest(spec)
    settings = init.model.settings
    there = settings.of_trunk
    if isinstance(there, PretrainedTrunk) and spec == init.trained.configuration.get("preset"):
        made = Preset(there, settings.head_layers, settings.tied)
        usual = there.learning_rate if isinstance(there, TrainingDefaults) else made.learning_rate
        rate = parse_spec(spec, "preset")[2].get("learning_rate", usual)
        return replace(made, learning_rate=float(rate)), spec
    chosen = preset(spec)
    if name_of(chosen.trunk) != name_of(there):
        raise UsageError(
            f"--init-from {init.artifact.ref} has the trunk {name_of(there)}, --preset {spec} "
            f"{name_of(chosen.trunk)}; leave --preset out: it is that model's"
        )
    return chosen, shortest(spec)


def objective_of(spec: str, made: Objective, init: LoadedModel) -> Objective:
    """The objective ``spec``, built, for a model that begins with another one's weights: one of
    labels looks as that model does.

    Raises UsageError where it is said to look otherwise, and where there are no heads to go on
    with.
    """
    ref, there = init.artifact.ref, init.model
    if made.requires() != "label":
        if there.settings.classes:
            raise UsageError(
                f"--init-from {ref} was trained for labels, it has no head that --objective {spec} "
                "could go on with; begin with a model of numbers, or give --objective classify"
            )
        return made
    causal = there.objective.causal
    if made.causal == causal:
        return made
    can_change = "causal" in settings_in(type(made))
    if not can_change or "causal" in parse_spec(spec, "objective")[2]:
        looks = "sees the earlier tokens alone" if causal else "sees all tokens"
        raise UsageError(
            f"--objective {spec} does not go with --init-from {ref}, where each place {looks} "
            f"({spec_of(there.objective)}); leave causal out"
        )
    return OBJECTIVES.from_settings(settings_of(made) | {"causal": causal})


def check_length(longest: int, encoded: Artifact, init: LoadedModel) -> None:
    """Raise DataError where the longest row has more tokens than the model has learnt places."""
    settings = init.model.settings
    if init.model.trunk.position_weights() and longest > settings.context:
        raise DataError(
            f"{encoded.ref} has a row of {longest:,} tokens, and --init-from {init.artifact.ref} "
            "has "
            f"learnt {settings.context:,} places; shorten such rows, or begin with a model whose "
            f"preset has context={longest}"
        )


def warm_start_settings(init: LoadedModel) -> dict[str, Any]:
    """What a model is that another one begins with, but for its seed: its configuration and what it
    learnt from, ``init.`` before each key. So seeds of both are seeds of one experiment. What it
    must share with the other, the encoding, is left out."""
    configuration = init.trained.configuration
    of_init: dict[str, Any] = {
        "objective": spec_of(init.model.objective),
        "data": init.artifact.made_from(ENCODED).where,
    }
    of_init |= {key: value for key, value in configuration.items() if key not in _SHARED}
    return {f"init.{key}": value for key, value in of_init.items()}


@torch.no_grad()
def begin_with(model: Model, init: LoadedModel) -> None:
    """Copy the weights of a model: all of them, or embedder and trunk where labels are said.

    Raises UsageError where the two do not agree.
    """
    labels = bool(model.settings.classes)
    own, others = (
        {
            name: parameter
            for name, parameter in one.named_parameters()
            if not labels or name.startswith(_BODY)
        }
        for one in (model, init.model)
    )
    shapes = [(name, *(_shape(of.get(name)) for of in (own, others))) for name in own | others]
    # What has no weights of its own comes after them: it only says how they are used.
    for name, here, there in [*sorted(shapes), *_used(model, init.model)]:
        if here != there:
            parts = "--preset and --embedder" if labels else "--preset, --embedder and --head"
            there, here = ("not there" if one is None else one for one in (there, here))
            raise UsageError(
                f"--init-from {init.artifact.ref} has another shape: its {name} is {there}, here "
                "it is "
                f"{here}; leave {parts} out: they are that model's"
            )
    for name in own:
        own[name].copy_(others[name])


def _embedder(model: Model) -> str:
    return spec_of(EMBEDDERS.from_settings(model.settings.embedder))


def _places(model: Model) -> str | None:
    settings = model.settings.places
    return None if settings is None else spec_of(PLACES.from_settings(settings))


def _shape(weight: torch.nn.Parameter | None) -> tuple[int, ...] | None:
    return None if weight is None else tuple(weight.shape)


def _used(model: Model, init: Model) -> list[tuple[str, object, object]]:
    """Of both what says how weights are used: name, here, there."""
    used: list[tuple[str, object, object]] = [
        ("embedder", _embedder(model), _embedder(init)),
        ("places", _places(model), _places(init)),
    ]
    if model.head is not None and init.head is not None:
        used.append(("head", spec_of(model.head), spec_of(init.head)))
    here, there = (one.settings.of_trunk.uses() for one in (model, init))
    return [*((what, here[what], there[what]) for what in here), *used]


_LOOK = 6  # tokens of the rows by which a trunk shows what it sees
_NEAR = 1e-3  # states that are the same: of a size of about 1


def check_tokenizer(source: str, trunk: PretrainedTrunk, codec: Codec, encoded: Artifact) -> None:
    """Raise UsageError where the text of the data is not in the tokens of the model there."""
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
            f"{folder.shown} has {rows:,} tokens of its own, and the {words:,} of the text of "
            f"{encoded.ref} are of another tokenizer; encode the data with `--text-tokenizer "
            f"hf:{source}`, or give the preset random=yes for drawn weights"
        )


@torch.no_grad()
def begin_pretrained(model: Model, source: str, codec: Codec) -> None:
    """Give a new model the weights of the pretrained one that lies at ``source``, but for those
    that are to be drawn.

    Raises UsageError where they are not all there, or its trunk does not do what it should.
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
    _check_sight(model.trunk, model.objective.causal, trunk.width, f"--preset hf:{source}")


def _check_sight(module: TrunkModule, causal: bool, width: int, shown: str) -> None:
    """Raise UsageError for a trunk whose states see other tokens than they should, or which goes on
    from its cache in another way than it reads a row: architectures differ in both."""
    random = torch.Generator().manual_seed(0)
    x_BLD = torch.randn(2, _LOOK, width, generator=random)
    other_BLD = x_BLD.clone()
    other_BLD[:, -1] = x_BLD[:, -1].flip(1)
    before, training = _LOOK - 1, module.training
    module.eval()
    try:
        states, others = module(x_BLD, None), module(other_BLD, None)
        wrong = torch.allclose(states[:, :before], others[:, :before], atol=_NEAR) is not causal
        if causal and isinstance(module, CachedModule) and not wrong:
            cache = module.cache(len(x_BLD), _LOOK)
            module.extend(x_BLD[:, :before], cache)
            cache.rewind(torch.full((len(x_BLD),), before), before)
            last = module.extend(x_BLD[:, before:], cache)
            wrong = not torch.allclose(last, states[:, before:], rtol=_NEAR, atol=_NEAR)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{shown}: its architecture cannot be a trunk ({' '.join(str(error).split())[:200]}); "
            "give a model of another one, such as GPT-2, Llama, Qwen or RoBERTa"
        ) from None
    finally:
        module.train(training)
    if wrong:
        kind = "causal" if causal else "masked"
        raise UsageError(
            f"{shown}: its states see other tokens than those of a {kind} model, or it goes on "
            "from what it has read in another way; give a model of another architecture, such as "
            "GPT-2, Llama, Qwen or RoBERTa"
        )
