"""Settings that choose the target and the text of a row from the fields of a file."""

from typing import Any

from numtok.declaration import setting
from numtok.errors import UsageError

TARGET = "Field to predict, in a CSV, JSON Lines or Parquet file"


def target(help: str = f"{TARGET}; repeatable") -> Any:
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
        (),
        "With --target: fields to leave out, such as an id",
        joined=True,
        metavar="A,B",
    )


def check(settings: Any) -> None:
    """Raise UsageError if fields are chosen without a target, or several files with one."""
    if settings.target and len(settings.inputs) != 1:
        raise UsageError(
            f"--target needs a single file (got {len(settings.inputs)} inputs). Join the files"
        )
    if settings.fields and settings.drop:
        raise UsageError("--fields and --drop cannot be combined. Choose one")
    for option in ("fields", "drop") if not settings.target else ():
        if getattr(settings, option):
            raise UsageError(f"--{option} needs the field to predict. Pass --target")
