"""Which files the inputs of a command stand for, and the split that is given with them."""

from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import NamedTuple, TypeVar

from numtok.data.fetching.file_systems import noting_silence
from numtok.data.reading.addresses import Address, is_address, shown_of
from numtok.data.reading.split_rule import SPLIT_RULE, SplitRule, is_split
from numtok.data.reading.streams import STDIN, Spool, is_stdin, is_stream, stem_of
from numtok.errors import DataError, NumtokError, UsageError
from numtok.store.artifact import DATA, FILES, MANIFEST, Output, Parent, Resolve
from numtok.store.draft import shorten

#: Of a file's name, the split that people mean by it.
_SPLIT_OF = {"test": "test", **dict.fromkeys(("validation", "valid", "val", "dev"), "validation")}
_OTHER_DATA = (".json", ".txt", ".csv", ".tsv", ".arrow", ".gz", ".zst", ".zstd", ".bz2", ".xz")
_PACKINGS = {"": "jsonl", ".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
FORMATS = {
    **{rows + end: form for rows in (".jsonl", ".ndjson") for end, form in _PACKINGS.items()},
    ".parquet": "parquet",
}
_READ = ".jsonl or .ndjson (plain, .gz, .zst), or .parquet"

Found = TypeVar("Found")
Kept = TypeVar("Kept", Path, Address)


class InputFile(NamedTuple):
    """One input file, or object of a store, and the split that its place or the command gives all
    its rows."""

    path: Path | Address
    split: str | None
    shown: str  # as the user named it
    owner: Parent | None = None  # the data artifact that it belongs to
    written: Output | None = None  # what that artifact says of the file

    @property
    def format(self) -> str:
        """The format that its name ends with."""
        return _format_of(self.path) or "jsonl"

    @property
    def size(self) -> int:
        """Bytes of the file."""
        path = self.path
        return path.size if isinstance(path, Address) else path.stat().st_size


def find_sources(
    arguments: Sequence[str], resolve: Resolve, note: Callable[[str], None], spool: Spool
) -> tuple[list[InputFile], str]:
    """The files that a command's inputs stand for, and a name for what is made of them.

    An input is a path, a folder, ``split=PATH``, ``-`` or a pipe, which ``spool`` keeps as a file,
    an address as ``s3://bucket/part-*.jsonl``, or a REF of a data artifact. ``note`` tells the
    user what is not read. Raises UsageError for what is none of these.
    """
    sources: list[InputFile] = []
    streams: set[str] = set()
    name = ""
    for argument in arguments:
        split, path = _split_and_path(argument)
        if is_address(path):
            objects, stem = _objects(path, note)
            found = [InputFile(one, split, str(one)) for one in objects]
        elif is_stream(path):
            shown = STDIN if is_stdin(path) else path
            if shown in streams:
                raise UsageError(f"{shown} can be given once: it can be read only once")
            streams.add(shown)
            found = [InputFile(spool.keep(path, _ending_of(Path(path)) or ".jsonl"), split, shown)]
            stem = stem_of(path)
        elif Path(path).exists() and not _is_artifact(Path(path)):
            found = [InputFile(file, split, str(file)) for file in _files_below(Path(path), note)]
            stem = Path(path).resolve().name
        else:
            found = _of_artifact(path, split, resolve)
            stem = found[0].owner.where.partition("@")[0] if found[0].owner else path
        sources += found
        name = name or as_name(stem)
    seen: set[Path | Address] = set()
    for source in sources:
        real = source.path.resolve() if isinstance(source.path, Path) else source.path
        if real in seen:
            raise UsageError(f"{source.shown} is given twice; give each file once")
        seen.add(real)
    _note_names(sources, note)
    return sources, name


def shown_input(argument: str) -> str:
    """An input of a command as it may be kept: without what opens an address."""
    split, path = _split_and_path(argument)
    shown = shown_of(path) if is_address(path) else path
    return shown if split is None else f"{split}={shown}"


def _note_names(sources: Sequence[InputFile], note: Callable[[str], None]) -> None:
    """A file that is called test.jsonl is in no split by that."""
    for source in sources:
        stem = as_name(source.path.name).rstrip("-0123456789")
        if source.split is None and stem in _SPLIT_OF:
            note(
                f"{source.shown}: its name puts no row into a split; rows that have none of their "
                f"own, nor by --split, are for training; write {_SPLIT_OF[stem]}={source.shown} "
                "to say otherwise"
            )


def check_rule(rule: SplitRule | None, sources: Sequence[InputFile]) -> None:
    """UsageError for a ``--split`` that no row is left for."""
    if rule and all(source.split is not None for source in sources):
        raise UsageError(
            "--split has no effect here: every input is given as a split already; leave it "
            "out, or give inputs without split="
        )


def _split_and_path(argument: str) -> tuple[str | None, str]:
    split, equals, path = argument.partition("=")
    if not equals or is_address(argument) or Path(argument).exists():
        return None, argument
    if not path or not is_split(split):
        raise UsageError(
            f"{argument!r}: {split!r} cannot be the name of a split; write split=PATH, "
            f"the split in {SPLIT_RULE}"
        )
    return split, path


def _ending_of(path: Path | Address) -> str | None:
    """Of the name, what says how the file is read."""
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
            # What numtok made lies in the same tree where the store does.
            and not any(_is_artifact(folder) for folder in file.parents)
        ]
        return _readable(str(path), [(str(file.relative_to(path)), file) for file in every], note)
    _of_known_kind(path)
    if not path.is_file():
        raise UsageError(f"{path} is no file; give a file, a folder, a pipe or -")
    return [path]


