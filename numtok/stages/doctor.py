"""doctor: checks the installation, the working folder and the store, one line per check."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from numtok import config, files, kernel_files, kernels, machine, plugin_checks, plugins
from numtok.errors import NumtokError, StoreError, UsageError
from numtok.names import counted
from numtok.store import artifact as on_disk
from numtok.store.engines.local import Workers
from numtok.store.store import Store

_LEAST_ROOM = 1 << 30  # bytes; below that, a training may not fit
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_NOT_PARTS = ("dev",)


class DoctorCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check.

    status
        "ok", "missing" (an optional part) or "failed".
    remedy
        The command or change that helps; empty if nothing is wrong.
    """

    name: str
    status: str
    finding: str
    remedy: str = ""


def run(store: Path, problem: str = "") -> list[DoctorCheck]:
    """Run all checks, and compile the kernels that are not compiled yet.

    ``problem`` is what is wrong with ``numtok.toml``; empty if nothing is.
    """
    checks: list[DoctorCheck] = []
    for check in (_python, _packages, _extras, _kernels, _devices):
        checks += check()
    return [*checks, *_config(problem), *_plugins(), *_store(store)]


def _ok(name: str, finding: str) -> DoctorCheck:
    return DoctorCheck(name=name, status="ok", finding=finding)


def _failed(name: str, finding: str, remedy: str) -> DoctorCheck:
    return DoctorCheck(name=name, status="failed", finding=finding, remedy=remedy)


def _python() -> Iterator[DoctorCheck]:
    yield _ok("python", f"{'.'.join(map(str, sys.version_info[:3]))} in {sys.prefix}")


def _requirements() -> dict[str, list[Requirement]]:
    """Return the requirements of each extra; "" stands for numtok itself."""
    found: dict[str, list[Requirement]] = {"": []}
    for text in metadata.requires("numtok") or []:
        extra = _EXTRA.search(text)
        found.setdefault(extra[1] if extra else "", []).append(Requirement(text.split(";")[0]))
    return found


def _unmet(requirements: Sequence[Requirement]) -> list[str]:
    """Return the requirements that are not installed, as text."""
    unmet = []
    for one in requirements:
        try:
            installed = metadata.version(one.name)
        except metadata.PackageNotFoundError:
            unmet.append(str(one))
            continue
        if not one.specifier.contains(installed, prereleases=True):
            unmet.append(f"{one} (installed: {installed})")
    return unmet


def _packages() -> Iterator[DoctorCheck]:
    try:
        needed = _requirements()[""]
    except metadata.PackageNotFoundError:
        remedy = "pip install -e . in the clone"
        yield _failed("packages", "numtok is not installed as a package", remedy)
        return
    if unmet := _unmet(needed):
        yield _failed("packages", f"missing: {', '.join(unmet)}", "just setup, or pip install them")
    else:
        yield _ok("packages", f"all {len(needed)} that numtok needs are installed")


def _extras() -> Iterator[DoctorCheck]:
    with suppress(metadata.PackageNotFoundError):
        for extra, needed in _requirements().items():
            if not extra or extra in _NOT_PARTS:
                continue
            name = f"extra {extra}"
            if unmet := _unmet(needed):
                yield DoctorCheck(
                    name=name,
                    status="missing",
                    finding=f"not installed: {', '.join(unmet)}",
                    remedy=f'pip install "numtok[{extra}]"',
                )
            else:
                yield _ok(name, "installed")


def _kernels() -> Iterator[DoctorCheck]:
    folder = kernel_files.folder()
    if folder is None:
        yield _failed("kernels", "no private, writable folder", "set NUMBA_CACHE_DIR to one")
        return
    every = list(kernels.every_kernel())
    missing = [one.address for one in every if not one.is_compiled()]
    try:
        _compile(missing)
    except NumtokError as error:
        yield _failed("kernels", str(error), "")
        return
    compiled = f", of which {len(missing)} were compiled now" if missing else ""
    yield _ok("kernels", f"{len(every)} in {folder}{compiled}")


def _compile(addresses: Sequence[str]) -> None:
    """Compile kernels in as many processes as there are cores."""
    with Workers(machine.cores()) as workers:
        list(workers.run(kernels.load, addresses))


def _devices() -> Iterator[DoctorCheck]:
    import torch

    try:
        threads, cores = config.threads() or torch.get_num_threads(), machine.cores()
        memory = machine.memory() / 1e9
        yield _ok("cpu", f"{cores} cores, {threads} threads, {memory:.0f} GB of memory")
    except UsageError as error:
        yield _failed("cpu", str(error), "set it to a number, or unset it")
    names = [torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("mps")
    yield _ok("gpu", ", ".join(names) or "none; models are trained on the CPU")


def _config(problem: str) -> Iterator[DoctorCheck]:
    path = Path(config.FILE)
    if problem:
        yield _failed(config.FILE, problem, "correct the file")
    elif not os.path.lexists(path):
        yield _ok(config.FILE, "none in this folder: built-in defaults")
    else:
        yield _ok(config.FILE, f"valid: {path.resolve()}")


def _plugins() -> Iterator[DoctorCheck]:
    folders = plugins.plugin_folders()
    broken: list[str] = []
    count = 0
    for kind in plugin_checks.kinds() if folders else ():
        registry = plugin_checks.registry_of(kind)
        for name in registry.plugins():
            count += 1
            try:
                registry[name]
            except NumtokError as error:
                broken.append(f"{kind} {name}: {error}")
    if broken:
        yield _failed("plugins", "; ".join(broken), "correct the file, then numtok check KIND NAME")
    elif folders:
        yield _ok("plugins", f"{count} in {', '.join(map(str, folders))}")
    else:
        yield _ok("plugins", "no plugin folder")


def _store(root: Path) -> Iterator[DoctorCheck]:
    parent = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        yield _failed("store", f"{parent} is not a writable folder", "use another with --store DIR")
        return
    room, _ = files.system.room(parent)
    if room < _LEAST_ROOM:
        remedy = "free some space: numtok gc, numtok rm"
        yield _failed("store", f"{room / 1e6:.0f} MB free on the disk of {root}", remedy)
        return
    try:
        count, broken = _manifests(root)
    except StoreError as error:
        yield _failed("store", str(error), "use another with --store DIR")
        return
    if broken:
        yield _failed("store", broken[0], "numtok verify lists all damaged artifacts")
        return
    yield _ok(
        "store",
        f"{root}: {counted(count, 'artifact')}, format {on_disk.FORMAT}, {room / 1e9:.1f} GB free",
    )


def _manifests(root: Path) -> tuple[int, list[str]]:
    """Return the number of artifacts, and errors in their manifests."""
    artifacts = Store(root).artifacts() if root.exists() else []
    broken = []
    for one in artifacts:
        try:
            on_disk.read_manifest(one.path)
        except StoreError as error:
            broken.append(str(error))
    return len(artifacts), broken
