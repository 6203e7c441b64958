"""openml: regression tasks from OpenML, fetched and cached by the openml package."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from numtok.data.sources.base import Dataset, Origin, TableSource
from numtok.errors import DataError, StoreError, UsageError, needing


@dataclass(frozen=True)
class Openml(TableSource):
    """Regression tasks from OpenML: one task, or all tasks in a benchmark suite.

    suite
        Number of a suite. 353 is OpenML-CTR23 (Fischer et al. 2023); 269 contains the regression
        tasks of AMLB (Gijsbers et al. 2024).
    task
        Number of one task, such as 361234.

    The openml package caches the files (in ``OPENML_CACHE_DIR``); only the list of tasks in a suite
    is requested each time. The folds ``split_0``, ``split_1``, ... are those of the OpenML task,
    ordered by repeat. Nominal features become categories. Features that OpenML marks as ids or as
    ignored are omitted.

    Raises UsageError if neither or both of ``suite`` and ``task`` are given, or if the package is
    missing.
    """

    revision = 1
    asks_for_names = True
    checked_at: ClassVar[str] = "openml,task=361234"

    suite: int | None = None
    task: int | None = None

    def __post_init__(self) -> None:
        if (self.suite is None) == (self.task is None):
            raise UsageError(
                "fetch openml needs either --suite N or --task N. Suites: 353 is OpenML-CTR23, 269 "
                "the regression tasks of AMLB"
            )

    def origins(self) -> Iterator[Origin]:
        openml = _package()
        if self.task is not None:
            tasks = [self.task]
        else:
            with _naming(f"suite {self.suite}"):
                tasks = openml.study.get_suite(self.suite).tasks or []
        for task_id in tasks:
            task, dataset = _get(task_id)
            with _naming(f"the splits of task {task_id}"):
                task.download_split()
            data = dataset.parquet_file or dataset.data_file
            splits = Path(openml.config.get_cache_directory(), "tasks", str(task_id))
            files = {"data": str(data), "splits": str(splits / "datasplits.arff")}
            yield Origin(f"openml-{task_id}", {"task": task_id}, {"task": task_id}, files)

    def read(self, origin: Origin, files: Mapping[str, Path]) -> Dataset:
        task, dataset = _get(int(origin.key["task"]))
        where = f"OpenML task {task.task_id} ({dataset.name})"
        if task.task_type_id.name != "SUPERVISED_REGRESSION":
            raise DataError(f"{where} must be of type Supervised Regression (got {task.task_type})")
        with _naming(where):
            frame, _, nominal, _ = dataset.get_data()
            rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        for index, name in enumerate(rows.column_names):
            # Categories may have numbers as names; booleans are already a type of their own.
            if nominal[index] and pa.types.is_dictionary(rows[name].type):
                names = rows[name].combine_chunks().dictionary_decode().cast(pa.string())
                rows = rows.set_column(index, name, names)
        licence = dataset.licence or "not stated"
        notes = [
            f"OpenML data set {dataset.id}, {dataset.name!r} (version {dataset.version}), task "
            f"{task.task_id}; licence: {licence}"
        ]
        if nominal[rows.column_names.index(task.target_name)]:
            notes.append("the target is stored as a category of numbers, and read as numbers")
        return Dataset(rows, task.target_name, _folds(task, rows.num_rows), notes)


def _package() -> Any:
    with needing("fetch openml", "openml"):
        import openml
    logging.getLogger("openml").setLevel(logging.ERROR)  # no warnings about other file formats
    return openml


def _get(task_id: int) -> tuple[Any, Any]:
    """Return a task and its data set, downloaded if they are not cached."""
    openml = _package()
    with _naming(f"task {task_id}"):
        task = openml.tasks.get_task(task_id, download_data=False)
        # Unlike pickles, feather files can be read by other versions of pandas.
        dataset = task.get_dataset(download_data=True, cache_format="feather")
    return task, dataset


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Turn errors of the package and its libraries into one line."""
    openml = _package()
    try:
        yield
    except openml.exceptions.OpenMLServerException as error:  # the server answered
        raise UsageError(f"OpenML refused to send {what}: {error.message}") from error
    except Exception as error:
        why = " ".join(str(_root(error)).split())
        cache = openml.config.get_cache_directory()
        raise StoreError(
            f"cannot get {what} of OpenML: {why}. Check the network and run the command again; "
            f"finished downloads are in {cache}"
        ) from error


def _root(error: Exception) -> BaseException:
    """Return the system's network error that two libraries wrapped."""
    wrapped = error.args[0] if error.args else error
    root = getattr(wrapped, "reason", error)  # of the urllib3 error inside the requests error
    while isinstance(root, BaseException) and root.__cause__ is not None:
        root = root.__cause__
    return root if isinstance(root, OSError) else error


def _folds(task: Any, rows: int) -> "dict[str, pa.Array[Any]]":
    """Return the split of each row for every repeat and fold of the task."""
    repeats, folds, _ = task.get_split_dimensions()
    columns = {}
    for repeat in range(repeats):
        for fold in range(folds):
            train, test = task.get_train_test_split_indices(fold=fold, repeat=repeat)
            splits = np.full(rows, None, object)
            splits[train], splits[test] = "train", "test"
            columns[f"split_{repeat * folds + fold}"] = pa.array(splits.tolist(), pa.string())
    return columns
