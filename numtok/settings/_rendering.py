"""Settings that choose the target and the text of a row from the fields of a file."""

from collections.abc import Mapping, Sequence
from typing import Any

from numtok.declaration import setting
from numtok.errors import UsageError


def target() -> Any:
    help = "Field to predict, in a CSV, JSON Lines or Parquet file; repeatable"
    return setting((), help, metavar="FIELD")


def fields() -> Any:
    return setting(
        (),
        "With --target: fields of the text; quote a name that contains a comma",
        joined=True,
        metavar="A,B",
        shown_default="all others",
    )


def drop() -> Any:
    return setting(
        (), "With --target: fields to leave out, such as an id", joined=True, metavar="A,B"
    )


def check(settings: Any) -> None:
    """Raise UsageError if several files have a target, or as :func:`check_fields` does."""
    if settings.target and len(settings.inputs) > 1:
        raise UsageError(
            f"--target needs a single file (got {len(settings.inputs)} inputs). Join the files"
        )
    check_fields(settings)


def check_fields(settings: Any) -> None:
    """Raise UsageError if fields are chosen without a target, or as :func:`check_choices` does."""
    for option in ("fields", "drop") if not settings.target else ():
        if getattr(settings, option):
            raise UsageError(f"--{option} needs the field to predict. Pass --target")
    check_choices(settings)


def check_choices(settings: Any) -> None:
    """Raise UsageError if two options cannot be combined, or name the same field."""
    target = settings.target
    text_field = () if settings.text_field is None else (settings.text_field,)
    check_names(
        {
            "target": (target,) if isinstance(target, str) else target or (),
            "text-field": text_field if target else (),
            "fields": settings.fields,
            "drop": settings.drop,
        }
    )


def check_names(chosen: Mapping[str, Sequence[str]]) -> None:
    """Check the fields that options name: the targets, then those to use or to leave out.

    ``chosen`` maps each option to its fields. Raises UsageError if two of the latter options are
    given, or if a field is named twice or is also a target.
    """
    targets, *others = chosen
    given = [option for option in others if chosen[option]]
    if len(given) > 1:
        raise UsageError(f"--{given[0]} and --{given[1]} cannot be combined. Choose one")
    for option in (targets, *given):
        names = chosen[option]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise UsageError(f"--{option} names {name!r} twice. Name each field once")
            if option != targets and name in chosen[targets]:
                raise UsageError(f"--{option} cannot contain the target {name!r}. Remove it")
