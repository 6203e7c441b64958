"""Pretrained trunks: initial weights, trained weights, and errors."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import numtok
from numtok.encoding.splits import learnt_values, read_split
from numtok.encoding.stored_codec import read_codec
from numtok.errors import UsageError
from numtok.models.batches import Batches
from numtok.models.embedders.base import INIT
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES
from numtok.seeds import generator
from numtok.settings.train import Config
from numtok.stages import encode, eval, export, probe, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from numtok.training.resolved_texts import resolve_texts
from tests import fakemodels
from tests.fakepretrained import SIZES, pretrained, tokenizer
from tests.messages import Says

pytest.importorskip("transformers", reason="the extra numtok[hf] is not installed")
pytestmark = pytest.mark.integration
one_thread = fakemodels.one_thread
CPU = torch.device("cpu")
AR: dict[str, Any] = {"objective": "ar", "steps": 3, "batch": 8}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that contains a small GPT-2, and return the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMTOK_THREADS", "1")
    pretrained("gpt2", tmp_path / "gpt2")
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


def quiet(*_: object) -> None:
    pass


def encoded(store: Store, scheme: str = "xval", text: str = "hf:gpt2", rows: int = 40) -> Artifact:
    random = np.random.default_rng(0)
    path = Path("rows.jsonl")
    with path.open("w") as file:
        for index in range(rows):
            a, b = random.integers(1, 50, 2).tolist()
            begun = f"the weight of {a} apples and {b} pears is "
            answer = f"{a + b}.5"
            row = {
                "text": f"{begun}{answer} kg",
                "split": "test" if index >= 0.8 * rows else "train",
                "targets": {"weight": [[len(begun), len(begun) + len(answer)]]},
                "answer_start": len(begun),
            }
            file.write(json.dumps(row) + "\n")
    config = encode.Config((str(path),), scheme=scheme, text_tokenizer=text, name=f"rows-{scheme}")
    artifact = encode.run(config, store, quiet).artifact
    assert artifact is not None
    return artifact


def trained(store: Store, data: Artifact, preset: str, **options: Any) -> Artifact:
    return train.run(Config(data.ref, preset=preset, **(AR | options)), store, quiet).artifact


def begun(store: Store, data: Artifact, preset: str, **options: Any) -> Model:
    """Return the initial model."""
    config = Config(data.ref, preset=preset, **(AR | options))
    resolved = resolve_texts(config, data, None)
    return resolved.model(resolved.model_settings(64))


def table(model: Model) -> Tensor:
    return model.get_parameter(model.vectors).detach()


# --- initial weights ---------------------------------------------------------------------------


@torch.no_grad()
def test_text_is_embedded_and_predicted_as_the_model_does(store: Store) -> None:
    data = encoded(store, "p1000")
    for kind, objective in {
        "gpt2": "ar",
        "llama": "ar",
        "gemma3_text": "ar",
        "bert": "mlm",
    }.items():
        whole = pretrained(kind, Path(kind))
        initial = begun(store, data, f"hf:{kind}", objective=objective).eval()
        codec = read_codec(data)
        ids = torch.randint(0, len(codec.text.vocabulary()), (2, 9))
        values = torch.ones(2, 9)
        states = initial.hidden(ids + codec.text_first, values, None)
        expected = whole.base_model(ids).last_hidden_state
        torch.testing.assert_close(states, expected, rtol=0, atol=1e-5)
        logits = states @ whole.get_output_embeddings().weight.T
        predicted = initial.token_head(states)[..., codec.text_first :]
        torch.testing.assert_close(predicted, logits, rtol=1e-4, atol=1e-3)
        assert (initial.outputs == initial.vectors) == (kind in ("gpt2", "bert"))


def test_new_rows_are_as_the_models_own(store: Store) -> None:
    data = encoded(store, "p1000")
    codec = read_codec(data)
    whole = pretrained("gpt2", Path("wide"), hidden_size=128)
    own = whole.get_input_embeddings().weight.detach()
    drawn = table(begun(store, data, "hf:wide"))
    assert torch.equal(drawn[codec.text_first :], own[: len(drawn) - codec.text_first])
    new = drawn[: codec.text_first]
    torch.testing.assert_close(new.mean(0), own.mean(0), rtol=0, atol=0.06)
    assert float(new.std(0).mean()) == pytest.approx(float(own.std(0).mean()), rel=0.05)
    rows = table(begun(store, data, "hf:wide,rows=digits"))
    token = codec.number_first + codec.scheme.vocabulary().index("602")
    digits = tokenizer().encode("6").ids + tokenizer().encode("0").ids + tokenizer().encode("2").ids
    torch.testing.assert_close(rows[token], own[digits].mean(0))
    assert torch.equal(rows[: codec.number_first], drawn[: codec.number_first])


@pytest.mark.parametrize("embedder", ["scaled", "fourier", "numgpt", "dice", "fone", "bits:linear"])
@torch.no_grad()
def test_numbers_are_as_long_as_the_models_words(embedder: str, store: Store) -> None:
    data = encoded(store, "xval", rows=20)
    _, exact = data, embedder in ("fone", "bits:linear")
    if exact:
        config = encode.Config(
            ("rows.jsonl",), scheme="xval", text_tokenizer="hf:gpt2", normalize="none", name="exact"
        )
        artifact = encode.run(config, store, quiet).artifact
        assert artifact is not None
        data = artifact
    codec = read_codec(data)
    pretrained("gpt2", Path("wide"), hidden_size=128)
    initial = begun(store, data, "hf:wide", embedder=embedder)
    number = torch.full((1, 64), codec.number_first)
    values = torch.linspace(-5, 5, 64)[None]
    vectors = initial.embedder(number, values)[0]
    text = torch.arange(64)[None] + codec.text_first
    words = initial.embedder(text, torch.ones(1, 64))[0]
    torch.testing.assert_close(words, table(initial)[text[0]], rtol=1e-5, atol=1e-5)
    ratio = float(vectors.std() / words.std())
    assert 0.3 < ratio < 4, ratio


def test_drawn_weights_are_those_of_no_folder(store: Store) -> None:
    data = encoded(store)
    shutil.copytree("gpt2", "bare")
    Path("bare/model.safetensors").unlink()
    initial = begun(store, data, "hf:bare,random=yes")
    assert float(table(initial).std()) == pytest.approx(INIT, rel=0.05)
    assert not torch.equal(table(initial), table(begun(store, data, "hf:bare,random=yes", seed=1)))


# --- trained weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("tune", ["lora", "heads"])
def test_what_is_kept_stays_as_it_is(tune: str, store: Store) -> None:
    pytest.importorskip("peft")
    data = encoded(store)
    pretrained("llama", Path("llama"))  # its output table is not tied
    options: dict[str, Any] = {"embedder": "fourier", "weight_decay": 0.5, "learning_rate": 0.05}
    before = begun(store, data, f"hf:llama,tune={tune}", **options)
    artifact = trained(store, data, f"hf:llama,tune={tune}", **options)
    after = read_model(artifact, CPU).model
    weights = dict(after.named_parameters())
    moved, first = set(), before.first_kept
    for name, old in before.named_parameters():
        new = weights[name]
        if name in before.kept:
            assert torch.equal(old[first:], new[first:]), name
            assert not torch.equal(old[:first], new[:first]), name
        elif name.startswith("trunk.") and "lora_" not in name:
            assert torch.equal(old, new), name
        elif not torch.equal(old, new):
            moved.add(name.partition(".")[0])
    assert before.kept == {"embedder.table.weight", "token_head.weight"}
    assert {"embedder", "value_head"} <= moved and ("trunk" in moved) == (tune == "lora")
    counts = artifact.manifest.counts
    assert counts["trained"] == before.trained_count() < 0.5 * counts["parameters"]


def test_all_of_it_is_trained_unless_something_else_is_said(store: Store) -> None:
    artifact = trained(store, encoded(store), "hf:gpt2")
    model = read_model(artifact, CPU).model
    assert "trained" not in artifact.manifest.counts
    assert model.trained_count() == model.parameter_counts()[0]


@pytest.mark.parametrize("preset", ["hf:gpt2", "hf:gpt2,tune=lora"])
def test_what_was_killed_goes_on_to_the_same_bytes(preset: str, here: Path) -> None:
    if "lora" in preset:
        pytest.importorskip("peft")
    files = []
    for name, stop in (("whole", None), ("broken", 2)):
        store = Store(here / name)
        config = Config(
            encoded(store).ref, preset=preset, checkpoint_steps=1, name="model", **AR | {"steps": 5}
        )
        steps: list[int] = []

        def stops(update: Any, steps: list[int] = steps, stop: int | None = stop) -> None:
            steps.append(update.step)
            if len(steps) == stop:
                raise KeyboardInterrupt

        if stop is not None:
            with pytest.raises(KeyboardInterrupt):
                train.run(config, store, stops)
        artifact = train.run(config, store, stops).artifact
        files.append(
            {file.path: (artifact.path / file.path).read_bytes() for file in artifact.files()}
        )
        assert steps == ([1, 2, 3, 4, 5] if stop is None else [1, 2, 2, 3, 4, 5])
    assert files[0] == files[1]


@pytest.mark.slow  # three processes import transformers
@pytest.mark.parametrize("options", [{}, {"shard": True, "recompute": True}])
def test_two_ranks_learn_what_one_does(options: dict[str, Any], store: Store) -> None:
    pytest.importorskip("peft")
    data = encoded(store)
    # No dropout: its masks differ between ranks.
    pretrained("gpt2", Path("plain"), attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    for preset in ("hf:plain,tune=lora", "hf:plain"):
        alone = trained(store, data, preset, name="alone")
        both = trained(store, data, preset, name="both", devices="2", force=True, **options)
        single, double = (read_model(artifact, CPU).model for artifact in (alone, both))
        for expected, actual in zip(single.parameters(), double.parameters(), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)


def test_a_model_is_complete_without_the_folder(store: Store) -> None:
    data = encoded(store)
    artifact = trained(store, data, "hf:gpt2,tune=heads", name="first")
    shutil.rmtree("gpt2")
    model = read_model(artifact, CPU)
    assert model.trained.configuration["preset"].startswith("hf:gpt2-")  # type: ignore[union-attr]
    report = eval.run(eval.Config(artifact.ref, data.ref), store, quiet).artifact
    assert report.kind == "report"
    again = train.run(
        Config(data.ref, init=artifact.ref, name="second", **AR), store, quiet
    ).artifact
    assert read_model(again, CPU).model.settings.trunk == model.model.settings.trunk
    looked = probe.run(probe.Config("embedding", artifact.ref), store, quiet)
    assert looked.artifact.kind == "probe"


def test_the_seed_draws_new_rows_alone(store: Store) -> None:
    data, first = encoded(store), read_codec(encoded(store)).text_first
    a, b = (table(begun(store, data, "hf:gpt2", seed=seed)) for seed in (0, 1))
    assert torch.equal(a[first:], b[first:]) and not torch.equal(a[:first], b[:first])


# --- number losses and errors ------------------------------------------------------------------


def test_native_numbers_train_with_number_losses(store: Store) -> None:
    """Training uses the same loss as numtok.number_loss with the model's tokenizer."""
    data = encoded(store, "native")
    model = begun(store, data, "hf:gpt2", objective="ar,number-loss=was:0.5").eval()
    codec = read_codec(data)
    words = tokenizer()
    term = model.number_term
    assert term is not None
    digits = {
        index + codec.text_first: float(word.removeprefix("\u0120"))
        for word, index in words.get_vocab().items()
        if re.fullmatch("\u0120?[0-9]+", word)
    }
    ids, values = (term.get_buffer(name).tolist() for name in ("ids", "values"))
    assert dict(zip(ids, values, strict=True)) == digits
    assert len(digits) > 10

    rows = read_split(data, "train")
    batch = Batches(rows, learnt_values(rows, codec), 8).at(seed=0, step=0)
    seen = OBJECTIVES.build("ar").example(batch, generator(0))
    inputs = model.given(seen)
    with torch.no_grad():
        trained_on = model.losses(inputs).token
        logits = model.token_head(inputs.predicting(model.states_of(inputs)))
    labels = torch.from_numpy(seen.labels)
    is_text = labels >= codec.text_first
    own = numtok.number_loss("was:0.5", words)
    of_text = logits[is_text, codec.text_first :], labels[is_text] - codec.text_first
    entropy = torch.nn.functional.cross_entropy(logits, labels)
    number = own(*(tensor[None] for tensor in of_text))
    torch.testing.assert_close(trained_on, entropy + 0.5 * number)


