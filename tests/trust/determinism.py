"""Artifacts have the same bytes in every environment."""

import shutil
from random import Random

from tests.forks import forking
from tests.trust.chain import BUILD, prepare
from tests.trust.promise import Promise
from tests.trust.world import SECONDS, World, check_state, check_told, opened

_LOCALES = ("C", "C.UTF-8", "POSIX", "en_US.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "no_SUCH")
_ZONES = ("UTC", "Asia/Kathmandu", "America/St_Johns", "Pacific/Kiritimati")


def another(world: World, random: Random) -> int:
    """Run the chain in a process with another hash seed, locale, time zone and width."""
    environment = {
        "PYTHONHASHSEED": str(random.randrange(1 << 32)),
        "LC_ALL": random.choice(_LOCALES),
        "TZ": random.choice(_ZONES),
        "COLUMNS": str(random.randint(20, 300)),
        "PYTHONUTF8": random.choice("01"),
    }
    folder = world.folder / f"another {random.choice(['a', 'ä', 'x y'])}"
    prepare(folder)
    try:
        with forking(folder, (), (), **environment) as forks:
            for command in BUILD:
                workers = ("--workers", str(random.choice([1, 2])))
                more = workers if command[0] in ("gen", "encode") else ()
                ended = forks(folder, *command, *more, limit=SECONDS)
                check_told(ended, (0,), (*command, *more, str(environment)))
        check_state(folder, world.whole.state, (str(environment),))
    finally:
        shutil.rmtree(folder)
    return 1


DETERMINISM = Promise(
    name="determinism",
    says="The bytes of artifacts depend only on inputs, settings and library versions: not on "
    "workers, locale, time zone, hash seed, terminal or folder.",
    how="The chain runs in a new process whose environment is drawn, with one or two workers.",
    aim=200,
    unit="chains",
    world=opened,
    case=another,
)
