"""numtok.number_loss: equal to numtok's own training and to ntloss, for any tokenizer."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import numtok
from numtok.encoding.codec import Codec
from numtok.errors import UsageError
from numtok.library.codec import TextCodec
from numtok.models.number_terms.base import NUMBER_TERMS, NumberTermModule
from numtok.models.vocabulary import Vocabulary
from tests.cases import case, each
from tests.fakemodels import codec
from tests.fakepretrained import tokenizer
from tests.faketokenizers import LOOKALIKES, for_transformers, marked_spaces, word_pieces
from tests.messages import Says

WORDS = "the 12 120 (17)(17) 3.5 of 407 and 5\n"
PADDED = 9  # rows of an embedding table without a token


def gpt2_words() -> Any:
    """Return a tokenizer with numbers of several digits, with and without a space."""
    return for_transformers(tokenizer(WORDS * 9))


def drawn(size: int, tokens: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return logits [3, 20, size], and labels: most are in ``tokens``, some are ignored."""
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(3, 20, size, generator=random)
    labels = torch.randint(0, size, (3, 20), generator=random)
    labels[1:] = torch.tensor(tokens)[torch.randint(0, len(tokens), (2, 20), generator=random)]
    labels[:, 3:6] = -100
    return logits, labels


def given(of: Any, extra: int = PADDED, seed: int = 0) -> tuple[Tensor, Tensor]:
    return drawn(int(of.tokens.ids.max()) + 1 + extra, of.tokens.ids.tolist(), seed)


@each(
    ("spec", "name", "settings"),
    [
        ("was", "NTLoss", {"reweigh": False}),
        ("was,reweigh=yes", "NTLoss", {}),
        ("was,squash=3", "NTLoss", {"reweigh": False, "squash_factor": 3}),
        ("was,squash=3,reweigh=yes", "NTLoss", {"squash_factor": 3}),
        ("mse", "NTLossDotProduct", {"reweigh": False}),
        ("mse,reweigh=yes", "NTLossDotProduct", {}),
    ],
)
def test_losses_are_those_of_ntloss(spec: str, name: str, settings: dict[str, Any]) -> None:
    ntloss = pytest.importorskip("ntloss", reason="the package ntloss is not installed")
    # ntloss does not read tokens with spaces, so numbers of several digits have none here.
    several = for_transformers(tokenizer("12(120)3.5(17)(407)" * 9))
    for words, digit_level in ((gpt2_words(), True), (several, True), (several, False)):
        own = numtok.number_loss(spec, words, digit_level=digit_level)
        assert (len(own.tokens.ids) > 10) == (not digit_level)
        logits, labels = given(own)
        size = logits.shape[2]
        theirs = getattr(ntloss, name)(words, vocab_size=size, digit_level=digit_level, **settings)
        for reduction in ("mean", "sum", "none"):
            with case(digit_level=digit_level, reduction=reduction):
                wanted = theirs(logits, labels, reduction=reduction)
                torch.testing.assert_close(own(logits, labels, reduction), wanted)


