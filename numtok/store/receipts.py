"""Receipts: what vouches for the finished files of one unit of work, so that a run goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from numtok import files
from numtok.names import NAME
from numtok.store.artifact import FORMAT, RECEIPTS, SMALL, Output, is_there, readable_json
from numtok.stored_json import decode

F = TypeVar("F", bound=msgspec.Struct)


class NoFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a unit whose files say everything."""


class Receipt(msgspec.Struct, Generic[F], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One finished unit of a stage: what went in, what came out, what was counted.

    ``facts`` are of a struct of the stage's own.
    """

    schema: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    unit: str
    input: str
    settings: str
    outputs: tuple[Output, ...]
    facts: F


def write_receipt(
    draft: Path,
    unit: str,
    *,
    input: str,
    settings: str,
    outputs: Sequence[Output],
    facts: msgspec.Struct | None = None,
) -> None:
    """Vouch for the finished files of one unit; the last thing a unit does.

    ``input`` and ``settings`` are digests of what went in. Needs only the
    folder, so a spawned worker can call it. Raises StoreError.
    """
    made = Receipt(
        schema=FORMAT, unit=unit, input=input, settings=settings, outputs=tuple(outputs),
        facts=NoFacts() if facts is None else facts,
    )  # fmt: skip
    receipt = readable_json(made)
    if len(receipt) > SMALL:
        raise ValueError(
            f"the receipt of {unit} has {len(receipt)} bytes, at most {SMALL} are read"
        )
    files.write_atomic(_receipt_path(draft, unit), receipt)


def read_receipt(
    draft: Path, unit: str, *, input: str, settings: str, facts: type[F]
) -> Receipt[F] | None:
    """The receipt of a unit, if the unit need not be done again.

    That is: it was written for the same input and settings digests, its facts are of that type,
    and every file it lists is there with its size and sha256. Otherwise None, and what is there of
    the unit is removed. Raises StoreError.
    """
    path = _receipt_path(draft, unit)
    with files.reporting("continue from", path):
        if not is_there(path):
            return None
        receipt = _load_receipt(path, facts)
        if receipt is not None:
            asked = (receipt.unit, receipt.input, receipt.settings) == (unit, input, settings)
            if asked and all(_matches(draft, output) for output in receipt.outputs):
                return receipt
            for output in receipt.outputs:
                if is_there(draft / output.path):
                    files.system.unlink(draft / output.path)
        files.system.unlink(path)
    return None


def vouched(draft: Path) -> dict[str, Output]:
    """Every file that a readable receipt of the draft lists, by path."""
    folder = draft / RECEIPTS
    found: dict[str, Output] = {}
    for entry in files.system.scandir(folder):
        if entry.name.startswith("."):  # one whose writing was cut short
            continue
        if (receipt := _load_receipt(folder / entry.name, msgspec.Raw)) is not None:
            found |= {output.path: output for output in receipt.outputs}
    return found


def _matches(folder: Path, output: Output) -> bool:
    path = folder / output.path
    if not is_there(path) or files.system.stat(path).st_size != output.bytes:
        return False
    return files.sha256_file(path)[0] == output.sha256


def _receipt_path(draft: Path, unit: str) -> Path:
    if not NAME.fullmatch(unit):
        raise ValueError(f"unit {unit!r} is not a name")
    return draft / RECEIPTS / f"{unit}.json"


def _load_receipt(path: Path, facts: type[Any]) -> Receipt[Any] | None:
    """None for one that is damaged: its unit is simply done again."""
    try:
        return decode(files.read_bytes(path, SMALL), Receipt[facts])  # type: ignore[valid-type]
    except ValueError:
        return None
