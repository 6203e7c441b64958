"""Pretrained trunks: their states match those of transformers, and other models are rejected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from numtok.contracts import results
from numtok.errors import UsageError
from numtok.models.presets import preset, shortest
from numtok.models.pretrained.architecture import canonical, facts
from numtok.models.trunks import _contract as contract
from numtok.models.trunks.base import CachedModule, PretrainedTrunk, stored_trunk
from numtok.registry import settings_of
from tests import fakemodels
from tests.fakemodels import real, states
from tests.fakepretrained import KINDS, pretrained
from tests.messages import Says

transformers = pytest.importorskip("transformers", reason="the extra numtok[hf] is not installed")
pytestmark = pytest.mark.integration
one_thread = fakemodels.one_thread
#: Each takes a second: added positions, rotary positions, and a masked model.
OFTEN = ("gpt2", "llama", "bert")
ARCHITECTURES = [
    pytest.param(kind, marks=() if kind in OFTEN else pytest.mark.slow) for kind in KINDS
]
CAUSAL = [kind for kind in KINDS if "Masked" not in KINDS[kind][1]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def vectors(*size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(1))


def trunk(spec: str) -> PretrainedTrunk:
    return cast(PretrainedTrunk, preset(spec).trunk)


def built(spec: str) -> CachedModule:
    """Return a trunk with the weights of the folder that the preset names."""
    of, source = trunk(spec), spec.removeprefix("hf:").partition(",")[0]
    weights = of.weights(source)
    assert weights is not None
    module = of.build(of.sight == "earlier").eval()
    of.begin(module, weights)
    return cast(CachedModule, module)


@pytest.mark.parametrize("kind", ARCHITECTURES)
@torch.no_grad()
def test_states_are_those_of_transformers(kind: str, here: Path) -> None:
    whole = pretrained(kind, here / "model")
    words = whole.get_input_embeddings()
    ids = torch.randint(1, words.num_embeddings, (3, 9))
    mask = real([9, 4, 1], 9)
    expected = whole.base_model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
    weights = trunk("hf:model").weights("model")
    assert weights is not None
    assert torch.equal(weights.vectors[ids], words(ids))
    found = states(built("hf:model"), weights.vectors[ids], mask)
    torch.testing.assert_close(found[mask], expected[mask], rtol=0, atol=1e-5)
    outputs = weights.vectors if weights.outputs is None else weights.outputs
    assert torch.equal(outputs, whole.get_output_embeddings().weight)


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_architecture_keeps_the_contract_of_trunks(kind: str, here: Path) -> None:
    pretrained(kind, here / "model")
    of = trunk("hf:model")
    checks = {key: check for key, check in contract.CHECKS.items() if key != "declarations"}
    assert [one.message for one in results(checks, of, 0) if not one.passed] == []
    assert stored_trunk(json.loads(json.dumps(settings_of(of)))) == of


@pytest.mark.parametrize("tune", ["full", "lora", "heads"])
@torch.no_grad()
def test_a_cache_goes_on_as_if_all_were_read_again(tune: str, here: Path) -> None:
    for kind in CAUSAL:
        pretrained(kind, here / kind)
        of, x, length = built(f"hf:{kind},tune={tune}"), vectors(3, 12, 32), torch.tensor([5, 3, 1])
        whole, cache = states(of, x), of.cache(3, 10)
        states_of_some = of.extend(x[:, :5], cache, torch.tensor([[4], [2], [0]]))
        cache.rewind(length, 5)
        expected = whole[torch.arange(3), length - 1]
        torch.testing.assert_close(states_of_some[:, 0], expected, rtol=1e-4, atol=1e-4)
        for step in range(5):
            at = length + step
            found = of.extend(x[torch.arange(3), at][:, None], cache)[:, 0]
            expected = whole[torch.arange(3), at]
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_what_is_known_before_weights_are_read(here: Path) -> None:
    known = {}
    for kind in KINDS:
        pretrained(kind, here / kind)
        of = preset(f"hf:{kind}")
        known[kind] = (of.trunk.context, of.trunk.sight, of.trunk.length_is_lost is None, of.tied)
    assert known == {
        "gpt2": (64, "earlier", True, True),
        "llama": (64, "earlier", False, False),
        "mistral": (24, "earlier", False, False),
        "qwen2": (32768, "earlier", False, True),
        "gemma3_text": (4096, "earlier", False, False),  # scales its embeddings
        "opt": (2048, "earlier", True, True),
        "bert": (512, "all", True, True),
        "roberta": (65, "all", True, True),  # position 0 is reserved for padding
        "distilbert": (512, "all", True, True),
    }
    learned = {kind: built(f"hf:{kind}").position_weights() > 0 for kind in ("gpt2", "llama")}
    assert learned == {"gpt2": True, "llama": False}


def test_settings_hold_the_content_and_no_path(here: Path) -> None:
    pretrained("gpt2", here / "one")
    pretrained("gpt2", here / "two")
    pretrained("gpt2", here / "other", seed=1)
    one, two, other = (preset(f"hf:{name}").settings() for name in ("one", "two", "other"))
    assert one == two != other
    assert str(here) not in json.dumps(one) and "transformers_version" not in json.dumps(one)
    assert shortest("hf:one,tune=lora") == f"hf:gpt2-{str(one['sha256'])[:8]},tune=lora"
    assert shortest("hf:one,random=yes,tied=no") == "hf:gpt2-random,random=yes,tied=no"


def test_shards_are_read_as_one_file_is(here: Path) -> None:
    whole = pretrained("gpt2", here / "model")
    whole.save_pretrained(here / "shards", max_shard_size="60KB")
    assert len([*(here / "shards").glob("*.safetensors")]) > 1
    one, two = (trunk(f"hf:{name}").weights(name) for name in ("model", "shards"))
    assert one is not None and two is not None
    assert one.trunk.keys() == two.trunk.keys()
    assert all(torch.equal(tensor, two.trunk[name]) for name, tensor in one.trunk.items())


def test_matrices_of_lora_are_a_small_share(here: Path) -> None:
    pytest.importorskip("peft")
    pretrained("gpt2", here / "model", hidden_size=256, num_hidden_layers=4)
    of = built("hf:model,tune=lora")
    learnt = sum(one.numel() for one in of.parameters() if one.requires_grad)
    assert 0 < learnt < 0.02 * sum(one.numel() for one in of.parameters())
    x = vectors(2, 7, 256)
    assert torch.equal(states(of, x), states(built("hf:model"), x))
    assert not any(one.requires_grad for one in built("hf:model,tune=heads").parameters())


@torch.no_grad()
def test_the_first_norm_is_found(here: Path) -> None:
    for kind in ("gpt2", "bert", "opt"):
        pretrained(kind, here / kind, max_position_embeddings=16)
        first = built(f"hf:{kind}").first_norm()
        assert first is not None and first.positions.shape == (16, 32)
        assert first.positions.abs().sum() > 0
    pretrained("llama", here / "llama")
    assert built("hf:llama").first_norm() is None  # RMSNorm is not LayerNorm


@torch.no_grad()
def test_two_models_lie_side_by_side(here: Path) -> None:
    x = vectors(2, 7, 32)
    found: dict[str, list[Tensor]] = {}
    for _ in range(2):
        for kind in ("gpt2", "bert"):
            pretrained(kind, here / kind)
            found.setdefault(kind, []).append(states(built(f"hf:{kind}"), x))
    assert all(torch.equal(*pair) for pair in found.values())


# --- rejected options --------------------------------------------------------------------------


def _config(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _index(content: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "model.safetensors").unlink()
        (folder / "model.safetensors.index.json").write_text(json.dumps(content))

    return change


REFUSED: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        ("no weights", "random=yes"),
    ),
    "pickled": (_pickled, ("pickled (pytorch_model.bin)", "save_pretrained")),
    "no config": (lambda folder: (folder / "config.json").unlink(), ("no config.json",)),
    "no JSON": (lambda folder: (folder / "config.json").write_text("{"), ("is not JSON",)),
    "a list": (
        lambda folder: (folder / "config.json").write_text("[]"),
        ("must be a JSON object",),
    ),
    "unknown": (_config(model_type="gpt9"), ("no architecture 'gpt9'", "never run")),
    "none said": (_config(model_type=None), ("no architecture None",)),
    "code": (
        _config(model_type="mine", auto_map={"AutoModel": "mine.Mine"}),
        ("no architecture 'mine'", "never run"),
    ),
    "encoder-decoder": (_config(model_type="t5"), ("t5", "an encoder and a decoder")),
    "pictures": (_config(model_type="vit"), ("vit is not a causal or masked",)),
    "state space": (_config(model_type="mamba"), ("mamba", "GPT-2, Llama")),
    "layers unlike each other": (
        _config(model_type="gemma4_text"),
        ("gemma4_text", "layers of different shapes", "GPT-2, Llama"),
    ),
    "quantised": (
        _config(quantization_config={"quant_method": "gptq", "bits": 4}),
        ("quantized weights",),
    ),
    "layers": (_config(n_layer=10**6), ("num_hidden_layers=1,000,000",)),
    "type": (_config(n_layer="two"), ("gpt2", "n_layer")),
    "heads": (_config(n_head=5), ("gpt2", "5")),
    "activation": (_config(activation_function="evil"), ("gpt2", "unknown name 'evil'")),
    "rope": (
        _config(model_type="llama", rope_scaling={"type": "evil"}),
        ("llama", "unknown name 'evil'"),
    ),
    "no words": (_config(model_type="bert", vocab_size=0), ("bert", "index 0")),
    "adapter": (
        lambda folder: (folder / "adapter_config.json").write_text("{}"),
        ("an adapter", "Merge it"),
    ),
    "shard outside": (
        _index({"weight_map": {"wte.weight": "../else.safetensors"}}),
        ("'../else.safetensors'", "not a shard"),
    ),
    "shard lost": (
        _index({"weight_map": {"wte.weight": "model-1.safetensors"}}),
        ("model-1.safetensors is missing",),
    ),
    "index": (_index([]), ("names no shards",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_no_trunk_is_refused_in_one_line(case: str, here: Path, says: Says) -> None:
    pretrained("gpt2", here / "model")
    change, parts = REFUSED[case]
    change(here / "model")
    with says.raises(UsageError, "--preset hf:model", *parts):
        preset("hf:model")
    assert all("\n" not in text for text in says.texts)


@pytest.mark.parametrize(
    ("kind", "changes", "part"),
    [
        ("llama", {"num_key_value_heads": 3}, "size of tensor"),
        ("gpt2", {"n_inner": 0}, "0 elements"),
    ],
)
def test_a_config_whose_parts_do_not_fit_is_refused_as_it_runs(
    kind: str, changes: dict[str, Any], part: str, here: Path
) -> None:
    pretrained(kind, here / "model")
    _config(**changes)(here / "model")
    model = trunk("hf:model,random=yes").build(causal=True)
    with pytest.raises(UsageError, match=f"cannot run this {kind} .*{part}.*Correct its config"):
        model(torch.zeros(1, 3, 32), None)


def _other_weights(folder: Path) -> None:
    pretrained("bert", folder.parent / "bert")
    (folder.parent / "bert" / "model.safetensors").rename(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda it: (it / "model.safetensors").write_bytes(b"\xff" * 100), "cannot be read"),
        (_other_weights, "lack"),
        (_config(n_embd=64), "cannot be read"),
    ],
    ids=["damaged", "of another model", "of another width"],
)
def test_weights_that_do_not_fit_are_refused(
    change: Callable[[Path], object], part: str, here: Path
) -> None:
    pretrained("gpt2", here / "model")
    change(here / "model")
    with pytest.raises(UsageError, match=f"--preset hf:model: the weights .*{part}"):
        trunk("hf:model").weights("model")


def test_a_preset_names_its_model(here: Path, says: Says) -> None:
    for spec in ("hf", "hf,tune=lora", "hf:model,rank=0", "hf:model,tune=some", "hf:model,ranks=2"):
        with says.raises(UsageError, "hf"):
            preset(spec)


def test_an_installation_without_transformers_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers.utils", None)
    other = canonical(json.loads(cast(Any, preset).__globals__["TRUNKS"]["hf"].architecture))
    with says.raises(UsageError, "--preset hf", "transformers and peft", "pip install"):
        facts(other.replace('"n_layer":2', '"n_layer":3'))
