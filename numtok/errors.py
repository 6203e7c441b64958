"""Errors that users can cause: one class per kind, each with its exit code.

Every message is one line that states what is wrong, the value given, the values allowed and what to
do next. ``cli.main`` prints it and exits with ``exit_code``. Any exception that is not a
``NumtokError`` is a bug (exit code 70).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

_FEW_NAMES = 8  # that a message lists next to a suggestion
#: Messages from libraries that run out of memory without an exception of their own for it:
#: PyTorch's allocators, oneDNN (which gives no reason), C++, the dynamic linker and the system.
_OUT_OF_MEMORY = (
    *("DefaultCPUAllocator", "MPS backend out of", "could not create a primitive"),
    *("std::bad_alloc", "failed to map segment", "Cannot allocate memory"),
    "can't start new thread",
)


class NumtokError(Exception):
    """Base class for the errors that numtok raises on purpose. It is never raised directly."""

    exit_code: ClassVar[int] = 70


class NegativeVerdict(NumtokError):
    """Raised if a command ran but its verdict is negative, such as a mismatch or a failed
    requirement."""

    exit_code = 1


class UsageError(NumtokError):
    """Raised for an invalid option, spec, reference or configuration file."""

    exit_code = 2


class PluginError(UsageError):
    """Raised if a plugin's code failed or violated its contract.

    trace
        Traceback for the plugin's author.
    more
        Further violations, one line each.
    """

    def __init__(self, message: str, trace: str = "", more: Sequence[str] = ()) -> None:
        super().__init__(message, trace, more)
        self.trace, self.more = trace, more

    def __str__(self) -> str:
        return str(self.args[0])


class MissingPart(UsageError):
    """Raised if an artifact uses a part, such as a head, that is not installed.

    The part usually belongs to a plugin.

    what
        Kind and name of the part.
    file
        Path of the part's file within a plugin folder.
    """

    def __init__(self, what: str, file: str, alternatives: Iterable[str]) -> None:
        super().__init__(what, file, sorted(alternatives))
        self.what, self.file = what, file
        self.named_in: str | None = None  # the artifact's file that names it

    def __str__(self) -> str:
        return self.of("this", {})

    def of(self, ref: str, plugins: Mapping[str, object]) -> str:
        """Return the message for the artifact ``ref``.

        ``plugins`` are the plugins that the artifact was made with (see
        :func:`numtok.plugins.loaded`).
        """
        ref = ref if self.named_in is None else f"{ref} ({self.named_in})"
        if (folder := plugins.get(self.file)) is not None:
            return (
                f"{ref} uses the {self.what} from the plugin {self.file} in {folder}. Add that "
                f"folder to numtok.toml: [plugins] folders = [{str(folder)!r}]"
            )
        return (
            f"{ref} uses the {self.what}, which this numtok does not have (known without plugins: "
            f"{', '.join(self.args[2])}). If a plugin defines it, add the plugin's folder to "
            "numtok.toml: [plugins] folders = [...]"
        )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add ``path``, a stored file, to errors raised while the block builds the parts named in that
    file.

    A PluginError is not changed, because it already names the plugin's file.
    """
    try:
        yield
    except PluginError:
        raise
    except MissingPart as error:
        error.named_in = path.name
        raise
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


class DataError(NumtokError):
    """Raised for invalid input data."""

    exit_code = 3


class StoreError(NumtokError):
    """Raised if an operation on the artifact store or on a file fails."""

    exit_code = 4


class TrainingFailed(NumtokError):
    """Raised if a command cannot continue because the loss is not finite or memory ran out."""

    exit_code = 5


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether this error, or one of its causes, means that memory ran out.

    >>> is_out_of_memory(RuntimeError("could not create a primitive"))
    True
    """
    if isinstance(error, NumtokError):
        return False
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":  # PyTorch's
        return True
    if any(words in str(error) for words in _OUT_OF_MEMORY):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and is_out_of_memory(cause)


def unknown(what: str, got: str, known: Iterable[str], hint: str = "") -> UsageError:
    """Return the UsageError for an unknown name. Its message suggests the closest known name.

    A long list of known names is shown only if none of them is similar.

    >>> str(unknown("scheme", "p100", ["p10", "p1000"]))
    "unknown scheme 'p100'. Did you mean 'p1000'? Known: p10, p1000"
    """
    names = sorted(known)
    near = get_close_matches(got, names, n=1, cutoff=0.5)
    message = f"unknown {what} {got!r}."
    if near:
        message += f" Did you mean {near[0]!r}?"
    if not near or len(names) <= _FEW_NAMES:
        message += f" Known: {', '.join(names) or 'none'}{'.' if hint else ''}"
    return UsageError(f"{message} {hint}".rstrip())


def file_not_found(path: str | Path, shown: str = "") -> UsageError:
    """Return the UsageError for a file that does not exist. Its message suggests the closest name
    in the folder. ``shown`` replaces the path in the message."""
    folder, name = Path(path).parent, Path(path).name
    message = f"{shown or path}: file not found."
    if Path(path).is_symlink():
        return UsageError(f"{message} It is a link to {str(Path(path).readlink())!r}. Correct it")
    if not folder.is_dir():
        return UsageError(f"{message} The folder {folder} does not exist")
    stems = {each.name: _stem(each.name) for each in folder.iterdir()}
    similar = get_close_matches(_stem(name), stems.values(), n=3)
    names = [each for each, stem in stems.items() if stem in similar]
    near = get_close_matches(name, names, n=1, cutoff=0)
    hint = f"Did you mean {str(Path(path).with_name(near[0]))!r}?" if near else "Check the path"
    return UsageError(f"{message} {hint}")


def _stem(name: str) -> str:
    return name.partition(".")[0]


def meaningless(option: str, subject: str) -> UsageError:
    """Return the UsageError for an option that does not apply to the given model, data or command.

    >>> str(meaningless("fold", "a text model"))
    '--fold does not apply to a text model. Remove it'
    """
    return UsageError(f"--{option} does not apply to {subject}. Remove it")


@contextmanager
def needing(what: str, packages: str, otherwise: str = "") -> Iterator[None]:
    """Turn an ImportError raised in the block into a UsageError that shows the ``pip`` command.

    what
        Feature that needs the packages.
    packages
        Package names as they appear in a sentence, such as ``"xarray and zarr"``.
    otherwise
        Alternative to installing them, appended to the message.
    """
    try:
        yield
    except ImportError as error:
        if is_out_of_memory(error):
            raise
        install = packages.replace(" and", "")
        raise UsageError(
            f"{what} needs the package{'s' * (' ' in packages)} {packages}. Install: `pip install "
            f"{install}`{otherwise}"
        ) from None
