"""Plugin folders, the plugins in them, and the attribution of errors to plugins.

A plugin is a user's file, such as ``FOLDER/heads/mine.py``, that a registry finds by its name.
:func:`fault_of` attributes an exception to the plugin whose code was running.
"""

import ast
import hashlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from numtok.errors import PluginError, UsageError

#: The subfolder of a plugin folder whose files may define several parts of one encoding.
ENCODINGS = "encodings"
_folders: list[Path] = []
#: Called with a registry and the plugin object that it built. Commands set it; worker processes do
#: not, because their parent has built the same object.
on_use: Callable[[Any, object], None] | None = None
_NUMTOK = Path(__file__).parent
_CORRECT = "Correct the file, or remove its folder from [plugins] in numtok.toml"


def add_plugin_folders(folders: Iterable[Path]) -> None:
    """Add folders in which registries search for plugins. Each folder has one subfolder per
    registry.

    The command line calls this function once with the folders in ``numtok.toml``, and every spawned
    worker calls it again. Plugins can import modules that are directly in a plugin folder, such as
    ``FOLDER/helper.py``. Raises UsageError if a folder does not exist.
    """
    for folder in folders:
        resolved = folder.resolve()
        if not resolved.is_dir():
            raise UsageError(
                f"plugin folder {str(folder)!r} is not a folder. "
                "Correct `folders` under [plugins] in numtok.toml"
            )
        if resolved not in _folders:
            _folders.append(resolved)
            sys.path.append(str(resolved))  # last, for modules that plugins share


def plugin_folders() -> tuple[Path, ...]:
    """Return the plugin folders added so far, in order. They are passed to worker processes."""
    return tuple(_folders)


@cache
def registries() -> Mapping[str, str]:
    """Return the packages that are registries, keyed by folder name: ``heads`` maps to
    ``numtok.models.heads``.

    Subfolders of a plugin folder are named after these keys.
    """
    return {
        file.parent.name: ".".join(("numtok", *file.parent.relative_to(_NUMTOK).parts))
        for file in _NUMTOK.glob("**/base.py")
    }


def is_plugin_file(file: Path) -> bool:
    """Return whether a file is a plugin: a file in a plugin folder, in a subfolder that registries
    search.

    If numtok itself or a Python environment is inside a plugin folder, the files in it are not
    plugins.
    """
    return _folder_of(file) is not None


def _folder_of(file: Path) -> Path | None:
    if file.is_relative_to(_NUMTOK):
        return None
    for folder in _folders:
        below = file.relative_to(folder).parts if file.is_relative_to(folder) else ()
        if len(below) > 1 and below[0] in (ENCODINGS, *registries()):
            return folder
    return None


def file_of(thing: object) -> Path | None:
    """Return the plugin file that defines the class of an object, or None for numtok's own
    classes."""
    file = sys.modules[type(thing).__module__].__file__
    return Path(file) if file is not None and is_plugin_file(Path(file)) else None


def is_plugin(thing: object) -> bool:
    """Return whether a plugin defines the class of an object."""
    return file_of(thing) is not None


def loaded() -> dict[str, str]:
    """Return the plugin folder of each plugin imported so far, keyed by the plugin's relative path,
    as in ``{'heads/mine.py': '/data/plugins'}``."""
    plugins: dict[str, str] = {}
    if not _folders:
        return plugins
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) if name.startswith("numtok.") else None
        if file is not None and (folder := _folder_of(Path(file))) is not None:
            plugins[Path(file).relative_to(folder).as_posix()] = str(folder)
    return dict(sorted(plugins.items()))


def misplaced(kind: str) -> str:
    """Return a hint if a subfolder of a plugin folder has almost, but not exactly, the name of a
    registry.

    ``kind`` is the folder name of the registry. The hint is appended to the error for an unknown
    name. It is empty if no such subfolder exists.
    """
    for folder in _folders:
        subfolders = [path.name for path in folder.iterdir() if path.is_dir()]
        for name in get_close_matches(kind, subfolders, cutoff=0.8):
            if name not in registries():
                return f"{folder / name} is not searched. Rename it to {kind}/"
    return ""


def code_digest(file: Path) -> str:
    """Return a digest of a plugin's code: its file and all files in plugin folders that it imports,
    directly or indirectly."""
    contents: dict[Path, bytes] = {}
    left = [file]
    while left:
        if (path := left.pop()) not in contents:
            contents[path] = path.read_bytes()
            left += _imports(path, contents[path])
    digest = hashlib.sha256()
    for path in sorted(contents):
        digest.update(hashlib.sha256(contents[path]).digest())
    return digest.hexdigest()[:16]


def _imports(file: Path, content: bytes) -> Iterator[Path]:
    names: list[str] = []
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names += [imported.name for imported in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = [*file.parents[node.level - 1].parts[-1:]] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names += [module, *(f"{module}.{imported.name}" for imported in node.names)]
    for name in names:
        for kind, package in registries().items():
            if name.startswith(f"{package}."):
                name = kind + name.removeprefix(package)
        for folder in _folders:
            base = folder.joinpath(*name.split("."))
            for candidate in (base.with_suffix(".py"), base / "__init__.py"):
                if candidate.is_file():
                    yield candidate


def plugin_code() -> dict[str, str]:
    """Return the code digest of each plugin imported so far, keyed by the plugin's relative
    path."""
    return {path: code_digest(Path(folder, path)) for path, folder in loaded().items()}


def import_error(file: Path, error: BaseException) -> UsageError:
    """Return the UsageError for a plugin that cannot be imported. The message names the line at
    which the import failed, or only the file if the line is unknown."""
    if isinstance(error, SyntaxError):
        where = f"{error.filename or file}, line {error.lineno}"
        return UsageError(f"{where}: SyntaxError: {error.msg}. {_CORRECT}")
    where = _place(error) or str(file)
    if "mutable default" in str(error):  # what dataclasses suggests is not allowed for settings
        what = str(error).partition(":")[0]
        return UsageError(f"{where}: {what}. A setting must be an int, float, bool or str")
    return UsageError(f"{where}: {type(error).__name__}: {error}. {_CORRECT}")


def fault_of(error: BaseException) -> PluginError | None:
    """Return the PluginError for an exception raised in a plugin's code or in code that it called.

    The error contains the traceback. If no plugin was involved, return None.
    """
    if (where := _place(error)) is None:
        return None
    what = " ".join(str(error).split())  # some libraries raise multi-line messages
    message = f"{where}: {type(error).__name__}: {what}. {_CORRECT}"
    return PluginError(message, "".join(traceback.format_exception(error)))


def _place(error: BaseException) -> str | None:
    """Return the last executed line of a plugin, with the name of the function."""
    location = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_plugin_file(Path(code.co_filename)):
            inside = "" if code.co_qualname == "<module>" else f", in {code.co_qualname}"
            location = f"{code.co_filename}, line {line}{inside}"
    return location