@each("spec", list(NUMBER_TERMS))
def test_it_is_the_loss_of_numtoks_own_training(spec: str) -> None:
    """With a codec's tokens, it is the cross-entropy plus the number loss that train adds."""
    inner = codec("digits")
    vocabulary = Vocabulary.of(inner)
    own = numtok.number_loss(spec, TextCodec(inner))
    logits, labels = drawn(vocabulary.size, [*range(vocabulary.first, vocabulary.first + 12)])
    module = NumberTermModule(NUMBER_TERMS.build(spec), vocabulary.valued, vocabulary.size)
    at = (labels.flatten() != -100).nonzero()[:, 0]
    kept, rows = labels.flatten()[at], logits.flatten(0, 1)[at]
    places = torch.from_numpy(module.places(kept.numpy(), (at + at // 20).numpy()))
    wanted = F.cross_entropy(rows, kept) + module(rows, kept, module.scale(kept.numpy()), places)
    torch.testing.assert_close(own.with_cross_entropy(logits, labels), wanted)
    if own.weight is not None:
        added = F.cross_entropy(rows, kept) + own.weight * own(logits, labels)
        torch.testing.assert_close(added, wanted)


@each("spec", list(NUMBER_TERMS))
def test_a_loss_has_gradients_and_is_zero_without_numbers(spec: str) -> None:
    own = numtok.number_loss(spec, gpt2_words())
    logits, labels = given(own)
    logits.requires_grad_()
    own(logits, labels).backward()
    assert logits.grad is not None and logits.grad.isfinite().all() and logits.grad.any()
    for text in (torch.full_like(labels, -100), torch.zeros_like(labels), labels[:, :0]):
        of = logits[:, : text.shape[1]]
        assert own(of, text).item() == 0
        assert own(of, text, "none").shape == text.shape
        assert math.isfinite(own.with_cross_entropy(of, text).item())


def test_reductions_are_of_the_same_losses() -> None:
    words = gpt2_words()
    own = numtok.number_loss("was", words, reduction="none")
    logits, labels = given(own)
    each_label = own(logits, labels)
    numbers = torch.isin(labels, torch.from_numpy(own.tokens.ids))
    assert not each_label[~numbers].any() and (each_label[numbers] > 0).all()
    torch.testing.assert_close(own(logits, labels, "sum"), each_label.sum())
    torch.testing.assert_close(own(logits, labels, "mean"), each_label[numbers].mean())


def test_a_loss_is_worked_out_by_hand() -> None:
    """The correct token is `` 5`` of Llama's tokenizer; 123 and 5 also have probabilities."""
    words = marked_spaces("5", "\u25815", "123", "kg")
    five, spaced, many, _ = (words.token_to_id(name) for name in ("5", "\u25815", "123", "kg"))
    own = numtok.number_loss("was", words)
    logits = torch.full((1, 1, words.get_vocab_size() + PADDED), -1e9)
    for token, p in ((five, 0.3), (spaced, 0.5), (many, 0.2)):
        logits[0, 0, token] = math.log(p)
    labels = torch.tensor([[spaced]])
    assert own(logits, labels).item() == pytest.approx(0.2 * 118, rel=1e-5)
    # Labels are smoothed over tokens of the same form: one digit after a space.
    smooth = numtok.number_loss("smooth", words)
    assert smooth(logits, labels).item() == pytest.approx(-math.log(0.5), rel=1e-5)


def test_lookalikes_have_no_loss() -> None:
    words = marked_spaces(*LOOKALIKES)
    own = numtok.number_loss("was", words)
    ids = [words.token_to_id(name) for name in LOOKALIKES]
    logits, _ = given(own)
    losses = own(logits[:1, : len(ids)], torch.tensor([ids]), "none")[0]
    assert (losses > 0).tolist() == [True] * 5 + [False] * 6


def test_a_space_begins_another_number() -> None:
    """ntil compares whole numbers: "3 17" is two numbers, "317" is one."""
    words = marked_spaces(*"0123456789", *(f"\u2581{digit}" for digit in range(10)))
    own = numtok.number_loss("ntil,relative=0,magnitude=0,base=100", words)
    logits, _ = given(own)
    for second, factor in (("1", 100), ("\u25811", 1)):
        ids = torch.tensor([[words.token_to_id("3"), words.token_to_id(second)]])
        losses = own(logits[:1, :2], ids, "none")[0]
        was = numtok.number_loss("was", words)(logits[:1, :2], ids, "none")[0]
        torch.testing.assert_close(losses, was * torch.tensor([factor, 1.0]))


@each("spec", list(NUMBER_TERMS))
def test_long_numbers_of_large_tokens_have_finite_losses(spec: str) -> None:
    words = marked_spaces("1", "123456789", "9" * 15)
    own = numtok.number_loss(spec, words)
    logits, _ = given(own)
    labels = torch.tensor([[words.get_vocab()["9" * 15]] * 12])
    logits = logits[:1, :12].requires_grad_()
    loss = own(logits, labels)
    loss.backward()
    assert loss.isfinite() and logits.grad is not None and logits.grad.isfinite().all()


@each(("spec", "rows"), [("was", [0, 0, 0]), ("smooth", [0, 1, 2])])
def test_accumulated_losses_add_up_to_that_of_the_step(spec: str, rows: list[int]) -> None:
    """For "was", this holds if all batches have equally many number tokens."""
    own = numtok.number_loss(spec, gpt2_words())
    logits, labels = given(own)
    labels = labels[rows]
    count = (labels != -100).sum()
    batches = zip(logits[:, None], labels[:, None], strict=True)
    parts = [own.with_cross_entropy(*batch, count) for batch in batches]
    torch.testing.assert_close(torch.stack(parts).sum(), own.with_cross_entropy(logits, labels))


def test_shifted_labels_are_those_of_causal_models() -> None:
    own, shifted = (numtok.number_loss("was", gpt2_words(), shift=shift) for shift in (False, True))
    logits, labels = given(own)
    aligned = logits[:, :-1], labels[:, 1:]
    torch.testing.assert_close(shifted(logits, labels), own(*aligned))
    whole = shifted.with_cross_entropy(logits, labels)
    torch.testing.assert_close(whole, own.with_cross_entropy(*aligned))
    each_label = shifted(logits, labels, "none")
    assert each_label.shape == labels.shape and not each_label[:, 0].any()
    torch.testing.assert_close(each_label[:, 1:], own(*aligned, "none"))


def test_half_precision_gives_a_loss_in_single() -> None:
    own = numtok.number_loss("mse", gpt2_words())
    logits, labels = given(own)
    loss = own(logits.bfloat16(), labels)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, own(logits, labels), rtol=0.05, atol=0.1)


def test_an_exported_tokenizer_of_numtok_is_its_codec() -> None:
    class Exported:
        codec: Codec = codec("digits")

    own = numtok.number_loss("was", Exported())
    assert own.tokens.values.tolist() == [*range(10)]


@pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning")
@pytest.mark.integration
def test_a_trainer_minimizes_the_whole_loss(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    words = gpt2_words()
    rows = [words(f"{a} of {b}").input_ids for a, b in zip(range(40), range(400, 440), strict=True)]
    own = numtok.number_loss("smooth", words, shift=True)
    losses = []

    def whole_loss(outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        loss: Tensor = own.with_cross_entropy(outputs.logits, labels, num_items_in_batch)
        losses.append(loss.item())
        return loss

    torch.manual_seed(0)
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 32}
    end = {"bos_token_id": words.eos_token_id, "eos_token_id": words.eos_token_id}
    config = transformers.GPT2Config(vocab_size=len(words), **shape, **end)
    settings = {"max_steps": 30, "learning_rate": 0.02, "report_to": "none", "use_cpu": True}
    trainer = transformers.Trainer(
        transformers.GPT2LMHeadModel(config),
        transformers.TrainingArguments(str(tmp_path), save_strategy="no", **settings),
        train_dataset=rows,
        data_collator=transformers.DataCollatorForLanguageModeling(words, mlm=False),
        compute_loss_func=whole_loss,
    )
    trainer.train()
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])


def test_wrong_input_is_refused_by_the_name_of_the_argument(says: Says) -> None:
    words = gpt2_words()
    own = numtok.number_loss("was", words)
    logits, labels = given(own, extra=0)
    size = logits.shape[2]
    with says.raises(UsageError, "unknown number loss 'wass'", "'was'"):
        numtok.number_loss("wass", words)
    with says.raises(UsageError, "spec must be a string"):
        numtok.number_loss(3, words)
    with says.raises(UsageError, "tokenizer must be", "str"):
        numtok.number_loss("was", "gpt2")
    with says.raises(UsageError, "tokenizer must have at least 2 tokens", "it has 0"):
        numtok.number_loss("was", TextCodec(codec("xval")))
    with says.raises(UsageError, "it has 1", "digit_level=False"):
        numtok.number_loss("was", word_pieces("5", "##5", "kg"), digit_level=True)
    with says.raises(UsageError, "unknown reduction 'median'", "mean"):
        numtok.number_loss("was", words, reduction="median")
    with says.raises(UsageError, "unknown reduction 'median'", "mean"):
        own(logits, labels, "median")
    with says.raises(UsageError, "logits must be a tensor [B, L, V]", f"[60, {size}]"):
        own(logits.flatten(0, 1), labels)
    with says.raises(UsageError, "labels a tensor [B, L]", "[3, 19]"):
        own(logits, labels[:, 1:])
    with says.raises(UsageError, "labels a tensor [B, L]", "list"):
        own(logits, labels.tolist())
    with says.raises(UsageError, "labels torch.int64", "torch.int32"):
        own(logits, labels.int())
    with says.raises(UsageError, "logits must be floating-point", "torch.int64"):
        own(logits.long(), labels)
    with says.raises(UsageError, f"logits have {size - 1} columns", f"id {size - 1}"):
        own(logits[..., :-1], labels)
    for wrong in (size, -1):
        with says.raises(UsageError, f"labels must be from 0 to {size - 1}", f"got {wrong}"):
            own(logits, torch.full_like(labels, wrong))
