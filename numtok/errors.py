"""What a user can cause: one class a kind, each with its exit code.

Every message is one line that says what is wrong, what numtok got, what is
allowed and what to do next. ``cli.main`` prints it and exits with
``exit_code``; anything that is not a ``NumtokError`` is a bug (exit 70).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

#: Messages of libraries that run out of memory and have no exception of their own for it: PyTorch's
#: allocators, oneDNN (which gives no reason), C++, the dynamic linker, the system.
_OUT_OF_MEMORY = (
    *("DefaultCPUAllocator", "MPS backend out of", "could not create a primitive"),
    *("std::bad_alloc", "failed to map segment", "Cannot allocate memory"),
    "can't start new thread",
)


class NumtokError(Exception):
    """Base of the errors that numtok raises on purpose; never raised itself."""

    exit_code: ClassVar[int] = 70


class NegativeVerdict(NumtokError):
    """The command did its work and the answer is no: a mismatch, a failed gate."""

    exit_code = 1


class UsageError(NumtokError):
    """An option, a spec, a reference or a configuration file that cannot be used."""

    exit_code = 2


class PluginError(UsageError):
    """A plugin's code failed, or broke its contract.

    trace
        The traceback, for its author.
    more
        Further breaks, a line each.
    """

    def __init__(self, message: str, trace: str = "", more: Sequence[str] = ()) -> None:
        super().__init__(message, trace, more)
        self.trace, self.more = trace, more

    def __str__(self) -> str:
        return str(self.args[0])


class MissingPart(UsageError):
    """An artifact names a part, such as a head, that is not here: most likely a plugin's.

    what
        The kind of part and its name.
    file
        Where it lies in a folder of plugins.
    """

    def __init__(self, what: str, file: str, known: Iterable[str]) -> None:
        super().__init__(what, file, sorted(known))
        self.what, self.file = what, file
        self.named_in: str | None = None  # the artifact's file that names it

    def __str__(self) -> str:
        return self.of("this", {})

    def of(self, ref: str, plugins: Mapping[str, object]) -> str:
        """Told of an artifact that was made with these plugins (``plugins.loaded``)."""
        ref = ref if self.named_in is None else f"{ref} ({self.named_in})"
        known = f"known without plugins: {', '.join(self.args[2])}"
        # Before, heads and what else belongs to models lay one folder deeper.
        places = [
            folder for file, folder in plugins.items() if f"/{file}".endswith(f"/{self.file}")
        ]
        if places and (folder := places[0]) is not None:
            return (
                f"{ref} was made with the {self.what} of a plugin, {self.file} in {folder}; name "
                f"that folder in numtok.toml here: [plugins] folders = [{str(folder)!r}]"
            )
        return (
            f"{ref} was made with the {self.what}, which is none of this numtok's; if it is a "
            f"plugin's, name its folder in numtok.toml here: [plugins] folders = [...]; {known}"
        )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """While parts that a stored file names are built: what is wrong with them is told with it. A
    plugin's own error names the plugin's file."""
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
    """Input data that breaks the contract of ``records``."""

    exit_code = 3


class StoreError(NumtokError):
    """The store, or a file operation under it, failed."""

    exit_code = 4


class TrainingFailed(NumtokError):
    """Training or another command cannot continue: the loss is not finite, or memory ran out."""

    exit_code = 5


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a library raised this error, or one that led to it, because memory ran out.

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
    """The error for a name that does not exist, with the nearest match.

    >>> str(unknown("scheme", "p100", ["p10", "p1000"]))
    "unknown scheme 'p100'; did you mean 'p1000'? known: p10, p1000"
    """
    names = sorted(known)
    near = get_close_matches(got, names, n=1, cutoff=0.5)
    guess = f"did you mean {near[0]!r}? " if near else ""
    tail = f"; {hint}" if hint else ""
    return UsageError(f"unknown {what} {got!r}; {guess}known: {', '.join(names) or 'none'}{tail}")


def meaningless(option: str, told: str) -> UsageError:
    """The error for an option that is for something else than there is.

    >>> str(meaningless("fold", "a model of texts"))
    '--fold means nothing for a model of texts; leave it out'
    """
    return UsageError(f"--{option} means nothing for {told}; leave it out")


@contextmanager
def needing(what: str, packages: str, otherwise: str = "") -> Iterator[None]:
    """While packages are imported that an installation may lack: UsageError without them.

    ``packages`` stand as in a sentence, ``xarray and zarr``; ``otherwise`` is what else to do.
    """
    try:
        yield
    except ImportError as error:
        if is_out_of_memory(error):
            raise
        install = packages.replace(" and", "")
        raise UsageError(
            f"{what} needs the package{'s' * (' ' in packages)} {packages}; `pip install "
            f"{install}`{otherwise}"
        ) from None
