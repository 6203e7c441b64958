"""Receipts, which record finished units of work so that an interrupted run can resume.

A unit of work is an independent part of what a stage does, such as encoding one piece of the input.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from numtok import files
from numtok.names import NAME
from numtok.store.artifact import FORMAT, RECEIPTS, SMALL, Output, is_there, sealed_json
from numtok.stored_json import convert, decode

F = TypeVar("F", bound=msgspec.Struct)


class NoFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Empty facts for a :class:`Receipt` that needs none."""


class Receipt(msgspec.Struct, Generic[F], frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Record of a finished unit of work: digests of its input and settings, its output files, and
    its facts.

    ``facts`` is a struct, defined by the stage, with further results of the unit, such as counts.
    ``digest`` is the SHA-256 of the receipt without it.
    """

    schema: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    unit: str
    input: str
    settings: str
    outputs: tuple[Output, ...]
    facts: F
    digest: str = ""


def write_receipt(
    draft: Path,
    unit: str,
    *,
    input: str,
    settings: str,
    outputs: Sequence[Output],
    facts: msgspec.Struct | None = None,
) -> None:
    """Write the receipt of a unit of work. This must be the last step of the unit, after its files
    are finished.

    ``input`` and ``settings`` are digests of what the unit depends on. Only the draft's folder is
    needed, so spawned workers can call this function. Raises StoreError if the receipt cannot be
    written.
    """
    unsealed = Receipt(
        schema=FORMAT, unit=unit, input=input, settings=settings, outputs=tuple(outputs),
        facts=NoFacts() if facts is None else facts,
    )  # fmt: skip
    receipt = sealed_json(unsealed)
    if len(receipt) > SMALL:
        raise ValueError(
            f"the receipt of {unit} must have at most {SMALL} bytes (got {len(receipt)})"
        )
    files.write_atomic(_receipt_path(draft, unit), receipt)


def read_receipt(
    draft: Path, unit: str, *, input: str, settings: str, facts: type[F]
) -> Receipt[F] | None:
    """Return the receipt of a unit of work, or None if the unit must be done.

    A receipt is valid if its digest and those of its input and settings match, its facts have the
    given type, and all files that it lists exist with the recorded size and SHA-256. An invalid
    receipt is removed together with these files. Raises StoreError if the disk fails.
    """
    path = _receipt_path(draft, unit)
    with files.reporting("continue from", path):
        if not is_there(path):
            return None
        receipt = _load_receipt(path, facts)
        if receipt is not None:
            same = (receipt.unit, receipt.input, receipt.settings) == (unit, input, settings)
            if same and all(_matches(draft, output) for output in receipt.outputs):
                return receipt
            for output in receipt.outputs:
                if is_there(draft / output.path):
                    files.system.unlink(draft / output.path)
        files.system.unlink(path)
    return None


def vouched(draft: Path) -> dict[str, Output]:
    """Return the entries of all files that are listed in the readable receipts of a draft, keyed by
    path."""
    folder = draft / RECEIPTS
    outputs: dict[str, Output] = {}
    for entry in files.system.scandir(folder):
        if entry.name.startswith("."):  # an incomplete receipt
            continue
        if (receipt := _load_receipt(folder / entry.name, dict)) is not None:
            outputs |= {output.path: output for output in receipt.outputs}
    return outputs


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
    """Read a receipt. Return None if it is damaged, so that its unit is done again."""
    content = files.read_bytes(path, SMALL)
    try:
        receipt = decode(content, Receipt[Any])
        if sealed_json(receipt) != content:
            return None
        return msgspec.structs.replace(receipt, facts=convert(receipt.facts, facts))
    except ValueError:
        return None
