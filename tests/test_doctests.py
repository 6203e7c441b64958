"""Examples in docstrings are correct, in every module whose examples can run on their own."""

import doctest
import importlib
import re
from typing import Any

import numpy as np
import pytest

from numtok.data.tables.table import Feature
from numtok.encoding.schemes.base import SCHEMES
from numtok.metrics.base import Predictions
from numtok.reports import Figure
from tests.cases import case
from tests.imports import tree

#: Names that examples use without an import.
GIVEN: dict[str, Any] = {
    "Feature": Feature, "Figure": Figure, "Predictions": Predictions, "SCHEMES": SCHEMES, "np": np,
}  # fmt: skip
#: Modules whose examples need a model, an artifact or another object of the reader.
ILLUSTRATED = (
    *("numtok.encoding.grammar", "numtok.encoding.normalizers", "numtok.files", "numtok.hf"),
    *("numtok.library", "numtok.models.distributions.intervals", "numtok.models.likelihood"),
    *("numtok.store.store", "numtok.models.vocabulary"),
)


@pytest.mark.integration
def test_examples_give_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, source in tree().items():
        if re.search(r"^ *>>> ", source.text, re.M) and not f"{name}.".startswith(ILLUSTRATED):
            with case(name):
                module = importlib.import_module(name)
                found = doctest.testmod(
                    module, extraglobs=GIVEN, optionflags=doctest.ELLIPSIS, report=False
                )
                assert found.attempted and not found.failed
