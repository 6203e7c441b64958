"""Data frames in place of files: functions write them to a file that exists during the call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from numtok.data.tables.frames import is_frame, write_frame
from numtok.errors import NumtokError
from numtok.settings.encode import Config as EncodeConfig
from numtok.settings.predict import Config as PredictConfig
from numtok.settings.profile import Config as ProfileConfig
from numtok.settings.race import Config as RaceConfig
from numtok.settings.table import Config as TableConfig
from numtok.settings.train import Config as TrainConfig
from numtok.store.store import Store

_NAME = "frame"  # name of artifacts, and of the frame in messages
#: The setting of each command that accepts a data frame.
_SETTINGS: Mapping[type, str] = {
    EncodeConfig: "inputs",
    PredictConfig: "file",
    ProfileConfig: "inputs",
    RaceConfig: "inputs",
    TableConfig: "path",
    TrainConfig: "data",
}


@contextmanager
def frames_as_files(
    config: type, arguments: Sequence[Any], settings: Mapping[str, Any], store: Store
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield the arguments of a command with paths of Parquet files in place of data frames.

    The files are in a hidden folder of the store and are removed after the block.
    """
    with ExitStack() as stack:

        def as_file(value: Any) -> Any:
            if not is_frame(value):
                return value
            path = stack.enter_context(store.spool()) / f"{_NAME}.parquet"
            write_frame(value, path, _NAME)
            stack.enter_context(named(path, _NAME))
            return str(path)

        accepted = _SETTINGS.get(config)
        if accepted is None:
            yield list(arguments), dict(settings)
            return
        by_name = {accepted: as_file(settings[accepted])} if accepted in settings else {}
        yield [as_file(value) for value in arguments], {**settings, **by_name}


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
