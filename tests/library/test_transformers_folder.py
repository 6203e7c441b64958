"""``numtok export MODEL``: what transformers loads, with and without numtok."""

import inspect
import json
import os
import subprocess
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import numtok
from numtok.errors import DataError, UsageError
from numtok.store.artifact import MODEL
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel, read_model
from tests import fakemodels
from tests.cases import case
from tests.fakepretrained import pretrained

transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("numtok.hf")
pytestmark = pytest.mark.integration

one_thread = fakemodels.one_thread

TEXTS = ("the weight of 12 apples is 3.5 kg", "17 pears")
ASKED = ("the weight of 12 apples is [?] kg", "[?] pears weigh 4 kg")
#: Scheme and training settings, for each kind of input, output and position of numbers. CI runs the
#: first three.
OWN: dict[str, tuple[str, dict[str, str]]] = {
    "a value, causal": ("xval", {"preset": "nano", "objective": "ar"}),
    "tokens, masked, tied": ("p10", {"preset": "nano,tied=yes"}),
    "what is computed": ("fone", {"preset": "nano", "head": "fone"}),
    "a value, masked": ("xval", {"preset": "nano"}),
    "tokens, causal": ("p1000", {"preset": "nano", "objective": "ar"}),
    "places of digits": (
        "digits",
        {"preset": "nano", "objective": "ar", "digit_positions": "abacus"},
    ),
    "two parts": ("numgpt", {"preset": "nano", "objective": "ar"}),
}


@pytest.fixture
def trained(tmp_path: Path) -> Callable[..., Any]:
    random = np.random.default_rng(0)
    rows = [f"the weight of {a} apples is {0.3 * a:.1f} kg" for a in random.integers(1, 99, 60)]
    rows[0] += ", and that of all other apples here " * 2
    lines = [
        {"text": text, "split": "train" if place < 40 else "validation", "label": "ab"[place % 2]}
        for place, text in enumerate(rows)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))

    def make(scheme: str, text_tokenizer: str | None = None, **settings: str) -> Any:
        store = tmp_path / "artifacts"
        encoded = numtok.encode(
            tmp_path / "rows.jsonl", scheme=scheme, text_tokenizer=text_tokenizer, store=store
        )
        return numtok.train(encoded, steps=12, batch=16, device="cpu", store=store, **settings)

    return make


def loaded(model: Any) -> LoadedModel:
    artifact = Store(model.store, lambda note: None).resolve(model.ref, {MODEL})
    return read_model(artifact, torch.device("cpu"))


def opened(folder: Path) -> tuple[Any, Any]:
    return tuple(
        kind.from_pretrained(folder)
        for kind in (transformers.AutoTokenizer, transformers.AutoModel)
    )


def close(one: Any, other: Any) -> bool:
    """Return whether two models gave the same predictions, except for the last digits."""
    numbers = ([number for row in rows for number in row.numbers] for rows in (one, other))
    return all(
        found.keys() == wanted.keys()
        and all(
            np.isclose(found[key], wanted[key], rtol=1e-4)
            for key in found
            if key != "literal" and wanted[key] is not None
        )
        for found, wanted in zip(*numbers, strict=True)
    )


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (place > 2)) for place, name in enumerate(OWN)],
)
def test_a_model_comes_back_as_one_of_transformers(name: str, trained: Any, tmp_path: Path) -> None:
    scheme, settings = OWN[name]
    model = trained(scheme, **settings)
    folder = numtok.export(model, to=tmp_path / "out", store=model.store)
    tokenizer, made = opened(folder)
    kept = loaded(model).model
    for part in ("named_parameters", "named_buffers"):
        with case(part):
            own = dict(getattr(kept, part)())
            there = dict(getattr(made.network, part)())
            assert own.keys() == there.keys()
            assert all(torch.equal(own[key], there[key]) for key in own)
    assert close(made.predict(ASKED, tokenizer), model.predict(ASKED))
    rows = tokenizer(TEXTS)
    with torch.no_grad():
        said = made(**rows)
        alone = made(**tokenizer(TEXTS[1]))
    length = alone.logits.shape[1]
    seen = slice(-length, None) if tokenizer.causal else slice(length)
    torch.testing.assert_close(said.logits[1:, seen], alone.logits, rtol=1e-4, atol=1e-4)

    half = transformers.AutoModel.from_pretrained(folder, dtype=torch.bfloat16)
    for one in (half, made.to(torch.bfloat16)):  # values have too few digits in bfloat16
        assert torch.equal(one(**rows).logits, said.logits)

    for one in (made, tokenizer):
        one.save_pretrained(tmp_path / "again")
    tokenizer, again = opened(tmp_path / "again")
    with torch.no_grad():
        torch.testing.assert_close(again(**tokenizer(TEXTS)).logits, said.logits)


