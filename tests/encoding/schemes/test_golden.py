"""Detect output that changes without a new revision.

Schemes have the same check in the contract suite. Digests of other classes are in their files,
next to ``revision``; those of the numeral policy and of the encode stage are below.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numtok.encoding.normalizers.base import NORMALIZERS, Moments, fit
from numtok.encoding.segments import cut
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts
from numtok.numerals.policy import PRESETS, SINGLE, NumeralPolicy
from numtok.registry import Registry
from numtok.stages import encode
from numtok.store.store import Store
from tests.cases import each

SAMPLE = Path(__file__).parents[3] / "numtok" / "data" / "sample" / "era5-uk.jsonl"
TEXTS = (
    *(json.loads(line)["text"][:2000] for line in SAMPLE.read_text("utf-8").splitlines()),
    "The 3 quick brown foxes ran 1,234.5 km (that is -7% of 2024-01-02), x1 = .5e-3; \u22124 °C.",
    "[NUM] and [\\MASK] stay; naïve déjà-vu 温度5度 'a'-5 \"-3.5\" "
    "0x1F 1.2.3 10.0.0.1 5. 5.e3 1_000",
)
NOTATIONS = (
    "1,234½ of 3 1/2, 2.5k, USD1.5M, 40x60x2.5, 4×10^5, (5.00), 7-, 23 %, 1'234'567, 1 234,5, "
    "1_000, 12,34,567, 200/2,500, pH6.5, ٣٫٥, 10⁻⁵"
)
NUMERALS = {3: "63eaffda35899513", 4: "a45cc6c4ad0b8527"}
ENCODE = {1: "a3d6e5b0628212e2"}


def digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def texts() -> Texts:
    return Texts.of(pa.array(TEXTS, pa.string()))


def test_numerals_are_those_of_their_revision() -> None:
    column = Texts.of(pa.array([*TEXTS, NOTATIONS], pa.string()))
    read: dict[int, list[Any]] = {}
    for spec in ("default", "xval", *SINGLE, *PRESETS):
        policy = NumeralPolicy.parse(spec)
        numerals = column.find(policy).numerals()
        literals = [numerals.literals.at(index) for index in range(len(numerals))]
        values = [value.hex() for value in numerals.values.tolist()]
        read.setdefault(policy.revision, []).append([literals, values])
    got = {revision: digest(found) for revision, found in read.items()}
    assert got == NUMERALS, "raise NumeralPolicy.revision"


def declaring(registry: Registry[Any]) -> list[str]:
    """Return the names of classes that declare a digest of their output."""
    return [name for name in registry if hasattr(registry[name], "digest")]


@each("name", declaring(TEXT_TOKENIZERS))
def test_a_text_tokenizer_gives_what_its_revision_gave(name: str) -> None:
    column = texts()
    pieces = cut(column, column.find(NumeralPolicy()))
    tokenizer = TEXT_TOKENIZERS.build(f"{name}:300" if TEXT_TOKENIZERS.required(name) else name)
    fitted = tokenizer.fit(pieces)
    got = digest(fitted.vocabulary(), fitted.encode(pieces).ids.tolist())
    assert got == getattr(tokenizer, "digest", None), "raise the tokenizer's revision"


@each("name", declaring(NORMALIZERS))
def test_a_normaliser_gives_what_its_revision_gave(name: str) -> None:
    values = np.array([-3.25, -1e-9, 0.0, 0.5, 7.0, 1e6])
    fitted = fit(NORMALIZERS.build(name), Moments.of(values))
    got = digest([f"{value:.12g}" for value in fitted.forward(values).tolist()])
    assert got == getattr(fitted.normalizer, "digest", None), "raise the normalizer's revision"


def test_encode_gives_what_its_revision_gave(tmp_path: Path) -> None:
    columns: list[Any] = []
    for scheme in ("p1000", "xval"):
        config = encode.Config((str(SAMPLE),), scheme=scheme)
        made = encode.run(config, Store(tmp_path), lambda *_: None).artifact
        assert made is not None
        table = pq.read_table(made.path / "train-00000.parquet")
        rows = hashlib.sha256(json.dumps(table.to_pylist()).encode()).hexdigest()
        columns.append([table.schema.names, rows])
    assert digest(columns) == ENCODE.get(encode.REVISION), "raise encode.REVISION"
