"""Runs contract suites: for ``numtok check KIND NAME``, and on a plugin before it is first used."""

import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from numtok import contracts, plugins
from numtok.contracts import SUITE, CheckResult, results
from numtok.errors import PluginError, UsageError, unknown
from numtok.registry import Registry, name_of, registry_in, spec_of
from numtok.version import __version__

_FOR_READERS = ("described", "worked example")  # checks that a plugin need not pass to be used
_LISTED = 3  # violations that an error lists before it refers to `numtok check`
_running = False  # True while a suite runs: the objects that it builds are not checked again
_known: set[tuple[str, Path]] = set()  # packages and files that passed in this process


@cache
def kinds() -> Mapping[str, str]:
    """Return the packages that have a contract suite, keyed by the kind's name on the command line.

    For example, the kind ``text-tokenizer`` is the package ``numtok.encoding.text_tokenizers``.
    """
    root = Path(__file__).parents[1]
    return {
        folder.removesuffix("s").replace("_", "-"): package
        for folder, package in sorted(plugins.registries().items())
        if (root / Path(*package.split(".")) / SUITE).is_file()
    }


def registry_of(kind: str) -> Registry[Any]:
    """Return the registry of a kind, such as ``text-tokenizer``. Raises UsageError for an unknown
    kind."""
    if kind not in kinds():
        raise unknown("kind", kind, kinds())
    return registry_in(kinds()[kind])


def check_spec(kind: str, spec: str, seed: int = 0) -> list[CheckResult]:
    """Run the contract suite of a kind on the object that a spec describes, and return the results.

    A bare name stands for the class with its default settings. If a setting has no default, the
    class must declare ``checked_at``, the spec to use instead. Raises UsageError if the object
    cannot be built.
    """
    registry = registry_of(kind)
    suite = registry.contract()
    if spec in registry and registry.checked_at(spec) == spec and registry.required(spec):
        where, key = registry[spec], registry.required(spec)[0]
        raise UsageError(
            f"{sys.modules[where.__module__].__file__}: {where.__name__}.{key} has no default. "
            f'Give it one, or add `checked_at: ClassVar[str] = "{spec},{key}=VALUE"`, the spec to '
            "check it at"
        )
    with _checking():
        build: Callable[[str], Any] = getattr(suite, "build", registry.build)
        thing = build(registry.checked_at(spec) if spec in registry else spec)
        check: Any = getattr(suite, "check", partial(results, suite.CHECKS))
        outcomes: list[CheckResult] = check(thing, seed=seed)
    if spec in registry and all(result.passed for result in outcomes):
        _remember(registry, thing)
    return outcomes


@contextmanager
def _checking() -> Iterator[None]:
    """Run a suite without changing the random state and modes of PyTorch."""
    global _running
    before, _running = _running, True
    torch: Any = sys.modules.get("torch")
    with ExitStack() as stack:
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
        try:
            yield
        finally:
            _running = before


def check_plugin(note: Callable[[str], None], registry: Registry[Any], thing: object) -> None:
    """Run the contract suite on a plugin when its file is first used, and again after each change.

    Passed checks are cached. ``note`` is called with a message if the suite takes more than a
    second or cannot run. Raises PluginError with the first violations.
    """
    file = plugins.file_of(thing)
    if _running or file is None or (registry.package, file) in _known:
        return
    if (passed := _passed(registry, file)) is not None and passed.exists():
        _known.add((registry.package, file))
        return
    kind, name = _kind_of(registry), name_of(thing)
    spec = spec_of(thing) if registry.checked_at(name) == name and registry.required(name) else name
    timer = threading.Timer(1.0, note, [f"checking plugin {file} ..."])
    timer.daemon = True
    timer.start()
    try:
        with warnings.catch_warnings(action="ignore"):
            outcomes = check_spec(kind, spec)
    except PluginError:
        raise
    except UsageError as error:  # a requirement of the plugin is missing here
        note(f"{file} is used without checks: {error}")
        outcomes = []
    finally:
        timer.cancel()
    failed = [
        result for result in outcomes if not result.passed and result.name not in _FOR_READERS
    ]
    broken = [result.message for result in failed if not result.message.startswith("same as '")]
    if broken:
        raise _refusal(file, broken, f"numtok check {kind} {spec}")
    _known.add((registry.package, file))
    if outcomes:
        _remember(registry, thing)


def _refusal(file: Path, broken: Sequence[str], command: str) -> PluginError:
    short = f"{file.parent.name}/{file.name}: "
    lines = [message.removeprefix(short) for message in broken[:_LISTED]]
    first, *more = (line if line.startswith(str(file)) else f"{file}: {line}" for line in lines)
    if len(broken) > _LISTED:
        more.append(f"and {len(broken) - _LISTED} more. List them: {command}")
    return PluginError(first, more=more)


def _kind_of(registry: Registry[Any]) -> str:
    return next(kind for kind, package in kinds().items() if package == registry.package)


def _remember(registry: Registry[Any], thing: object) -> None:
    """Record that the current code of a plugin passed."""
    file = plugins.file_of(thing)
    if file is not None and (passed := _passed(registry, file)) is not None:
        with suppress(OSError):
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.touch()


def _passed(registry: Registry[Any], file: Path) -> Path | None:
    """Return the empty file in the user's cache that marks a plugin as passed.

    Its name is a digest of the plugin's code and of the suite. None if the user has no home folder.
    """
    digest = hashlib.sha256(f"{__version__} {plugins.code_digest(file)}".encode())
    folder = Path(str(registry.contract().__file__)).parent
    suites = (folder / "base.py", *sorted(folder.glob("_contract*.py")))
    for source in (Path(__file__), Path(contracts.__file__), *suites):
        digest.update(source.read_bytes())
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return cache / "numtok" / "plugins" / digest.hexdigest()[:32]
