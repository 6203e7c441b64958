"""How a trained NumValue model uses its vectors.

    NUMTOK_STORE=artifacts python benchmarks/numvalue_vectors.py MODEL DATA

For questions and answers, the first table has:

- the mean cosine between f(x) of two random numbers;
- the mean cosine between proj(h) and the f(x) of its own number, or of another one;
- the mean lengths of f(x) and proj(h).

The second table has the fraction of exact answers with other vectors, generated without a grammar.
When a model generates, it has f(x) in the question, and proj(h) at each generated `<num>`. An
answer is exact only if its tokens are the true ones. Nothing is asserted.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from numtok.config import threads
from numtok.encoding.grammar import Grammar
from numtok.encoding.splits import learnt_values, read_split
from numtok.models.batches import Batch, Batches
from numtok.models.generation import Writer
from numtok.models.model import Model
from numtok.models.trunks.base import TrunkCache
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel, read_model

Seen = Callable[[Tensor, Tensor], Tensor]  # f(x), proj(h) -> the vectors that the model sees


@contextmanager
def seeing(model: Model, asked: Seen, written: Seen) -> Iterator[None]:
    """Replace the vectors in the question (``asked``) and at generated `<num>` tokens
    (``written``).

    f(x) of a generated number is not known yet; ``written`` gets the embedding of `<num>` instead.
    """
    projection, embedder = model.own, model.embedder
    prefix = model.ahead
    assert prefix is not None and projection is not None

    def extend(
        tokens_BL: Tensor, values_BL: Tensor, cache: TrunkCache, at: Tensor | None = None
    ) -> Tensor:
        embedded = embedder(tokens_BL, values_BL)
        projected = projection(model.trunk(embedded, None, None)).roll(1, dims=1)
        is_prefix = tokens_BL.eq(prefix)[:, :, None]
        seen = torch.where(is_prefix, asked(embedded, projected), embedded)
        return model.cached_trunk.extend(seen, cache, at)

    def extend_written(
        tokens_B: Tensor, values_B: Tensor, cache: TrunkCache, said_BD: Tensor
    ) -> Tensor:
        embedded = embedder(tokens_B[:, None], values_B[:, None])
        is_prefix = tokens_B.eq(prefix)[:, None, None]
        seen = torch.where(is_prefix, written(embedded, projection(said_BD)[:, None]), embedded)
        return model.cached_trunk.extend(seen, cache)[:, 0]

    with_own = {"extend": extend, "extend_written": extend_written}
    for name, method in with_own.items():
        setattr(model, name, method)
    try:
        yield
    finally:
        for name in with_own:
            delattr(model, name)


@torch.no_grad()
def vectors(model: Model, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Return f(x) and proj(h) [P, D] of the numbers of some rows, and whether they are in an
    answer."""
    example = model.objective.example(batch, np.random.default_rng(0))
    given = model.given(example)
    embedded = model.embedder(given.tokens, given.values)
    hidden = model.trunk(embedded, given.real, None)
    assert model.ahead is not None and model.own is not None
    at = given.tokens.eq(model.ahead).flatten().nonzero()[:, 0]
    row, place = at // embedded.shape[1], at % embedded.shape[1]
    in_answer = place >= torch.from_numpy(batch.answer_start)[row] + 1  # [END] comes first
    return (
        embedded.flatten(0, 1)[at],
        model.own(hidden.flatten(0, 1)[at - 1]),
        in_answer,
    )


def alike(f_PD: Tensor, proj_PD: Tensor) -> list[str]:
    """Return cosines of f and another f, proj and its own f, and proj and another f, then mean
    lengths of f and proj.
    """
    other = f_PD[torch.randperm(len(f_PD), generator=torch.Generator().manual_seed(0))]
    cosines = [
        F.cosine_similarity(one, two, dim=1).mean().item()
        for one, two in ((f_PD, other), (proj_PD, f_PD), (proj_PD, other))
    ]
    lengths = [one.norm(dim=1).mean().item() for one in (f_PD, proj_PD)]
    return [f"{one:.3f}" for one in cosines] + [f"{one:.1f}" for one in lengths]


def share(loaded: LoadedModel, batch: Batch, true: list[list[int]]) -> float:
    """Return the fraction of exact answers, generated without a grammar."""
    longest = max(map(len, true)) + 1
    grammar = Grammar(loaded.codec.scheme)
    written, _ = Writer(
        model=loaded.model, codec=loaded.codec, grammar=grammar, constrained=False, longest=longest
    ).write(batch)
    own = [written.answer(row)[0].tolist() for row in range(len(true))]
    return float(np.mean([a == b for a, b in zip(own, true, strict=True)] & written.ended))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rows", type=int, default=1200, help="of the test split, drawn at random")
    arguments = parser.parse_args()
    torch.set_num_threads(threads() or torch.get_num_threads())
    store = Store(Path(os.environ.get("NUMTOK_STORE", "artifacts")))
    loaded = read_model(store.resolve(arguments.model), torch.device("cpu"))
    model = loaded.model
    if not model.replaces_numbers:
        parser.error(f"{arguments.model} has no vectors; name a model of --objective numvalue")
    samples = read_split(store.resolve(arguments.data), "test")
    rows = np.sort(np.random.default_rng(0).permutation(len(samples))[: arguments.rows])
    batch = Batches(samples, learnt_values(samples, loaded.codec), len(rows)).of(rows)
    console = Console()

    f_PD, proj_PD, in_answer = vectors(model, batch)
    table = Table("numbers", "n", "f, other f", "proj, f", "proj, other f", "|f|", "|proj|")
    for name, of in (("questions", ~in_answer), ("answers", in_answer)):
        table.add_row(name, str(int(of.sum())), *alike(f_PD[of], proj_PD[of]))
    console.print(table)

    mean_f, mean_proj = f_PD.mean(0), proj_PD[in_answer].mean(0)
    length = f_PD.norm(dim=1).mean()
    own: Seen = lambda f, proj: f  # noqa: E731
    projected: Seen = lambda f, proj: proj  # noqa: E731
    ways: dict[str, tuple[Seen, Seen]] = {
        "as they are": (own, projected),
        "proj(h) in the question, too": (projected, projected),
        "one f(x) for all numbers of questions": (lambda f, proj: mean_f, projected),
        "one proj(h) for all that are written": (own, lambda f, proj: mean_proj),
        "proj(h) as long as f(x)": (own, lambda f, proj: F.normalize(proj, dim=-1) * length),
    }
    true = [samples.answer(row).tokens.tolist() for row in rows.tolist()]
    table = Table("vectors", "exact")
    for name, way in ways.items():
        with torch.no_grad(), seeing(model, *way):
            table.add_row(name, f"{share(loaded, batch, true):.3f}")
    console.print(table)


if __name__ == "__main__":
    main()
