"""Generates one page per command, and one page per kind of part.

Both come from the setting declarations, so they agree with ``--help``. The options of commands
without settings come from typer.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer.main

from docs.site.text import first_sentence, prose, table
from numtok.cli import main
from numtok.cli._help import PANELS
from numtok.cli._options import COLUMNS, Kind
from numtok.declaration import Setting
from numtok.plugins import registries
from numtok.registry import registry_in
from numtok.sweeps.stage_table import SETTINGS

_COMMANDS = """# Commands

Commands print the REF of their artifact on standard output, and tables on standard error. `--json`
prints everything ([keys](../json.md)), and `--html FILE` writes a page of a profile, report,
comparison, sweep or race. `--store DIR` and `--quiet` work with every command.

An option is also a key of the command's table in `numtok.toml`. If the column *sweep* says yes, it
is a key of that table in a sweep's file as well."""
_PARTS = """# Parts

A spec names a part and its settings: `mdn:5`, `riemann,bins=64`. These pages list every part and
setting. [Extend numtok](../../extend/index.md) shows how to add one."""
#: Titles of the pages of parts, by registry folder.
TITLES = {
    "embedders": "Embedders",
    "figures": "Figures",
    "heads": "Heads",
    "metrics": "Metrics",
    "normalizers": "Normalizers",
    "number_terms": "Number losses",
    "objectives": "Objectives",
    "places": "Digit positions",
    "probes": "Probes",
    "schemes": "Schemes",
    "sources": "Sources",
    "tasks": "Tasks",
    "text_tokenizers": "Text tokenizers",
    "trunks": "Trunks",
}


def commands(words: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return the click command of each name. With the words of a command line, only that command,
    whose options may depend on them."""
    group: Any = typer.main.get_command(main.build(words))
    found: Mapping[str, Any] = group.commands
    return found


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each page."""
    known = commands()
    lines = [_COMMANDS]
    for panel, names in PANELS.items():
        rows = [(f"[`{name}`]({name}.md)", _summary(known[name])) for name in names]
        lines.append(f"## {panel}\n\n{table(('command', 'purpose'), rows)}")
    yield "reference/commands/index.md", "\n\n".join(lines) + "\n"
    for name, command in known.items():
        yield f"reference/commands/{name}.md", command_page(name, command)
    folders = sorted(set(registries()) - {"schemes"})
    rows = [
        (f"[{TITLES[folder]}]({folder}.md)", ", ".join(f"`{name}`" for name in _names(folder)))
        for folder in folders
    ]
    yield "reference/parts/index.md", f"{_PARTS}\n\n{table(('kind', 'names'), rows)}\n"
    for folder in folders:
        yield f"reference/parts/{folder}.md", parts_page(folder)


def _summary(command: Any) -> str:
    return inspect.cleandoc(command.help or "").partition("\n")[0].rstrip(".")


def command_page(name: str, command: Any) -> str:
    """Return the page of a command: usage, description, example and options."""
    text, _, example = inspect.cleandoc(command.help or "").rpartition("Example: ")
    text = text or example
    arguments = [p.metavar or p.name.upper() for p in command.params if _is_argument(p)]
    usage = " ".join(["numtok", name, *arguments, "[OPTIONS]"])
    parts = [f"# numtok {name}", f"```text\n{usage}\n```", prose(text)]
    if text != example:
        parts.append(f"Example:\n\n```sh\n{' '.join(example.split())}\n```")
    swept = name in SETTINGS
    sections: dict[str, list[tuple[str, ...]]] = {}
    for param in command.params:
        if getattr(param, "hidden", False) or param.name == "help":
            continue
        setting = command.settings.get(param.name)
        section = (setting.section if setting else None) or "Options"
        row = _setting_row(setting) if setting else _param_row(param)
        sections.setdefault("Arguments" if _is_argument(param) else section, []).append(row)
    columns = ("option", "default", "meaning", "sweep")[: 3 + swept]
    for section, rows in sections.items():
        parts.append(f"## {section}\n\n{table(columns, [row[: 3 + swept] for row in rows])}")
    return "\n\n".join(parts) + "\n"


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _setting_row(setting: Setting) -> tuple[str, ...]:
    metavar = setting.metavar or ""
    name = metavar if setting.argument else f"--{setting.flag} {metavar}".rstrip()
    default = (
        "" if setting.default == () else setting.shown_default or setting.default_in_spec or ""
    )
    swept = setting.swept and not setting.argument
    return f"`{name}`", default, setting.sentence, "yes" if swept else ""


def _param_row(param: Any) -> tuple[str, ...]:
    if _is_argument(param):
        return f"`{param.metavar or param.name.upper()}`", "", param.help or "", ""
    switch = getattr(param, "is_flag", False)
    name = f"{', '.join(param.opts)} {'' if switch else param.metavar or ''}".strip()
    default = "" if switch or param.default in (None, (), []) else param.default
    return f"`{name}`", str(getattr(default, "value", default)), param.help or "", ""


def _names(folder: str) -> list[str]:
    return list(registry_in(registries()[folder]))


def parts_page(folder: str) -> str:
    """Return the page of a kind of part: each name with its description and settings."""
    parts = [f"# {TITLES[folder]}"]
    if folder == "metrics":
        rows = [_metric_row(name) for name in _names(folder)]
        parts.append(table(("metric", "of", "meaning", "better is"), rows))
        parts.append("## Settings")
    for name in _names(folder):
        kind = Kind(folder, name)
        rows = [(f"`{written}`", default or "", *rest) for written, default, *rest in kind.rows()]
        if folder == "metrics" and not rows:
            continue
        parts.append(f"{'###' if folder == 'metrics' else '##'} {name}")
        parts += [prose(kind.text)] if kind.text else []
        parts += [table(COLUMNS, rows)] if rows else []
    return "\n\n".join(parts) + "\n"


def _metric_row(name: str) -> tuple[str, ...]:
    kind = Kind("metrics", name).kind
    return f"`{name}`", kind.measures, first_sentence(prose(kind.__doc__ or "")), kind.better
