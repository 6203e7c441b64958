"""model.json: both kinds of models, and models that a former numtok wrote."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from numtok.errors import StoreError, UsageError
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from numtok.training.model_json import TextModelFile, read_model_file, write_model_file
from numtok.training.regressor_files import read_regressor

#: A store of models of format 1.
FORMER = Path(__file__).parent / "format_1"
CPU = torch.device("cpu")


@pytest.fixture
def former(tmp_path: Path) -> Store:
    shutil.copytree(FORMER / "model", tmp_path / "artifacts" / "model")
    return Store(tmp_path / "artifacts")


@pytest.mark.parametrize("name", ["value", "scaled", "labels", "table"])
def test_a_former_file_written_again_is_of_this_format_and_says_the_same(
    former: Store, tmp_path: Path, name: str
) -> None:
    artifact = former.resolve(name)
    file = read_model_file(artifact)
    write_model_file(tmp_path, file)
    text = (tmp_path / "model.json").read_text()
    assert '"format": 2' in text
    for former_file in ("model.json", "regressor.json"):
        (artifact.path / former_file).unlink(missing_ok=True)
    listing, manifest = artifact.path / "files.jsonl", artifact.path / "manifest.json"
    listed = listing.read_bytes()
    listing.write_bytes(listed.replace(b"regressor.json", b"model.json"))
    before, after = (hashlib.sha256(one).hexdigest() for one in (listed, listing.read_bytes()))
    manifest.write_text(manifest.read_text().replace(before, after))
    (artifact.path / "model.json").write_text(text)
    assert read_model_file(former.resolve(name)) == file


def test_a_model_of_the_other_kind_is_refused(former: Store) -> None:
    with pytest.raises(UsageError, match=r"table@.* is a model of tables; give one of texts"):
        read_model(former.resolve("table"), CPU)
    with pytest.raises(UsageError, match=r"value@.* is a model of texts; give one of tables"):
        read_regressor(former.resolve("value"), CPU)


def edited(artifact: Artifact, name: str, edit: Callable[[dict[str, Any]], object]) -> str:
    content = json.loads((artifact.path / name).read_text())
    edit(content)
    (artifact.path / name).write_text(json.dumps(content))
    with pytest.raises(StoreError) as found:
        read_model_file(artifact)
    return str(found.value)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda file: file["settings"].update(bigru=None), "there is one trunk, not 0"),
        (lambda file: file["settings"].update(shape={"layers": 1}), "there is one trunk, not 2"),
        (lambda file: file.update(format=0), "there is no format 0"),
        (lambda file: file.pop("trained"), "Object missing required field `trained`"),
        (lambda file: file.update(more=1), "Object contains unknown field `more`"),
        (lambda file: file["settings"].update(more=1), "Object contains unknown field `more`"),
    ],
)
def test_damage_to_a_model_of_texts_of_format_1_is_named(
    former: Store, edit: Callable[[dict[str, Any]], object], why: str
) -> None:
    artifact = former.resolve("labels")
    assert why in edited(artifact, "model.json", edit)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (lambda file: file.pop("trunk"), "Object missing required field `trunk`"),
        (lambda file: file.pop("head"), "Object missing required field `head`"),
        (lambda file: file.update(folds=[]), "there is no fold, or one twice"),
        (lambda file: file.update(format=7), "has format 7, this numtok knows up to 2"),
        (lambda file: file["folds"][0].update(more=1), "Object contains unknown field `more`"),
    ],
)
def test_damage_to_a_model_of_tables_of_format_1_is_named(
    former: Store, edit: Callable[[dict[str, Any]], object], why: str
) -> None:
    artifact = former.resolve("table")
    message = edited(artifact, "regressor.json", edit)
    assert why in message and str(artifact.path / "regressor.json") in message


def test_kinds_of_models_are_told_apart(former: Store) -> None:
    kinds = {name: isinstance(read_model_file(former.resolve(name)), TextModelFile) for name in
             ("value", "labels", "table")}  # fmt: skip
    assert kinds == {"value": True, "labels": True, "table": False}