@pytest.mark.parametrize(
    ("scheme", "settings"),
    [
        ("p1000", {"preset": "nano"}),
        ("digits", {"preset": "nano,positions=rotary", "digit_positions": "abacus"}),
    ],
)
def test_generate_writes_what_numtok_writes(
    scheme: str, settings: dict[str, str], trained: Any, tmp_path: Path
) -> None:
    model = trained(scheme, objective="ar", **settings)
    folder = numtok.export(model, to=tmp_path / "out", store=model.store)
    tokenizer, _ = opened(folder)
    made = transformers.AutoModelForCausalLM.from_pretrained(folder)
    texts = ["the weight of", "the weight of 12 apples is"]
    begun = tokenizer(texts)
    ids = made.generate(**begun, max_new_tokens=12, do_sample=False)
    written = [tokenizer.decode(row, skip_special_tokens=True) for row in ids]
    wanted = model.predict(texts, fill="answers", decode="free")
    for text, found, one in zip(texts, written, wanted, strict=True):
        before = tokenizer.decode(tokenizer(text).input_ids[0], skip_special_tokens=True)
        assert found.startswith(before)
        assert one.answer.startswith(found.removeprefix(before))
        assert len(found) > len(before)
    for how in ({"do_sample": False}, {"num_beams": 3}):  # with and without a cache
        with case(str(how)):
            kept, anew = (
                made.generate(
                    **begun, max_new_tokens=12, use_cache=use_cache,
                    return_dict_in_generate=True, output_scores=True, **how,
                )
                for use_cache in (True, False)
            )  # fmt: skip
            assert torch.equal(kept.sequences, anew.sequences)
            for one, other in zip(kept.scores, anew.scores, strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    again = tokenizer.decode(tokenizer(TEXTS[0]).input_ids[0], skip_special_tokens=True)
    assert again.startswith("the weight of 12") and again.endswith("3.5 kg")
    with pytest.raises(DataError, match="max_length"):
        made.generate(**begun, max_new_tokens=500, do_sample=False, eos_token_id=None)


def test_labels_are_said_by_the_model_of_transformers(trained: Any, tmp_path: Path) -> None:
    model = trained("xval", preset="nano", objective="classify")
    tokenizer, made = opened(numtok.export(model, to=tmp_path / "out", store=model.store))
    with torch.no_grad():
        logits = made(**tokenizer(TEXTS)).logits
    best = [made.network.settings.classes[place] for place in logits.argmax(dim=1)]
    assert best == [row.label for row in model.predict(TEXTS)]
    assert [row.label for row in made.predict(TEXTS, tokenizer)] == best


def loaded_plainly(folder: str, texts: list[str]) -> tuple[Any, Any, Any]:
    """Return the ids of texts, their continuations, and the logits of the first text."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    rows = tokenizer(texts, return_tensors="pt", padding=True)
    ids = model.generate(**rows, max_new_tokens=10, do_sample=False)
    return rows.input_ids.tolist(), ids.tolist(), model(rows.input_ids).logits[0].tolist()


#: The same without numtok.
ELSEWHERE = f"""
import importlib.util, json, sys
from typing import Any
assert importlib.util.find_spec("numtok") is None
{inspect.getsource(loaded_plainly)}
print(json.dumps(loaded_plainly(sys.argv[1], json.loads(sys.argv[2]))))
"""


def loaded_elsewhere(folder: str, texts: list[str]) -> Any:
    """Run the program in a new virtual environment with the libraries of this one except numtok,
    which is installed here as a link to the clone."""
    place = Path(folder).parent / "elsewhere"
    venv.create(place, symlinks=True)
    libraries = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    of_venv = {"base": str(place), "platbase": str(place)}
    own = Path(sysconfig.get_path("purelib", "venv", vars=of_venv))
    (own / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    done = subprocess.run(
        [place / "bin" / "python", "-I", "-c", ELSEWHERE, folder, json.dumps(texts)],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("scheme", "kind", "tune", "load"),
    [
        ("native", "gpt2", "lora", loaded_plainly),
        pytest.param("native", "gpt2", "lora", loaded_elsewhere, marks=pytest.mark.slow),
        pytest.param("p1000", "gemma3_text", "full", loaded_elsewhere, marks=pytest.mark.slow),
        pytest.param("p1000", "llama", "heads", loaded_elsewhere, marks=pytest.mark.slow),
    ],
)
def test_a_causal_model_of_tokens_needs_no_numtok(
    scheme: str, kind: str, tune: str, load: Any, trained: Any, tmp_path: Path
) -> None:
    pretrained(kind, tmp_path / "begun")
    preset = f"hf:{tmp_path / 'begun'},tune={tune}"
    model = trained(scheme, f"hf:{tmp_path / 'begun'}", preset=preset, objective="ar")
    folder = numtok.export(model, to=tmp_path / "out", store=model.store)
    assert not (folder / "scheme.json").exists()
    codec, kept = numtok.Codec.load(model.ref, store=model.store), loaded(model).model
    written = "the weight of 12 apples"
    wanted = codec.encode([written]).tokens.tolist()
    if scheme == "p1000":
        written = written.replace("12", codec.inner.written_number(codec.encode(["12"]).tokens))
    [ids], [out], logits = load(str(folder), [written])
    assert ids == [2, *wanted]
    with torch.no_grad():
        states = kept.hidden(torch.tensor([ids]), torch.ones(1, len(ids)), None)
        own = kept.token_head(states)[0]
    torch.testing.assert_close(torch.tensor(logits), own, rtol=1e-5, atol=1e-5)
    # Greedy decoding with numtok's own trunk gives each next token, except for pads and masks.
    for place in range(len(ids), len(out)):
        with torch.no_grad():
            state = kept.hidden(torch.tensor([out[:place]]), torch.ones(1, place), None)[0, -1]
            scores = kept.token_head(state[None])[0]
        scores[[0, 1]] = -torch.inf
        assert out[place] == int(scores.argmax())


def test_the_card_has_what_was_measured(trained: Any, tmp_path: Path) -> None:
    model = trained("xval", preset="nano")
    for split in ("validation", "train"):
        numtok.eval(model, split=split, device="cpu", store=model.store)
    report = numtok.eval(model, split="validation", device="cpu", store=model.store)
    card = (numtok.export(model, to=tmp_path / "out", store=model.store) / "README.md").read_text()
    figure = report.metrics["mae"]
    assert f"| mae | {figure.value:.4g} [{figure.low:.4g}, {figure.high:.4g}] |" in card
    assert "split `train`" in card and "`xval`" in card and model.ref in card


def test_what_cannot_be_is_said(trained: Any, tmp_path: Path) -> None:
    model = trained("xval", preset="nano", objective="ar")
    with pytest.raises(UsageError, match="format datasets does not apply to"):
        numtok.export(model, to=tmp_path / "out", format="datasets", store=model.store)
    tokenizer, made = opened(numtok.export(model, to=tmp_path / "out", store=model.store))
    with pytest.raises(UsageError, match="numbers have values"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    with pytest.raises(UsageError, match="causal model"):
        tokenizer(ASKED[0])
    asked: list[dict[str, Any]] = [{"truncation": True}, {"padding": "max_length"}]
    for how in asked:
        with case(how), pytest.raises(UsageError, match="Remove padding, truncation"):
            tokenizer(TEXTS[0], **how)
    with pytest.raises(DataError, match="context is"):
        made(torch.ones(1, 500, dtype=torch.long))
    with pytest.raises(DataError, match="has no"):
        made.predict([TEXTS[0]], tokenizer)
    with pytest.raises(UsageError, match="trained model"):
        hf.NumtokModel(hf.NumtokConfig())
    with pytest.raises(UsageError, match="not that of a numtok model"):
        hf.NumtokConfig(numtok={"settings": 1}).parsed()
