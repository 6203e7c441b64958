"""Resolve input arguments (paths, folders, addresses, data artifacts) to files and their splits."""

from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import NamedTuple, TypeVar

from numtok.data.fetching.file_systems import noting_silence
from numtok.data.reading.addresses import Address, is_address, shown_of
from numtok.data.reading.split_rule import CALIBRATION, SPLIT_RULE, SplitRule, is_split
from numtok.data.reading.streams import STDIN, Spool, is_stdin, is_stream, stem_of
from numtok.errors import DataError, NumtokError, UsageError, file_not_found
from numtok.store.artifact import DATA, FILES, MANIFEST, Output, Parent, Resolve
from numtok.store.draft import shorten

#: Split suggested by a file name.
_SPLIT_OF = {
    "test": "test",
    CALIBRATION: CALIBRATION,
    **dict.fromkeys(("validation", "valid", "val", "dev"), "validation"),
}
CSV = (".csv", ".tsv")  # endings of tables as text
_OTHER_DATA = (*CSV, ".json", ".txt", ".arrow", ".gz", ".zst", ".zstd", ".bz2", ".xz")
_PACKINGS = {"": "jsonl", ".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
FORMATS = {
    **{rows + end: form for rows in (".jsonl", ".ndjson") for end, form in _PACKINGS.items()},
    ".parquet": "parquet",
}
_READ = ".jsonl or .ndjson (plain, .gz, .zst), or .parquet"

Found = TypeVar("Found")
Kept = TypeVar("Kept", Path, Address)


class InputFile(NamedTuple):
    """One input file or remote object.

    ``split`` is the split of all rows in the file, if the user or a data artifact assigns one;
    otherwise None.
    """

    path: Path | Address
    split: str | None
    shown: str  # as the user wrote it
    owner: Parent | None = None  # the data artifact that contains it
    written: Output | None = None  # size and digest recorded by that artifact

    @property
    def format(self) -> str:
        """Format according to the file extension; ``jsonl`` if the extension is unknown."""
        return _format_of(self.path) or "jsonl"

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        path = self.path
        return path.size if isinstance(path, Address) else path.stat().st_size


def find_sources(
    arguments: Sequence[str], resolve: Resolve, note: Callable[[str], None], spool: Spool
) -> tuple[list[InputFile], str]:
    """Resolve input arguments to files, and derive a name for the resulting artifact.

    An input is a path, a folder, ``split=PATH``, ``-`` or a pipe (saved to a file by ``spool``), an
    address such as ``s3://bucket/part-*.jsonl``, or a REF of a data artifact. ``note`` is called
    with messages for the user, for example about skipped files. Raises UsageError if an argument is
    invalid, or if a file is given twice.
    """
    sources: list[InputFile] = []
    streams: set[str] = set()
    name = ""
    for argument in arguments:
        split, path = _split_and_path(argument)
        if not path:  # as a path, it would be the current folder
            raise UsageError("an input is empty (got ''). Name a file, a folder or a REF")
        if is_address(path):
            objects, stem = _objects(path, note)
            matches = [InputFile(address, split, str(address)) for address in objects]
        elif is_stream(path):
            shown = STDIN if is_stdin(path) else path
            if shown in streams:
                raise UsageError(f"{shown} is given twice, but can be read only once")
            streams.add(shown)
            spooled = spool.keep(path, _ending_of(Path(path)) or ".jsonl")
            matches = [InputFile(spooled, split, shown)]
            stem = stem_of(path)
        elif Path(path).exists() and not _is_artifact(Path(path)):
            matches = [InputFile(file, split, str(file)) for file in _files_below(Path(path), note)]
            stem = Path(path).resolve().name
        else:
            matches = _files_of_artifact(path, split, resolve)
            stem = matches[0].owner.where.partition("@")[0] if matches[0].owner else path
        sources += matches
        name = name or as_name(stem)
    paths: set[Path | Address] = set()
    for source in sources:
        real = source.path.resolve() if isinstance(source.path, Path) else source.path
        if real in paths:
            raise UsageError(f"{source.shown} is given twice. Pass each file once")
        paths.add(real)
    _note_names(sources, note)
    return sources, name


def shown_input(argument: str) -> str:
    """Return an input argument with secrets removed, so that it can be stored."""
    split, path = _split_and_path(argument)
    shown = shown_of(path) if is_address(path) else path
    return shown if split is None else f"{split}={shown}"


def _note_names(sources: Sequence[InputFile], note: Callable[[str], None]) -> None:
    """Note that a file name such as test.jsonl does not assign rows to a split."""
    for source in sources:
        stem = as_name(source.path.name).rstrip("-0123456789")
        if source.split is None and stem in _SPLIT_OF:
            note(
                f"{source.shown}: the file name does not assign rows to a split, so rows without a "
                f"split go to train. Assign one: {_SPLIT_OF[stem]}={source.shown}"
            )


def check_rule(rule: SplitRule | None, sources: Sequence[InputFile]) -> None:
    """Raise UsageError if ``--split`` has no effect because every input already has a split."""
    if rule and all(source.split is not None for source in sources):
        raise UsageError(
            "--split has no effect: every input already has a split. Omit it, or pass inputs "
            "without split="
        )


def _split_and_path(argument: str) -> tuple[str | None, str]:
    split, equals, path = argument.partition("=")
    if not equals or is_address(argument) or Path(argument).exists():
        return None, argument
    if not path or not is_split(split):
        raise UsageError(
            f"{argument!r}: {split!r} cannot be the name of a split. Write split=PATH; names of "
            f"splits are {SPLIT_RULE}"
        )
    return split, path


def _ending_of(path: Path | Address) -> str | None:
    """Return the ending of a file name that determines the format."""
    return next((ending for ending in FORMATS if path.name.endswith(ending)), None)


def _format_of(path: Path | Address) -> str | None:
    return FORMATS.get(_ending_of(path) or "")


def _is_artifact(folder: Path) -> bool:
    return (folder / MANIFEST).is_file() and (folder / FILES).is_file()


def _files_below(path: Path, note: Callable[[str], None]) -> list[Path]:
    if path.is_dir():
        every = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
            # The store, with artifacts of numtok, may be in the same folder.
            and not any(_is_artifact(folder) for folder in file.parents)
        ]
        return _readable(str(path), [(str(file.relative_to(path)), file) for file in every], note)
    _check_format(path)
    if not path.is_file():
        raise UsageError(f"{path} is not a file. Pass a file, a folder, a pipe or -")
    return [path]