@pytest.mark.parametrize("preset", ["hf:gpt2", "nano,layers=1,width=16"])
def test_native_models_with_number_losses_are_evaluated_and_exported(
    preset: str, store: Store
) -> None:
    data = encoded(store, "native")
    model = trained(store, data, preset, objective="ar:answer,number-loss=ntil", steps=12)
    report = eval.run(eval.Config(model.ref, split="test"), store, quiet).artifact
    assert json.loads((report.path / "report.json").read_bytes())
    export.run(export.Config(model.ref, to=Path("out")), store)
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("numtok.hf")
    assert transformers.AutoModelForCausalLM.from_pretrained("out")


def test_data_of_another_tokenizer_are_refused(store: Store, says: Says) -> None:
    other = Path("other")
    shutil.copytree("gpt2", other)
    tokenizer("another text, of other words than these\n").save(str(other / "tokenizer.json"))
    bare = Path("bare")
    shutil.copytree("gpt2", bare)
    (bare / "tokenizer.json").unlink()
    words = encoded(store, text="words")
    for data, source in ((words, "gpt2"), (words, "bare"), (encoded(store, "p10"), "other")):
        with says.raises(
            UsageError, f"--preset hf:{source}", "another tokenizer", f"hf:{source}`", "random=yes"
        ):
            begun(store, data, f"hf:{source}")
    begun(store, words, "hf:gpt2,random=yes")


