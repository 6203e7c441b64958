"""Plugins: the folders that they lie in, whose fault an error is, and whether they keep a contract.

A plugin is a file of a user's, ``FOLDER/heads/mine.py``, that a registry finds by its name. What
goes wrong in its own code is told as its fault (:func:`fault_of`), wherever it was called. What it
answers is compared with its contract the first time it is asked, by whichever command that is
(:func:`watch`): a loss of the wrong shape would be broadcast without a word. numtok's own classes
are not watched when used; contract suites hold them to the same (:func:`hold`).
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from numtok.errors import PluginError, UsageError

_folders: list[Path] = []
_NUMTOK = Path(__file__).parent
_CORRECT = "correct the file, or leave its folder out of [plugins] in numtok.toml"
#: Where modules that plugins import were before, and where they are.
_MOVED = {
    "numtok.nn.embedders": "numtok.models.embedders",
    "numtok.nn.heads": "numtok.models.heads",
    "numtok.nn.objectives": "numtok.models.objectives",
    "numtok.nn": "numtok.models",
    "numtok.distributions": "numtok.models.distributions",
    "numtok.schemes": "numtok.encoding.schemes",
    "numtok.text_tokenizers": "numtok.encoding.text_tokenizers",
    "numtok.normalizers": "numtok.encoding.normalizers",
    "numtok.codec": "numtok.encoding.codec",
    "numtok.tasks": "numtok.data.tasks",
    "numtok.sources": "numtok.data.sources",
    "numtok.figures": "numtok.analysis.figures",
}
#: What plugins import from them by other names than before.
_RENAMED = {
    "numtok.models.objectives.base": {
        "Example": "TrainingBatch",
        "masked": "masked_batch",
        "said": "autoregressive_batch",
        "ended": "row_end_batch",
        "moved": "shift_right",
    },
    "numtok.metrics.base": {"Answers": "Predictions"},
    "numtok.encoding.schemes.base": {"Decoded": "DecodedNumbers"},
    "numtok.encoding.text_tokenizers.base": {"Fitted": "FittedTokenizer", "Tokens": "TokenRuns"},
    "numtok.data.tasks.base": {"Split": "TaskSplit"},
    "numtok.data.sources.base": {"Rejected": "RejectedSourceRow"},
    "numtok.analysis.figures.base": {"Figure": "FigureKind"},
}
_FLOATING = ("float16", "bfloat16", "float32", "float64")


def add_plugin_folders(folders: Iterable[Path]) -> None:
    """Make the files under ``folders`` (one subfolder a registry) known by name.

    Called once by the command line from ``numtok.toml``, and again in every
    spawned worker. Raises UsageError for a folder that is not there, or whose files lie where
    registries looked before.
    """
    for folder in folders:
        resolved = folder.resolve()
        if not resolved.is_dir():
            raise UsageError(
                f"plugin folder {str(folder)!r} is not a folder; "
                "correct `folders` under [plugins] in numtok.toml"
            )
        for kind in ("embedders", "heads", "objectives"):
            if (resolved / "nn" / kind).is_dir():
                raise UsageError(
                    f"plugin folder {str(folder)!r}: {kind} lie in {kind}/ now, no longer in "
                    f"nn/{kind}/; move that folder"
                )
        if resolved not in _folders:
            _folders.append(resolved)


def plugin_folders() -> tuple[Path, ...]:
    """The folders added so far, in order, for handing on to workers."""
    return tuple(_folders)


@cache
def registries() -> Mapping[str, str]:
    """The packages that are registries, by the name of their folder, which is that of the subfolder
    that plugins lie in: ``heads`` is ``numtok.models.heads``."""
    return {
        file.parent.name: ".".join(("numtok", *file.parent.relative_to(_NUMTOK).parts))
        for file in _NUMTOK.glob("**/base.py")
    }


def is_plugin_file(file: Path) -> bool:
    """Whether a file lies in one of the folders, in a subfolder that registries look into: numtok
    itself, or an environment of Python, may lie there as well."""
    return _folder_of(file) is not None


def _folder_of(file: Path) -> Path | None:
    if file.is_relative_to(_NUMTOK):
        return None
    for folder in _folders:
        below = file.relative_to(folder).parts if file.is_relative_to(folder) else ()
        if len(below) > 1 and below[0] in registries():
            return folder
    return None


def file_of(thing: object) -> Path | None:
    """The plugin's file that defines the class of an object; None for numtok's own."""
    file = sys.modules[type(thing).__module__].__file__
    return Path(file) if file is not None and is_plugin_file(Path(file)) else None


def is_plugin(thing: object) -> bool:
    """True if the class of an object comes from a plugin folder."""
    return file_of(thing) is not None


def loaded() -> dict[str, str]:
    """The plugins that were imported so far, by their place in a plugin folder, and that folder:
    ``{"heads/mine.py": "/data/plugins"}``."""
    found: dict[str, str] = {}
    if not _folders:
        return found
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if name.startswith("numtok.") else None
        if file is not None and (folder := _folder_of(Path(file))) is not None:
            found[Path(file).relative_to(folder).as_posix()] = str(folder)
    return dict(sorted(found.items()))


def import_error(file: Path, error: Exception) -> UsageError:
    """What is wrong with a plugin's file, at the last of its lines that was reached."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename or file}, line {error.lineno}"
        return UsageError(f"{where}: SyntaxError: {error.msg}; {_CORRECT}")
    where = _place(error) or str(file)
    if isinstance(error, ModuleNotFoundError) and error.name:
        for before, now in _MOVED.items():
            if f"{error.name}.".startswith(f"{before}."):
                return UsageError(f"{where}: {before} is {now} now; {_CORRECT}")
    elif isinstance(error, ImportError) and error.name in _RENAMED:
        for before, now in _RENAMED[error.name].items():
            if f"cannot import name {before!r} " in str(error):
                return UsageError(f"{where}: {error.name}.{before} is {now} now; {_CORRECT}")
    return UsageError(f"{where}: {type(error).__name__}: {error}; {_CORRECT}")