def _of_known_kind(path: Kept) -> Kept:
    """The same; UsageError for what cannot be read as rows."""
    if _format_of(path) is None:
        if path.name.endswith((".csv", ".tsv")):
            raise UsageError(
                f"{path} is a table: `numtok table` reads CSV, to learn one column from others; "
                'for text, write each row as a line {"text": "..."} of a .jsonl file'
            )
        raise UsageError(
            f"{path}: the format is unknown; it must end in {_READ}. "
            "Folders, pipes, - and data artifacts are read as well"
        )
    return path


def _objects(url: str, note: Callable[[str], None]) -> tuple[list[Address], str]:
    """The objects that an address stands for, and what made of them is called by: a shell would
    give the files of a pattern one by one."""
    from numtok.data.reading.objects import find_objects  # imports fsspec

    shown = shown_of(url)
    with noting_silence(note, shown):
        found, folder = find_objects(url)
    if not folder:
        return [_of_known_kind(one) for one in found], found[0].name
    every = [(one.url.removeprefix(folder), one) for one in found]
    names = {name for name, _ in every}
    made = [name.removesuffix(FILES) for name in names if _is_made(name, names)]
    kept = [
        (name, one)
        for name, one in every
        if not any(part.startswith(".") for part in name.split("/"))
        and not any(name.startswith(place) for place in made)
    ]
    return _readable(shown, kept, note), shown.rstrip("/").rpartition("/")[2]


def _is_made(name: str, names: Set[str]) -> bool:
    """Whether it is the listing of an artifact."""
    place = name.removesuffix(FILES)
    return name.rpartition("/")[2] == FILES and place + MANIFEST in names


def _readable(
    shown: str, every: Sequence[tuple[str, Found]], note: Callable[[str], None]
) -> list[Found]:
    """Of what lies in a folder, by its names there, what can be read."""
    found = [file for name, file in every if _format_of(Path(name))]
    if not found:
        raise UsageError(f"{shown}: no file in this folder ends in {_READ}")
    others = [
        name for name, _ in every if not _format_of(Path(name)) and name.endswith(_OTHER_DATA)
    ]
    if others:
        note(f"{shown}: not read, since they do not end in {_READ}: {shorten(others)}")
    return found


def _of_artifact(ref: str, split: str | None, resolve: Resolve) -> list[InputFile]:
    if _format_of(Path(ref)):
        raise UsageError(f"{ref}: there is no such file; check the path")
    try:
        artifact = resolve(ref, kinds={DATA})
    except NumtokError as error:
        raise type(error)(f"{ref}: there is no such file or folder, and {error}") from None
    owner = artifact.as_parent()
    sources = [
        InputFile(
            artifact.path / file.path, split or file.path.rpartition("-")[0], file.path, owner, file
        )
        for file in artifact.files()
        if _format_of(Path(file.path))
    ]
    if not sources:
        raise DataError(f"{artifact.ref} holds no rows (no file ends in {_READ})")
    return sources


def as_name(stem: str) -> str:
    """A file name as an artifact's name: ``My Data.jsonl.gz`` -> ``my-data``."""
    stem = stem.removesuffix(_ending_of(Path(stem)) or "")
    letters = [c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in stem.lower()]
    return "".join(letters).lstrip("._-") or "data"
