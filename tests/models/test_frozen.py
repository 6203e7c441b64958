"""Frozen pretrained models: which ones are accepted, and their hidden states."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from numtok.encoding.fit_codec import text_tokenizer_of
from numtok.errors import UsageError
from numtok.models.pretrained.folder import PretrainedFolder
from numtok.models.pretrained.frozen import FrozenModel, FrozenSource
from tests.fakepretrained import IDS, KINDS, SIZES, pretrained, tokenizer
from tests.faketokenizers import marked_spaces, word_pieces
from tests.messages import Says

transformers: Any = pytest.importorskip("transformers", reason="numtok[hf] is not installed")
pytestmark = pytest.mark.integration
CPU = torch.device("cpu")
TEXTS = ["the weight of 12 apples", "17 kg", "is 3.5 kg and 120 pears are"]
CAUSAL = {"gpt2", "llama", "mistral", "qwen2", "gemma3_text", "opt"}


def load(folder: Path, pooling: Any = "mean") -> FrozenModel:
    return FrozenSource.of(str(folder)).load(pooling, CPU)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_states_are_those_of_transformers_whatever_is_beside_a_text(
    tmp_path: Path, kind: str, pooling: str
) -> None:
    whole = pretrained(kind, tmp_path)
    model = load(tmp_path, pooling)
    assert model.causal == (kind in CAUSAL)
    ids, cut = model.tokens(TEXTS)
    assert ids == [tokenizer().encode(text).ids for text in TEXTS]
    assert cut == 0
    for row, state_D in zip(ids, model.pooled(ids), strict=True):
        states_LD = whole.base_model(input_ids=torch.tensor([row]))[0][0].detach()
        expected_D = states_LD.mean(dim=0) if pooling == "mean" else states_LD[-1]
        torch.testing.assert_close(state_D, expected_D, atol=1e-4, rtol=1e-4)
    assert model.width == len(expected_D) == 32


def t5(folder: Path) -> None:
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=300, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, **IDS
    )
    transformers.T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))


def test_of_an_encoder_decoder_only_the_encoder_is_read(tmp_path: Path) -> None:
    t5(tmp_path)
    model = load(tmp_path)
    assert not model.causal
    whole = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path)
    ids, _ = model.tokens(TEXTS[:1])
    expected_LD = whole.encoder(input_ids=torch.tensor(ids))[0][0].detach()
    torch.testing.assert_close(model.pooled(ids)[0], expected_LD.mean(dim=0))


def test_word_pieces_without_a_tokenizer_json(tmp_path: Path) -> None:
    """A tokenizer that loses case and spaces is accepted, because nothing is decoded."""
    pretrained("bert", tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "room", "of", "##s", "3"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    model = load(tmp_path)
    assert model.tokens(["Rooms of  3"])[0] == [[2, 5, 7, 6, 8, 3]]
    assert model.tokens([""])[0] == [[2, 3]]


@pytest.mark.parametrize(("pooling", "kept"), [("mean", slice(64)), ("last", slice(-64, None))])
def test_a_long_text_is_cut_where_it_matters_least(
    tmp_path: Path, pooling: str, kept: slice
) -> None:
    pretrained("gpt2", tmp_path)
    text = " ".join(map(str, range(100)))
    ids, cut = load(tmp_path, pooling).tokens([text, "short"])
    assert cut == 1
    assert ids[0] == tokenizer().encode(text).ids[kept]


def test_a_text_without_tokens_has_a_state(tmp_path: Path) -> None:
    pretrained("gpt2", tmp_path)
    model = load(tmp_path)
    ids, _ = model.tokens(["", "17 kg"])
    assert ids[0] == [IDS["bos_token_id"]]
    assert torch.isfinite(model.pooled(ids)).all()


def test_the_digest_is_of_weights_config_and_tokenizer(tmp_path: Path) -> None:
    pretrained("gpt2", tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "README.md").write_text("not read")
    digest = FrozenSource.of(str(tmp_path / "a")).digest()
    assert FrozenSource.of(f"hf:{tmp_path / 'b'}").digest() == digest
    words = tmp_path / "b" / "tokenizer.json"
    words.write_text(words.read_text() + " ")
    assert FrozenSource.of(str(tmp_path / "b")).digest()[0] != digest[0]


def config_only(folder: Path, kind: str, **config: Any) -> None:
    folder.mkdir(exist_ok=True)
    settings = {"model_type": kind, **SIZES, **config}
    (folder / "config.json").write_text(json.dumps(settings))
    tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "model.safetensors").touch()


def unigram() -> Tokenizer:
    pieces = [("<unk>", 0.0), ("\u2581", -2.0), ("a", -1.0), ("3", -1.0)]
    made = Tokenizer(models.Unigram(pieces, unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


@pytest.mark.parametrize(
    ("made", "encodes"),
    [
        (tokenizer(), True),
        (marked_spaces("a", "3"), False),
        (word_pieces("a", "3"), False),
        (unigram(), False),
    ],
    ids=["byte-level", "byte-fallback", "wordpiece", "unigram"],
)
def test_accepted_and_refused_tokenizers(
    tmp_path: Path, made: Tokenizer, encodes: bool, says: Says
) -> None:
    pretrained("gpt2", tmp_path)
    made.save(str(tmp_path / "tokenizer.json"))
    ids, _ = load(tmp_path).tokens(["a 3"])
    assert ids == [made.encode("a 3").ids]
    if encodes:
        assert text_tokenizer_of(f"hf:{tmp_path}")[1] is not None
    else:
        with says.raises(UsageError, "not lossless"):
            text_tokenizer_of(f"hf:{tmp_path}")


#: Rows of the model table in docs/how-to/pretrained.md: model type, config, whether `features`
#: accepts it, and whether `train --preset hf:` does.
ACCEPTED = [
    *((kind, {}, True, True) for kind in KINDS),
    ("t5", {}, True, False),
    ("bart", {"d_model": 32}, False, False),
    ("vit", {}, False, False),
    ("clip", {}, False, False),
    ("of-my-own", {"auto_map": {"AutoModel": "code.Model"}}, False, False),
    ("gpt2", {"quantization_config": {"quant_method": "gptq"}}, False, False),
]


@pytest.mark.parametrize(("kind", "config", "features", "trunk"), ACCEPTED)
def test_accepted_and_refused_architectures(
    tmp_path: Path, kind: str, config: dict[str, Any], features: bool, trunk: bool, says: Says
) -> None:
    if kind == "t5":
        t5(tmp_path)
    elif features:
        pretrained(kind, tmp_path)
    else:
        config_only(tmp_path, kind, **config)
    if features:
        load(tmp_path)
    else:
        with says.raises(UsageError, f"--model hf:{tmp_path}"):
            load(tmp_path)
    if trunk:
        PretrainedFolder.of(str(tmp_path)).architecture()
    else:
        with says.raises(UsageError, f"--preset hf:{tmp_path}"):
            PretrainedFolder.of(str(tmp_path)).architecture()


def test_a_model_whose_states_depend_on_the_batch_is_refused(tmp_path: Path, says: Says) -> None:
    """ConvBERT's convolutions and FNet's Fourier transform mix padding into the states."""
    sizes = {**SIZES, "intermediate_size": 64, "vocab_size": 300}
    models = {
        "convbert": transformers.ConvBertModel(
            transformers.ConvBertConfig(embedding_size=32, **sizes)
        ),
        "fnet": transformers.FNetModel(transformers.FNetConfig(**sizes)),
    }
    for kind, model in models.items():
        model.save_pretrained(tmp_path / kind)
        tokenizer().save(str(tmp_path / kind / "tokenizer.json"))
        with says.raises(UsageError, f"--model hf:{tmp_path / kind}", "padding", "BERT"):
            load(tmp_path / kind)


def test_what_cannot_be_read(tmp_path: Path, says: Says) -> None:
    pretrained("gpt2", tmp_path / "good")

    def refused(change: Any, *told: str) -> None:
        folder = tmp_path / "bad"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "good", folder)
        change(folder)
        with says.raises(UsageError, *told):
            load(folder)

    def pickled(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    def without_layer(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))

    def other_tokenizer(folder: Path) -> None:
        made = tokenizer()
        made.add_tokens([f"word{index}" for index in range(50)])
        made.save(str(folder / "tokenizer.json"))

    def onnx(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "model.onnx")

    refused(pickled, "pickled", "safetensors")
    refused(onnx, "no weights", "safetensors")
    refused(without_layer, "lack", "config.json")
    refused(other_tokenizer, "tokens", "Use the model's own tokenizer")
    refused(lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer", "cannot")
    refused(lambda folder: (folder / "model.safetensors").write_bytes(b"x"), "weights", "cannot")
    refused(lambda folder: (folder / "adapter_config.json").write_text("{}"), "adapter")


def test_a_gguf_file_by_its_name_or_its_folder(tmp_path: Path, says: Says) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with says.raises(UsageError, "2 GGUF files", "a.gguf"):
        FrozenSource.of(str(tmp_path))
    (tmp_path / "b.gguf").unlink()
    named, found = FrozenSource.of(str(tmp_path / "a.gguf")), FrozenSource.of(str(tmp_path))
    assert named.digest() == found.digest()
    pytest.importorskip("gguf")
    with says.raises(UsageError, "a.gguf", "cannot be read"):
        named.load("mean", CPU)