def fault_of(error: Exception) -> PluginError | None:
    """The error as that of a plugin, with its traceback, where a plugin's code was at work when it
    was raised: in that code itself, or in what it called. None where none was."""
    if (where := _place(error)) is None:
        return None
    what = " ".join(str(error).split())  # libraries tell in several lines
    message = f"{where}: {type(error).__name__}: {what}; {_CORRECT}"
    return PluginError(message, "".join(traceback.format_exception(error)))


def _place(error: Exception) -> str | None:
    """The last line of a plugin that was reached, with what it is in."""
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_plugin_file(Path(code.co_filename)):
            inside = "" if code.co_qualname == "<module>" else f", in {code.co_qualname}"
            found = f"{code.co_filename}, line {line}{inside}"
    return found


# --- contracts ---------------------------------------------------------------------------------


@dataclass(kw_only=True)
class MemberCall:
    """One member of a watched object was asked.

    given
        What it was asked with, in order.
    sizes
        By letter, sizes that the contract speaks of and that are known from elsewhere.
    again
        Whether the next answer is to be looked at as well: this one says too little.
    """

    thing: object
    member: str
    given: tuple[Any, ...]
    file: Path
    contract: str
    sizes: Mapping[str, int]
    again: bool = False

    def wrong(self, got: str, wanted: str) -> PluginError:
        """The error for an answer that breaks the contract."""
        return PluginError(
            f"{self.file}: {type(self.thing).__name__}.{self.member} gives {got}; it must give "
            f"{wanted} ({self.contract} says what each member is)"
        )

    def one_of(self, answer: Any, *kinds: type) -> Any:
        """The answer; PluginError unless it is of one of these classes (a bool is no int)."""
        if not isinstance(answer, kinds) or (isinstance(answer, bool) and bool not in kinds):
            names = ["None" if kind is type(None) else kind.__name__ for kind in kinds]
            raise self.wrong(describe(answer), " or ".join(names))
        return answer

    def array(self, answer: Any, form: str, *, finite: bool = False, **sizes: int) -> Any:
        """The answer; PluginError unless it is an array of that form, such as ``Tensor
        float32[N, P]``: its class, what it is made of (several with ``|``; ``float`` is any of
        these), and its sizes, by letters of which some are known. Of two rows at least, or the
        next answer is looked at as well."""
        kind, _, rest = form.partition(" ")
        types, _, letters = rest.rstrip("]").partition("[")
        shape = letters.split(", ")
        known = {**self.sizes, **sizes}
        names = _FLOATING if types == "float" else tuple(types.split("|"))
        there = [f"{letter} = {known[letter]:,}" for letter in shape if letter in known]
        wanted = ", ".join([form, *there])
        fits = (
            any(one.__name__ == kind for one in type(answer).__mro__)
            and _dtype(answer) in names
            and len(answer.shape) == len(shape)
            and all(
                known.get(letter, size) == size
                for letter, size in zip(shape, answer.shape, strict=True)
            )
        )
        if not fits:
            raise self.wrong(describe(answer), wanted)
        if finite and not bool((abs(answer) < float("inf")).all()):
            raise self.wrong(
                f"{describe(answer)} with values that are not finite", f"finite {wanted}"
            )
        self.again |= any(known.get(letter, 2) < 2 for letter in shape)
        return answer

    def watching(self, made: Any, checks: "Mapping[str, Check]", **sizes: int) -> Any:
        """What the member made, watched in its turn; so is what it makes next."""
        _watch(made, checks, self.file, self.contract, {**self.sizes, **sizes})
        self.again = True
        return made


