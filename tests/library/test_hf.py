"""numtok.hf: numbers in a model and a training loop of transformers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset

import numtok
from numtok.errors import DataError, UsageError
from numtok.library.codec import TextCodec
from tests import fakemodels
from tests.cases import case
from tests.fakepretrained import pretrained

transformers = pytest.importorskip("transformers")
hf = pytest.importorskip("numtok.hf")
pytestmark = pytest.mark.integration

one_thread = fakemodels.one_thread

TEXTS = ("2.5 + 13 = 15.5", "7 times -8 is -56", "0.125 of it and 0.375", "41.5 - 0.4 = 41.1")
TRUTHS = [15.5, -56.0, 0.375, 41.1]
WIDTH = 16


def made(codec: TextCodec, model: Any, head: str = "mdn:3", embedder: str = "lookup") -> Any:
    torch.manual_seed(0)
    embed = numtok.embedder(embedder, codec, width=WIDTH)
    return hf.NumberModel(model, embed, numtok.head(head, codec, width=WIDTH))


def gpt2() -> Any:
    torch.manual_seed(0)
    shape = {"n_embd": WIDTH, "n_layer": 1, "n_head": 2, "n_positions": 64, "vocab_size": 1}
    return transformers.GPT2Model(transformers.GPT2Config(**shape))


def bert() -> Any:
    torch.manual_seed(0)
    shape = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(**shape, intermediate_size=WIDTH, vocab_size=1)
    return transformers.BertModel(config, add_pooling_layer=False)


@pytest.mark.parametrize(
    ("scheme", "model", "causal", "head"),
    [("xval", gpt2, True, "mdn:3"), ("p1000", bert, False, "token"), ("bits", gpt2, True, "bits")],
)
def test_a_trainer_learns_and_is_told_numbers_in_raw_units(
    scheme: str, model: Any, causal: bool, head: str, tmp_path: Any
) -> None:
    codec = TextCodec.fit(TEXTS, scheme=scheme, text_tokenizer="bytes")
    told: list[Any] = []

    def kept(one: Any) -> dict[str, float]:
        told.append(one)
        return {"mae": float(np.abs(one.predictions - one.label_ids).mean())}

    trainer = transformers.Trainer(
        made(codec, model(), head),
        transformers.TrainingArguments(
            str(tmp_path),
            max_steps=60,
            learning_rate=3e-2,
            per_device_eval_batch_size=3,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            disable_tqdm=True,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            seed=1,
        ),
        train_dataset=[{"text": text, "id": "a"} for text in TEXTS],
        eval_dataset=list(TEXTS),
        data_collator=hf.NumberCollator(codec, causal=causal),
        compute_metrics=kept,
    )
    before = trainer.evaluate()
    trainer.train()
    after = trainer.evaluate()
    assert after["eval_loss"] < 0.5 * before["eval_loss"]
    assert told[1].label_ids.tolist() == TRUTHS
    assert told[1].predictions.shape == (4,) and told[1].predictions.dtype == np.float64


def test_the_model_says_what_the_same_parts_say_in_a_loop() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    model = made(codec, gpt2()).eval()
    rows = numtok.batch(codec, TEXTS, causal=True)
    with torch.no_grad():
        given = model(**hf.NumberCollator(codec, causal=True)(TEXTS))
        mask = rows.attention_mask.long()
        hidden = model.model(inputs_embeds=model.embed(rows), attention_mask=mask)
        states = hidden.last_hidden_state[rows.where]
        assert torch.equal(given["loss"], model.head.loss(states, rows.truths))
        assert given["points"].tolist() == model.head.predict(states).point().tolist()
    assert "points" not in model.train()(**hf.NumberCollator(codec, causal=True)(TEXTS))


def test_a_trainer_predicts_numbers_that_are_unknown(tmp_path: Any) -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, remove_unused_columns=False, report_to=[]
    )
    collator = hf.NumberCollator(codec, mask="holes", causal=True)
    model = made(codec, gpt2())
    trainer = transformers.Trainer(model, arguments, data_collator=collator)
    rows = ["2.5 + 13 = [?]", "41.5 - 0.4 = [?]"]
    told = trainer.predict(rows)
    assert told.predictions.tolist() == model.eval()(**collator(rows))["points"].tolist()
    assert np.isfinite(told.predictions).all() and np.isnan(told.metrics["test_loss"])
    with pytest.raises(DataError, match="only for prediction"):
        model.train()(**collator(rows))


def test_a_model_in_bfloat16_has_losses_and_predictions() -> None:
    for scheme, head in (("xval", "mdn:3"), ("p1000", "token"), ("numgpt", "numgpt")):
        codec = TextCodec.fit(TEXTS, scheme=scheme, text_tokenizer="bytes")
        model = made(codec, bert().to(torch.bfloat16), head)
        rows = hf.NumberCollator(codec)(TEXTS)
        with case(scheme):
            loss = model(**rows)["loss"]
            loss.backward()
            assert loss.isfinite()
            points = model.eval()(**rows)["points"]
            assert len(points) == len(TRUTHS)
            # Embedders and heads keep float32 weights, for Trainer(bf16_full_eval=True).
            again = model.to(torch.bfloat16)(**rows)["points"]
            np.testing.assert_array_equal(again, points)


def test_a_head_of_one_number_is_calibrated() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    model = made(codec, gpt2(), "scalar").train()
    rows = numtok.batch(codec, TEXTS, causal=True)
    model.calibrate(rows)
    assert model.training and model.model.training  # as Trainer.train leaves it
    model.eval()
    with torch.no_grad():
        predicted = model.head.predict(model.states(rows))
    assert np.isfinite(predicted.crps(TRUTHS)).all()
    calibration = model.head.calibration
    model.calibrate(rows)  # dropout was off before
    assert model.head.calibration == calibration


def test_a_model_that_sees_the_numbers_to_predict_is_refused() -> None:
    for scheme in ("xval", "p1000"):
        codec = TextCodec.fit(TEXTS, scheme=scheme, text_tokenizer="bytes")
        causal = hf.NumberCollator(codec, causal=True)(TEXTS)
        leaky = made(codec, bert())
        for _ in range(2):
            with case(scheme), pytest.raises(UsageError, match=r"later tokens.*causal"):
                leaky(**causal)
        with case(scheme), pytest.raises(UsageError, match="later tokens"):
            leaky.calibrate(numtok.batch(codec, TEXTS, causal=True))
        leaky(**hf.NumberCollator(codec)(TEXTS))
        made(codec, gpt2())(**causal)


def test_a_row_longer_than_the_model_reads_is_refused() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    collator = hf.NumberCollator(codec, causal=True)
    config = transformers.RobertaConfig(
        vocab_size=2,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=WIDTH,
        max_position_embeddings=66,
        is_decoder=True,
    )
    for model in (gpt2(), transformers.RobertaModel(config, add_pooling_layer=False)):
        with case(type(model)):
            numbers = made(codec, model)
            numbers(**collator(["x" * 61 + " 1"]))
            with pytest.raises(DataError, match=r"65 tokens.* 64"):
                numbers(**collator(["x" * 62 + " 1"]))


class Stream(IterableDataset[str]):
    def __iter__(self) -> Iterator[str]:
        return iter(TEXTS * 4)


def test_a_batch_that_is_divided_by_rows_is_refused(tmp_path: Any) -> None:
    """accelerate cuts each tensor of a batch to the number of rows if the dataset is iterable."""
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    for dispatch in (True, False):
        trainer = transformers.Trainer(
            made(codec, gpt2()),
            transformers.TrainingArguments(
                str(tmp_path),
                max_steps=1,
                accelerator_config={"dispatch_batches": dispatch},
                dataloader_pin_memory=False,
                disable_tqdm=True,
                logging_strategy="no",
                save_strategy="no",
                report_to="none",
            ),
            train_dataset=Stream(),
            data_collator=hf.NumberCollator(codec, mask="random", rate=1.0, causal=True),
        )
        if dispatch:
            with pytest.raises(UsageError, match=r"8 of its 22 numbers.*dispatch_batches"):
                trainer.train()
        else:
            trainer.train()


def test_other_numbers_are_drawn_each_time_and_the_same_by_the_same_seed() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    collator = hf.NumberCollator(codec, mask="random", rate=0.5)

    def drawn(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        labels: list[Any] = [collator(TEXTS)["labels"] for _ in range(8)]
        return [one.tolist() for one in labels]

    first = drawn(0)
    assert first == drawn(0)
    assert len({tuple(one) for one in first}) > 1


def test_an_embedder_begins_with_the_vectors_of_a_model(tmp_path: Any) -> None:
    model = pretrained("gpt2", tmp_path)
    codec = TextCodec.fit(TEXTS, scheme="p1000", text_tokenizer=f"hf:{tmp_path}")
    embed = numtok.embedder("lookup", codec, width=32)
    own = model.get_input_embeddings().weight.detach()
    embed.begin_with(own, rows="digits")
    text = codec.inner.text_first
    assert torch.equal(embed.table[text:], own)
    token = codec.inner.vocabulary()["number"].index("602")
    letters = codec.inner.text.vocabulary()
    digits = own[[letters.index(digit) for digit in "602"]].mean(dim=0)
    torch.testing.assert_close(embed.table[codec.inner.number_first + token], digits)
    assert embed.table[:text].detach().std() == pytest.approx(float(own.std()), rel=0.5)
    for given, words in [(own[:, :8], "text token"), (own[:-1], "text token")]:
        with case(given.shape), pytest.raises(UsageError, match=words):
            embed.begin_with(given)
    with pytest.raises(UsageError, match="digits, drawn"):
        embed.begin_with(own, rows="zeros")


def test_an_embedder_begins_with_vectors_as_the_model_scales_them(tmp_path: Any) -> None:
    for kind in ("gpt2", "gemma3_text"):  # Gemma 3 multiplies its vectors by sqrt(width)
        folder = tmp_path / kind
        model = pretrained(kind, folder).base_model
        codec = TextCodec.fit(TEXTS, scheme="p1000", text_tokenizer=f"hf:{folder}")
        embed = numtok.embedder("lookup", codec, width=32)
        embed.begin_with(model.get_input_embeddings())
        rows = numtok.batch(codec, ["the weight of apples"], mask="none")
        with case(kind), torch.no_grad():
            expected = model(rows.tokens - codec.inner.text_first).last_hidden_state
            states = model(inputs_embeds=embed(rows)).last_hidden_state
            torch.testing.assert_close(states, expected)


def test_what_cannot_be_is_refused() -> None:
    codec = TextCodec.fit(TEXTS, scheme="xval", text_tokenizer="bytes")
    collator = hf.NumberCollator(codec, causal=True)
    with pytest.raises(DataError, match=r"'text'.*'answer'.*remove_unused_columns"):
        collator([{"answer": "1"}])
    shape = {"n_embd": WIDTH, "n_layer": 1, "n_head": 2, "vocab_size": 8}
    speaks = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape))
    other = TextCodec.fit(["1 a", "2 b"], scheme="p1000", text_tokenizer="bytes")
    for model, rows, words in [
        (made(codec, speaks), collator(TEXTS), "GPT2LMHeadModel.*AutoModel"),
        (made(other, gpt2()), collator(TEXTS), "codec"),
    ]:
        with case(words), pytest.raises(UsageError, match=words):
            model(**rows)