def _check_format(path: Kept) -> Kept:
    """Return the path. Raises UsageError if its format cannot be read as rows."""
    if _format_of(path) is None:
        if path.name.endswith(CSV):
            raise UsageError(
                f"{path} is a table. Name a column of numbers to predict with --target; for text "
                'without a target, write each row as a line {"text": "..."} of a .jsonl file'
            )
        raise UsageError(
            f"{path}: unknown format; the name must end in {_READ}. "
            "Folders, pipes, - and data artifacts also work"
        )
    return path


def _objects(url: str, note: Callable[[str], None]) -> tuple[list[Address], str]:
    """Return the objects of an address, and the name that the artifact's name derives from."""
    from numtok.data.reading.objects import find_objects  # imports fsspec

    shown = shown_of(url)
    with noting_silence(note, shown):
        addresses, folder = find_objects(url)
    if not folder:
        return [_check_format(address) for address in addresses], addresses[0].name
    every = [(address.url.removeprefix(folder), address) for address in addresses]
    names = {name for name, _ in every}
    artifacts = [name.removesuffix(FILES) for name in names if _is_listing(name, names)]
    kept = [
        (name, address)
        for name, address in every
        if not any(part.startswith(".") for part in name.split("/"))
        and not any(name.startswith(artifact) for artifact in artifacts)
    ]
    return _readable(shown, kept, note), shown.rstrip("/").rpartition("/")[2]


def _is_listing(name: str, names: Set[str]) -> bool:
    """Return whether a name is the file listing of an artifact."""
    folder = name.removesuffix(FILES)
    return name.rpartition("/")[2] == FILES and folder + MANIFEST in names


def _readable(
    shown: str, every: Sequence[tuple[str, Found]], note: Callable[[str], None]
) -> list[Found]:
    """Return the readable files of a folder, given with their names in it."""
    readable = [file for name, file in every if _format_of(Path(name))]
    if not readable:
        raise UsageError(f"{shown}: no file in this folder ends in {_READ}")
    skipped = [
        name for name, _ in every if not _format_of(Path(name)) and name.endswith(_OTHER_DATA)
    ]
    if skipped:
        note(f"{shown}: skipped files that do not end in {_READ}: {shorten(skipped)}")
    return readable


def _files_of_artifact(ref: str, split: str | None, resolve: Resolve) -> list[InputFile]:
    if _format_of(Path(ref)) or ref.endswith(CSV):
        raise file_not_found(ref)
    try:
        artifact = resolve(ref, kinds={DATA})
    except NumtokError as error:
        if Path(ref).exists():
            raise
        raise type(error)(f"{ref}: file or folder not found; {error}") from None
    owner = artifact.as_parent()
    sources = [
        InputFile(
            artifact.path / file.path,
            split or file.path.rpartition("-")[0] or None,
            file.path,
            owner,
            file,
        )
        for file in artifact.files()
        if _format_of(Path(file.path))
    ]
    if not sources:
        raise DataError(f"{artifact.ref} has no rows (no file ends in {_READ})")
    return sources


def as_name(stem: str) -> str:
    """Turn a file name into a valid artifact name: ``My Data.jsonl.gz`` -> ``my-data``."""
    stem = stem.removesuffix(_ending_of(Path(stem)) or "")
    letters = [c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem.lower()]
    return "".join(letters).lstrip("._-") or "data"
