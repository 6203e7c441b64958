"""The options that a task adds to ``numtok gen``: reading them, and their help."""

import inspect
import re
import shutil
import textwrap
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import typer

from numtok.cli.output.printing import print_table
from numtok.data.tasks.base import TASKS, Task
from numtok.errors import UsageError, unknown
from numtok.registry import parse_spec


def task_spec(context: typer.Context, task: str | None) -> str:
    """The task and its options as one spec: ``arithmetic``, ``--operands 3`` ->
    ``arithmetic,operands=3``.

    Raises UsageError for what is no option of the task.
    """
    if task is None or task.startswith("-"):
        got = f", before {task}" if task else ""
        raise UsageError(
            f"gen needs the name of a task{got}; known: {', '.join(TASKS)}; "
            "`numtok gen TASK --help` says what it makes"
        )
    name = parse_spec(task, "task")[0]
    settings = [field.name for field in settings_fields(TASKS[name])]
    parts = [task]
    words = iter(context.args)
    for word in words:
        option, equals, value = word.partition("=")
        key = option.removeprefix("--").replace("-", "_")
        if not option.startswith("--"):
            raise UsageError(
                f"gen {name}: {word!r} belongs to no option; options are written --operands 3"
            )
        if key not in settings:
            own = [known for parameter in context.command.params for known in parameter.opts]
            options = [f"--{known.replace('_', '-')}" for known in settings]
            raise unknown(f"option of gen {name}", option, {*options, *own} - {"task"})
        if not (value := value if equals else next(words, "")):
            raise UsageError(f"gen {name}: {option} needs a value; write {option} VALUE")
        parts.append(f"{key}={value}")
    return ",".join(parts)


def print_help(context: typer.Context, task: str | None) -> None:
    """The help of ``gen``, or of one task: what it makes and its options."""
    if task is None:
        typer.echo(context.get_help())
        typer.echo(_line(f"Tasks: {', '.join(TASKS)}", 80))
        return
    name = parse_spec(task, "task")[0]
    kind = TASKS[name]
    text = inspect.cleandoc(kind.__doc__ or "").partition("\n>>> ")[0].strip()
    typer.echo(f"Usage: numtok gen {name} [OPTIONS]\n\n{_filled(text.replace('``', ''))}\n")
    rows = [
        (f"--{field.name.replace('_', '-')}", _default(field), field.metadata.get("help", ""))
        for field in settings_fields(kind)
    ]
    print_table(f"options of {name}", ("option", "default", "what"), rows)
    if kind.own_splits is Task.own_splits:
        typer.echo(f"\nDefault: --samples {kind.samples} --split {kind.split}")
    else:
        typer.echo("\n--samples and --split mean nothing here.")
    typer.echo("The other options: numtok gen --help")


def _filled(text: str) -> str:
    """Paragraphs and points in lines of the terminal, while what is indented stays as it is.

    >>> print(_filled("One\\npart.\\n\\n- a\\n  point\\n- another\\n\\n    kept\\n    so"))
    One part.
    <BLANKLINE>
    - a point
    - another
    <BLANKLINE>
        kept
        so
    """
    width = shutil.get_terminal_size().columns
    parts = []
    for part in text.split("\n\n"):
        if part.startswith("    "):
            parts.append(part)
            continue
        points = re.split(r"\n(?=- )", part)
        parts.append("\n".join(_line(" ".join(point.split()), width) for point in points))
    return "\n\n".join(parts)


def _line(text: str, width: int) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def settings_fields(kind: type[Task]) -> tuple[Field[Any], ...]:
    """The settings of a task, in order."""
    assert is_dataclass(kind)
    return fields(kind)


def _default(field: Field[Any]) -> str | None:
    """As it is written in a spec; None where a value must be given."""
    if field.default is MISSING:
        return None
    if isinstance(field.default, bool):
        return "yes" if field.default else "no"
    return str(field.default)
