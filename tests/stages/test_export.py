"""``numtok export``: folders that other libraries open."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import numtok as library
from numtok.errors import DataError, StoreError, UsageError
from numtok.stages import export
from numtok.store.artifact import ENCODED, MODEL
from numtok.store.store import Store
from tests import chain, hub
from tests.cases import case
from tests.chain import jsonl
from tests.messages import Says
from tests.shell import Shell

datasets = hub.datasets

SPLITS = ("train", "validation", "ood-a1")


def rows(splits: tuple[str, ...] = SPLITS) -> list[dict[str, object]]:
    return [
        {"text": f"{one} of {index}.5", "id": f"{split}-{one}", "split": split, "label": "a"}
        for index, split in enumerate(splits)
        for one in range(3)
    ]


@pytest.fixture
def encoded(tmp_path: Path) -> Callable[..., tuple[str, Store]]:
    def make(splits: tuple[str, ...] = SPLITS, scheme: str = "xval") -> tuple[str, Store]:
        path, store = jsonl(tmp_path / "a.jsonl", rows(splits)), Store(tmp_path / "artifacts")
        return chain.encoded(store, path, scheme=scheme).ref, store

    return make


@pytest.mark.integration
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
def test_datasets_opens_the_splits(encoded: Any, tmp_path: Path, datasets: Any) -> None:
    for scheme in ("xval", "p1000"):
        with case(scheme):
            ref, store = encoded(scheme=scheme)
            folder = tmp_path / scheme
            assert library.export(ref, to=folder, store=store.root) == folder
            loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
            sizes = {name: len(split) for name, split in loaded.items()}
            assert sizes == {"train": 3, "validation": 3, "ood_a1": 3}
            assert loaded["ood_a1"][1]["numbers"] == [1.0, 2.5]
            row = loaded["train"][2]
            codec = library.Codec.load(folder)
            assert codec.encode(["2 of 0.5"]).tokens.tolist() == row["tokens"]
            card = (folder / "README.md").read_text()
            assert scheme in card and "9 rows with 18 numbers" in card and "`ood-a1`" in card
            assert (folder / "tokenizer.json").exists() == (scheme == "p1000")


def test_a_file_that_is_a_link_is_not_followed(encoded: Any, tmp_path: Path) -> None:
    ref, store = encoded()
    shards = sorted(store.resolve(ref).path.rglob("*.parquet"))
    (tmp_path / "elsewhere").write_bytes(shards[0].read_bytes())
    shards[0].unlink()
    shards[0].symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="not a plain file"):
        export.run(export.Config(ref, tmp_path / "made"), store)
    assert not (tmp_path / "made").exists()
    with pytest.raises(StoreError, match="not a plain file"):  # like every command that reads it
        store.resolve(ref, {ENCODED, MODEL})
    assert store.resolve(ref).ref == ref  # as in rm, show and verify


@pytest.mark.integration
def test_the_command_prints_the_folder_and_refuses_one_that_is_there(
    encoded: Any, tmp_path: Path, numtok: Shell, says: Says
) -> None:
    ref, store = encoded()
    words = ("--store", str(store.root), "export", ref, "--to", f"{tmp_path}/made")
    done = numtok(*words)
    assert (done.code, done.out.split()) == (0, [f"{tmp_path}/made"])
    says.refused(numtok(*words), 2, f"--to {tmp_path}/made already exists. ")
    for name in ("full", "file"):
        target = tmp_path / name
        target.mkdir() if name == "full" else target.write_text("mine")
        with case(name), pytest.raises(UsageError, match="already exists"):
            export.run(export.Config(ref, target), store)
    assert (tmp_path / "file").read_text() == "mine" and not list((tmp_path / "full").iterdir())


def test_damage_and_what_cannot_be_leave_nothing(encoded: Any, tmp_path: Path) -> None:
    ref, store = encoded()
    shard = store.resolve(ref).path / "validation-00000.parquet"
    before = set(tmp_path.iterdir())
    shard.chmod(0o644)
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="validation-00000"):
        export.run(export.Config(ref, tmp_path / "made"), store)
    assert set(tmp_path.iterdir()) == before

    clash, store = encoded(("train", "ood-a", "ood_a"))
    with pytest.raises(DataError, match=r"differ only in - and _ \(ood-a, ood_a, train\)"):
        export.run(export.Config(clash, tmp_path / "made"), store)
    with pytest.raises(UsageError, match="datasets"):
        export.Config(ref, tmp_path / "made", "csv")
    with pytest.raises(StoreError, match="nowhere"):
        export.run(export.Config(ref, tmp_path / "nowhere" / "made"), store)
    assert set(tmp_path.iterdir()) == before
