"""Complete the lock files after their versions changed (`just lock`).

    python .ci/locks.py hashes UV    # writes the hashes of all files of each version
    python .ci/locks.py licenses     # writes docs/LICENSES.md, from the packages in .venv

UV is the program `uv`, which queries the package index.
"""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
LICENSES = ROOT / "docs" / "LICENSES.md"
_OLDEST = "3.11.0"  # Python


def write_hashes(lock: Path, uv: str) -> None:
    """Write the hashes of all files of each locked version into a lock file."""
    before = lock.read_text(encoding="utf-8")
    options = ["--no-deps", "--universal", "--generate-hashes", "--no-header", "--no-annotate"]
    command = [uv, "pip", "compile", "--quiet", "--python-version", _OLDEST, *options, str(lock)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(found.stderr)
    header = [line for line in before.splitlines(keepends=True) if line.startswith("#")]
    lock.write_text("".join(header) + found.stdout, encoding="utf-8")


def names(lock: Path) -> set[str]:
    """Return the names of the packages in a lock file."""
    return {*re.findall(r"^([\w.-]+)==", lock.read_text(encoding="utf-8"), re.M)}


def license_of(name: str) -> str:
    """Return the license that an installed package states."""
    stated = distribution(name).metadata
    classified = [
        line.rpartition(" :: ")[2]
        for line in stated.get_all("Classifier") or []
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    free = (stated["License"] or "").partition("\n")[0].strip()  # some contain the full text
    return stated["License-Expression"] or ", ".join(classified) or free or "not stated"


def write_licenses() -> None:
    """Write the page of licenses."""
    by_license: dict[str, list[str]] = {}
    for name in sorted({name for lock in LOCKS for name in names(lock)}, key=str.lower):
        by_license.setdefault(license_of(name).replace("|", "/"), []).append(name)
    rows = [f"| {terms} | {', '.join(by_license[terms])} |" for terms in sorted(by_license)]
    head = [
        "# Licenses",
        "",
        "Packages in the two locks, by the license that each states in its metadata. "
        "`just lock` writes this page.",
        "",
        "| license | packages |",
        "|---|---|",
    ]
    LICENSES.write_text("\n".join([*head, *rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hashes", uv]:
            for lock in LOCKS:
                write_hashes(lock, uv)
        case ["licenses"]:
            write_licenses()
        case _:
            raise SystemExit(__doc__)
