"""Data frames in place of files: functions write them to a file that exists during the call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from numtok.data.tables.frames import is_frame, write_frame
from numtok.errors import NumtokError, UsageError
from numtok.store.store import SPOOL, Store

Value = TypeVar("Value", bound=Any)

_NAME = "frame"  # name of artifacts, and of the frame in messages
_FILE = f"{_NAME}.parquet"
#: The setting of each command that accepts a data frame.
_SETTINGS = {"encode": "inputs", "features": "inputs", "predict": "file", "profile": "inputs",
             "race": "inputs", "table": "path", "train": "data"}  # fmt: skip


@contextmanager
def frames_as_files(
    config: type, arguments: Sequence[Any], settings: Mapping[str, Any], store: Store
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments of a command with paths of Parquet files in place of data frames.

    The files are in a hidden folder of the store and are removed after the block. Errors that are
    raised in the block call them ``frame``. Raises UsageError for a data frame of answers to score.
    """
    command = config.__module__.rpartition(".")[2]
    accepted = _SETTINGS.get(command)
    with ExitStack() as stack:

        def as_file(value: Any) -> Any:
            if not is_frame(value):
                return value
            if command == "score":
                raise UsageError(
                    "numtok.score reads files, not a data frame. For answers in memory: "
                    "numtok.score_answers"
                )
            if accepted is None:
                return value
            path = stack.enter_context(store.spool()) / _FILE
            write_frame(value, path, _NAME)
            stack.enter_context(named(path, _NAME))
            return str(path)

        by_name = {name: as_file(settings[name]) for name in settings if accepted in (None, name)}
        yield [as_file(value) for value in arguments], {**settings, **by_name}


def frame_named(value: Value, inputs: Sequence[str]) -> Value:
    """Return settings or a result in which the file of a data frame is called ``frame``.

    ``inputs`` are the inputs of the command; if the first is not such a file, nothing changes.
    """
    path = Path(inputs[0])
    if path.name != _FILE or not path.parent.name.startswith(SPOOL):
        return value

    def renamed(part: Any) -> Any:
        if isinstance(part, str):
            return part.replace(inputs[0], _NAME)
        if type(part) in (list, tuple):
            return type(part)(map(renamed, part))
        return part

    is_struct = isinstance(value, msgspec.Struct)
    names = value.__struct_fields__ if is_struct else [field.name for field in fields(value)]
    parts = {name: renamed(getattr(value, name)) for name in names}
    return (msgspec.structs.replace if is_struct else replace)(value, **parts)


@contextmanager
def named(path: Path, name: str) -> Iterator[None]:
    """Replace a path in the messages of errors that are raised in the block."""
    try:
        yield
    except NumtokError as error:
        error.args = tuple(
            part.replace(str(path), name) if isinstance(part, str) else part for part in error.args
        )
        raise
