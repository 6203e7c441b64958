"""Generates ``docs/guide/reference.md``: command options, and the settings of schemes, heads and
other parts.

``just reference`` writes the page from the setting declarations, so it agrees with ``--help``.
"""

import inspect
import pkgutil
from collections.abc import Iterator

from numtok import settings
from numtok.cli._options import COLUMNS, Kind
from numtok.cli.output.printing import markdown
from numtok.declaration import Setting, settings_in
from numtok.plugins import registries
from numtok.registry import registry_in
from numtok.sweeps.stage_table import SETTINGS

_HEAD = """# Reference

Every option of the commands that have settings, and every setting of what a spec names. An option
is a key of the command's table in `numtok.toml`, and where the last column says so of its table in
a sweep's file. This page is made of the code (`just reference`)."""


def reference() -> str:
    """Return the whole page in Markdown, ending with a line feed."""
    return "\n\n".join([_HEAD, *_commands(), *_kinds()]) + "\n"


def _commands() -> Iterator[str]:
    for info in pkgutil.iter_modules(settings.__path__):
        if info.name.startswith("_"):
            continue
        kind = pkgutil.resolve_name(f"numtok.settings.{info.name}").Config
        summary = inspect.getdoc(inspect.getmodule(kind)) or ""
        swept = info.name in SETTINGS
        rows = [_row(one)[: 3 + swept] for one in settings_in(kind).values()]
        columns = ("option", "default", "what", "sweep")[: 3 + swept]
        yield f"## numtok {info.name}\n\n{summary}\n\n{markdown(columns, rows)}"


def _row(setting: Setting) -> tuple[str, ...]:
    metavar = setting.metavar or ""
    name = metavar if setting.argument else f"--{setting.flag} {metavar}".rstrip()
    default = (
        "" if setting.default == () else setting.shown_default or setting.default_in_spec or ""
    )
    swept = setting.swept and not setting.argument
    return f"`{name}`", default, setting.sentence, "yes" if swept else ""


def _kinds() -> Iterator[str]:
    for folder, package in sorted(registries().items()):
        registry = registry_in(package)
        parts = [part for name in registry if (part := _kind(folder, name))]
        title = folder.replace("_", " ").capitalize()
        names = f"Names: {', '.join(registry)}."
        yield "\n\n".join([f"## {title}", names, *parts])


def _kind(folder: str, name: str) -> str:
    kinds = Kind(folder, name).rows()
    rows = [(f"`{written}`", default or "", *rest) for written, default, *rest in kinds]
    return f"### {name}\n\n{markdown(COLUMNS, rows)}" if rows else ""


if __name__ == "__main__":
    print(reference(), end="")