#: Looks at an answer and gives it on; raises ``asked.wrong(...)``.
Check = Callable[[MemberCall, Any], Any]


def describe(answer: Any) -> str:
    """An answer in a few words.

    >>> describe([1.5]), describe(None)
    ('a list', 'None')
    """
    if (dtype := _dtype(answer)) is not None:
        return f"{type(answer).__name__} {dtype}[{', '.join(map(str, answer.shape))}]"
    if answer is None or isinstance(answer, bool | int | float | str):
        return repr(answer)
    return f"a {type(answer).__name__}"


def _dtype(answer: Any) -> str | None:
    """Of an array of NumPy or PyTorch, neither of which is imported here."""
    if not (hasattr(answer, "dtype") and hasattr(answer, "shape")):
        return None
    return str(answer.dtype).removeprefix("torch.")


def watch(thing: object, checks: Mapping[str, Check], contract: str) -> None:
    """Hold an object of a plugin's to its contract: its properties now, and each other member in
    ``checks`` when it is first asked. Nothing for numtok's own, and nothing once all were asked.

    ``contract`` is where it is written down. Raises PluginError.
    """
    if (file := file_of(thing)) is not None:
        _watch(thing, checks, file, contract, {})


def hold(thing: object, checks: Mapping[str, Check], contract: str) -> None:
    """As :func:`watch`, of numtok's own as well: what its contract suite does."""
    file = sys.modules[type(thing).__module__].__file__ or ""
    _watch(thing, checks, Path(file), contract, {})


def unwatch(thing: object) -> None:
    """Look at none of its answers any more: for what cannot have a look in it, as what is compiled
    by PyTorch."""
    for member in [key for key, value in vars(thing).items() if isinstance(value, _Watched)]:
        del vars(thing)[member]


def _watch(
    thing: Any, checks: Mapping[str, Check], file: Path, contract: str, sizes: Mapping[str, int]
) -> None:
    for member, check in checks.items():
        call = MemberCall(
            thing=thing, member=member, given=(), file=file, contract=contract, sizes=sizes
        )
        if callable(getattr(type(thing), member, None)):
            # Past __setattr__, which frozen dataclasses refuse.
            vars(thing)[member] = _Watched(call, check)
        elif hasattr(thing, member):
            check(call, getattr(thing, member))


@dataclass(eq=False)
class _Watched:
    """Stands before a method in its object until an answer was looked at; it can be pickled."""

    call: MemberCall
    check: Check

    def __call__(self, *given: Any, **named: Any) -> Any:
        thing, member = self.call.thing, self.call.member
        try:
            answer = getattr(type(thing), member)(thing, *given, **named)
        except (AttributeError, IndexError, ValueError) as error:
            raise fault_of(error) or self._failed(error) from error
        asked = replace(self.call, given=(*given, *named.values()))
        answer = self.check(asked, answer)
        if not asked.again:
            with suppress(KeyError):  # asked within itself, or by two threads
                del vars(thing)[member]
        return answer

    def _failed(self, error: Exception) -> PluginError:
        """Of what a plugin made of a class of numtok's, whose code fails by what it was given."""
        call = self.call
        what = f"{call.file}: {type(call.thing).__name__}.{call.member} fails by what it was given"
        trace = "".join(traceback.format_exception(error))
        return PluginError(f"{what}: {type(error).__name__}: {error}; {_CORRECT}", trace)


def a(*kinds: type) -> Check:
    """The check of an answer that is of one of these classes."""
    return partial(_of_kind, kinds)


def _of_kind(kinds: tuple[type, ...], asked: MemberCall, answer: Any) -> Any:
    return asked.one_of(answer, *kinds)
