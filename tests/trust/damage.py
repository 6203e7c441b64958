"""Commands that read damaged files of the store."""

import re
from functools import cache
from pathlib import Path
from random import Random

from tests.damage import Damage, damages
from tests.forks import Ended
from tests.trust.chain import DRAFTS, READERS
from tests.trust.promise import Crashed, Promise
from tests.trust.world import World, opened

_SECONDS, _MEBIBYTES = 10.0, 1536.0
# The checksums of these files are compared at every read, so every change is noticed.
_SETTINGS = ("scheme", "model", "report", "table", "probe")
_CHECKED = {"predictions.parquet"} | {f"{name}.json" for name in _SETTINGS}


def damaged(world: World, random: Random) -> int:
    """Damage one file of the store, and run the commands that read it."""
    pattern = random.choice([*READERS, *DRAFTS])
    (file,) = (world.begun / "artifacts").glob(pattern)
    damage = random.choice(_known(file)) if random.random() < 0.5 else _bytes(file, random)
    name = pattern.split("/")[1]
    with world.copy(world.begun, links=pattern not in DRAFTS) as copy:
        path = copy / file.relative_to(world.begun)
        damage.inflict(path)
        codes = []
        for command in (READERS | DRAFTS)[pattern]:
            words = [word.format(name=name) for word in command]
            if words[0] in ("eval", "train", "encode", "gen") and "--name" not in words:
                words += ["--name", "new"]
            ended = world.forks(copy, *words, limit=_SECONDS)
            _check(ended, file.name, f"{pattern}: {damage.name}: numtok {words[0]}")
            codes.append(ended.code)
        if pattern in DRAFTS:  # a damaged draft need not be rejected: the run may restart
            return 1
        refused, must = {2, 3, 4} & {*codes}, damage.refused or file.name in _CHECKED
        assert refused or not must, f"{pattern}: {damage.name}: not noticed"
        if pattern.startswith("field/"):  # verified at every read
            return 1
        verified = world.forks(copy, "verify", str(path.parent), limit=_SECONDS)
        found = f"{pattern}: {damage.name}: numtok verify: exit {verified.code}: {verified.err}"
        if "Traceback" in verified.err:
            raise Crashed(found)
        assert verified.code in (1, 2, 4) or file.name == "timing.json", found
    return 1


@cache
def _known(file: Path) -> list[Damage]:
    return list(damages(file))


def _bytes(file: Path, random: Random) -> Damage:
    """Return random damage to the file's bytes, whatever its format."""
    whole = file.read_bytes()
    content = bytearray(whole)
    at = random.randrange(len(whole))
    kind = random.choice(["flip", "cut", "zeros", "insert", "repeat", "noise"])
    size = min(len(whole) - at, random.choice([1, 8, 64, 512, 4096]))
    if kind == "flip":
        content[at] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del content[at:]
    elif kind == "zeros":
        content[at : at + size] = bytes(size)
    elif kind == "insert":
        content[at:at] = random.randbytes(size)
    elif kind == "repeat":
        content[at:at] = content[at : at + size]
    else:
        content[at : at + size] = random.randbytes(size)

    def inflict(path: Path) -> None:
        path.unlink()  # other folders have links to the same file
        path.write_bytes(bytes(content))

    name = f"{kind} at byte {at} of {len(whole)}, size {size}"
    if bytes(content) == whole:
        return _bytes(file, random)
    return Damage(name, inflict, False)


def _check(ended: Ended, file: str, what: str) -> None:
    """Check that a damaged file is rejected in one line that names it, or has no effect."""
    if "Traceback" in ended.err or ended.code == 70:
        raise Crashed(f"{what}: exit {ended.code}: {ended.err}")
    assert ended.code >= 0, f"{what}: exit {ended.code} after {ended.seconds:.1f} s"
    assert ended.mebibytes <= _MEBIBYTES, f"{what}: took {ended.mebibytes:.0f} MiB"
    if ended.code > 1:
        lines = [line for line in ended.err.splitlines() if line.startswith("numtok: ")]
        assert ended.code in (2, 3, 4) and len(lines) == 1, f"{what}: {ended.code}: {ended.err}"
        # Errors about readable but unusable rows, such as a missing label, name the artifact.
        named = file in lines[0] or re.search(r"@[0-9a-f]{16}", lines[0])
        assert named, f"{what} does not name {file}: {lines[0]}"


DAMAGE = Promise(
    name="damage",
    says="A damaged file is refused in one line that names it, within 10 seconds and 1.5 GB, or "
    "does no harm; `numtok verify` finds every changed byte outside `timing.json`.",
    how="A file of a store is replaced (JSON values, columns, tensors, pipes, devices) or its "
    "bytes are changed at random; then the command that reads it runs, and `numtok verify`.",
    aim=10_000,
    unit="damaged files",
    world=opened,
    case=damaged,
)
