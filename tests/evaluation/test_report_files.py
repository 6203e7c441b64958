"""Report files that this numtok does not know, and damaged ones."""

from pathlib import Path

import pytest

from numtok.errors import StoreError
from numtok.evaluation.report_files import read
from numtok.reports import REPORT_FILE
from numtok.store.store import Store
from tests.fakereports import Fake, make


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b'"schema":1', b'"schema":3', "has schema 3, this numtok knows up to 1; use the numtok"),
        (b'"baselines":{', b'"baselines":1,"x":{', "Expected `object`, got `int` - at `$.base"),
        (b'"baselines"', b'"floors"', "Object contains unknown field `floors`"),
        (b'"schema":1', b'"schema"', "it is not JSON"),
    ],
)
def test_another_schema_or_damage_is_one_line(
    tmp_path: Path, before: bytes, after: bytes, why: str
) -> None:
    artifact = make(Store(tmp_path), Fake())
    path = artifact.path / REPORT_FILE
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))
    with pytest.raises(StoreError) as caught:
        read(artifact)
    assert why in str(caught.value) and "\n" not in str(caught.value)