def test_what_does_not_go_with_such_a_trunk_is_refused(store: Store, says: Says) -> None:
    data = encoded(store)
    pretrained("llama", Path("llama"))
    pretrained("bert", Path("bert"))
    for preset, options, parts in (
        ("hf:llama", {}, ("--embedder scaled", "llama", "no positions", "fourier")),
        ("hf:gpt2", {"objective": "mlm"}, ("--objective mlm", "--objective ar")),
        ("hf:bert", {"objective": "ar"}, ("--objective ar", "both")),
        ("hf:gpt2", {"compile": True}, ("--compile", "hf:gpt2")),
    ):
        chosen: dict[str, Any] = options
        with says.raises(UsageError, *parts):
            begun(store, data, preset, **chosen)


def test_an_architecture_that_sees_otherwise_is_refused(store: Store, says: Says) -> None:
    """There is no cache for ALiBi, and XLNet's hidden states attend to later tokens. Those of
    ConvBERT depend on padding, and a recurrent state cannot be cached for rows of different
    lengths."""
    transformers = pytest.importorskip("transformers")
    data, size = encoded(store), {"n_layer": 2, "n_head": 4}
    words = tokenizer().get_vocab_size()
    sizes = {**SIZES, "intermediate_size": 64, "vocab_size": words}
    models = {
        "bloom": transformers.BloomForCausalLM(
            transformers.BloomConfig(hidden_size=32, vocab_size=words, **size)
        ),
        "xlnet": transformers.XLNetLMHeadModel(
            transformers.XLNetConfig(d_model=32, d_inner=64, vocab_size=words, **size)
        ),
        "convbert": transformers.ConvBertForMaskedLM(
            transformers.ConvBertConfig(embedding_size=32, **sizes)
        ),
        "recurrent": transformers.RecurrentGemmaForCausalLM(
            transformers.RecurrentGemmaConfig(**sizes)
        ),
    }
    for kind, model in models.items():
        model.save_pretrained(kind)
        shutil.copy("gpt2/tokenizer.json", kind)
        with says.raises(UsageError, f"--preset hf:{kind}", "architecture", "GPT-2, Llama"):
            objective = "mlm" if kind == "convbert" else "ar"
            begun(store, data, f"hf:{kind}", objective=objective, embedder="fourier")
