"""A small stage for tests of the store: three units with receipts, then one file without.

``python -m tests.faults PLAN -- tests.fakestage FOLDER`` makes its artifact.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

from numtok import files
from numtok.errors import NumtokError
from numtok.files import Sink
from numtok.store.artifact import Artifact, Output, Parent
from numtok.store.receipts import NoFacts, write_receipt
from numtok.store.store import Store

SETTINGS = {"scheme": {"name": "fake", "revision": 1}, "seed": 7}
PARENTS = [Parent("file", "data.jsonl", "ab" * 32, 12)]
COMMAND = ["numtok", "fake", "data.jsonl"]
UNITS = ("unit-0", "unit-1", "unit-2")


def make(
    store: Store,
    *,
    name: str = "toy",
    salt: str = "",
    force: bool = False,
    restart: bool = False,
    done: list[str] | None = None,
) -> Artifact:
    """Make the fake artifact; append the units that had to be computed to ``done``."""
    how = SimpleNamespace(force=force, restart=restart)
    with store.draft("fake", name, SETTINGS, PARENTS, COMMAND, how) as draft:
        if isinstance(draft, Artifact):
            return draft
        for unit in UNITS:
            if draft.receipt(unit, input=unit, settings="s", facts=NoFacts) is not None:
                continue
            folder = draft.path / "part"
            with files.reporting("write to", folder):
                if not files.is_folder(folder):
                    files.system.mkdir(folder)
            with Sink(folder / f"{unit}.txt") as sink:
                for line in range(3):
                    sink.write(f"{unit}{salt} {line}\n".encode())
            output = Output(f"part/{unit}.txt", sink.bytes, sink.sha256)
            write_receipt(draft.path, unit, input=unit, settings="s", outputs=[output])
            if done is not None:
                done.append(unit)
        files.write_atomic(draft.path / "scheme.json", b"{}\n")
        return draft.publish({"rows": 9}, {"seconds": 0.5})


def main() -> None:
    """Make the artifact and print its REF, or the error."""
    try:
        print(make(Store(Path(sys.argv[1]))).ref)
    except NumtokError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
