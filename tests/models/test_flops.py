"""Operations of a batch, compared with PyTorch's count when the whole batch runs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from numtok.models.flops import ModelFlops, counted
from numtok.models.made_up import ANSWERS, TARGETS, TEXTS
from numtok.models.objectives.base import OBJECTIVES
from numtok.seeds import generator
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, model
from tests.fakepretrained import pretrained

one_thread = fakemodels.one_thread

SIZE = "nano,layers=2,heads=2,width=16"
HEADS = ("scalar", "pointwise", "riemann:8", "mdn:2", "decoder:ud")


def check(scheme: str, objective: str, **parts: Any) -> None:
    """Compare both counts of a small batch."""
    of = model(scheme, objective, size=parts.pop("size", SIZE), **parts)
    rows = batch(scheme, TEXTS, answers=ANSWERS, targets=TARGETS)
    if parts.get("classes"):
        rows.label[:] = 0
    given = of.given(OBJECTIVES.build(objective).example(rows, generator(0)))
    found = ModelFlops(of)(given).total
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        of.losses(given)
    assert found == counter.get_total_flops() > 0


SIZES = [f"{SIZE},{more}" for more in ("head_layers=2", "tied=yes", "positions=rotary")]
BIGRU = "bigru,width=16,layers=2"


@each(
    ("scheme", "objective", "parts"),
    [
        *(("p1000", spec, {}) for spec in ("ar", "mlm:targets", "mlm:tokens")),
        *(("p1000", spec, {"size": size}) for spec in ("ar", "mlm:tokens") for size in SIZES),
        ("xval", "mlm", {}),
        *(("xval", "ar", {"head": head}) for head in HEADS),
        *(("xval", "mlm:targets", {"embedder": name}) for name in ("lookup", "scaled", "fourier")),
        *((scheme, "ar", {}) for scheme in ("numgpt", "dice", "fone", "bits", "base10")),
        *(("digits", "ar", {"places": name}) for name in ("abacus", "coupling")),
        *(("p1000", "classify", {"classes": ("a", "b"), "size": size}) for size in (SIZE, BIGRU)),
        *(
            ("numvalue", spec, {"embedder": f"numvalue:{encoder}"})
            for encoder in ("rnn", "mlp", "scalar", "binary")
            for spec in ("numvalue", "numvalue:answer,project=answer", "numvalue,second=no")
        ),
    ],
)
def test_operations_are_those_that_torch_counts(
    scheme: str, objective: str, parts: dict[str, Any]
) -> None:
    check(scheme, objective, **parts)


def test_the_further_pass_is_told_apart() -> None:
    rows = batch("numvalue", TEXTS, answers=ANSWERS)
    found = {}
    for objective in ("numvalue", "numvalue,second=no"):
        of = model("numvalue", objective)
        given = of.given(OBJECTIVES.build(objective).example(rows, generator(0)))
        found[objective] = ModelFlops(of)(given)
    two, one = found["numvalue"], found["numvalue,second=no"]
    assert one.further == 0 < two.further == two.total - one.total


@each("kind", ["gpt2", "llama", "bert"])
def test_pretrained_trunks(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pretrained(kind, tmp_path / kind)
    check("p1000", "mlm" if kind == "bert" else "ar", size=f"hf:{kind}")


def test_a_backward_pass_takes_twice_as_many() -> None:
    of = model("p1000", "ar")
    given = of.given(OBJECTIVES.build("ar").example(batch("p1000", TEXTS), generator(0)))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        of.total(of.losses(given)).backward()  # type: ignore[no-untyped-call]
    assert counter.get_total_flops() == 3 * ModelFlops(of)(given).total


def test_counting_leaves_the_model_and_the_generator_as_they_were() -> None:
    of = model("fone", "ar").train()
    state, before = torch.get_rng_state(), [one.clone() for one in of.parameters()]
    ModelFlops(of.double())
    assert of.training and torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, before, [one.float() for one in of.parameters()]))


def test_counting_leaves_the_attention_of_other_threads_as_it_is() -> None:
    kernels = set[bool]()

    def attend() -> None:
        flash = torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
        kernels.add(flash)  # a process-wide flag
        torch.nn.functional.scaled_dot_product_attention(*torch.zeros(3, 1, 2, 4, 8))

    assert counted(attend) == 4 * 2 * 4 * 4 * 8
    assert kernels == {True}
