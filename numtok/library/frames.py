"""Data frames in place of files: functions write them to a file that exists during the call."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from numtok.cli.output.printing import Format
from numtok.data.tables.frames import is_frame, write_frame
from numtok.errors import NumtokError
from numtok.library.view import Shown, printed
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


class FrameFiles:
    """Arguments of a command, with paths of Parquet files in place of data frames.

    arguments, settings
        Positional and named arguments.
    paths
        Files of the frames.
    """

    def __init__(self, arguments: Sequence[Any], settings: Mapping[str, Any]) -> None:
        self.arguments = list(arguments)
        self.settings = dict(settings)
        self.paths: list[Path] = []

    def renamed(self, result: Any) -> Any:
        """Return the result of the command, in which the files are called ``frame``."""
        if not (self.paths and isinstance(result, Shown)):
            return result

        def show(format: Format) -> None:
            print(_renamed(printed(result.show, format), self.paths))

        texts = {
            field.name: _renamed(getattr(result.result, field.name), self.paths)
            for field in fields(result.result)
        }
        return replace(result, result=replace(result.result, **texts), show=show)


@contextmanager
def frames_as_files(
    config: type, arguments: Sequence[Any], settings: Mapping[str, Any], store: Store
) -> Iterator[FrameFiles]:
    """Write the data frames among the arguments of a command to files.

    The files are in a hidden folder of the store and are removed after the block. Errors that are
    raised in the block call them ``frame``.
    """
    given = FrameFiles(arguments, settings)
    with ExitStack() as stack:

        def as_file(value: Any) -> Any:
            if not is_frame(value):
                return value
            path = stack.enter_context(store.spool()) / f"{_NAME}.parquet"
            write_frame(value, path, _NAME)
            stack.enter_context(named(path, _NAME))
            given.paths.append(path)
            return str(path)

        if (accepted := _SETTINGS.get(config)) is not None:
            given.arguments = list(map(as_file, arguments))
            if accepted in settings:
                given.settings[accepted] = as_file(settings[accepted])
        yield given


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


def _renamed(value: Any, paths: Sequence[Path]) -> Any:
    """Replace paths in a text, or in the texts of a list or tuple."""
    if type(value) in (list, tuple) and all(isinstance(item, str) for item in value):
        return type(value)(_renamed(item, paths) for item in value)
    if isinstance(value, str):
        for path in paths:
            value = value.replace(str(path), _NAME)
    return value
