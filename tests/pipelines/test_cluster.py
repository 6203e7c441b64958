"""The files under pipelines/cluster/: a sweep as a Slurm job array, and Ray on the nodes of a job.

Slurm is not needed: scripts that run each job at once replace ``sbatch`` and ``srun``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import validate

from numtok.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "pipelines/cluster"
SWEEP, RAY = CLUSTER / "slurm-sweep.sh", CLUSTER / "slurm-ray.sh"

#: Records its arguments; with DO, also runs all jobs of an array, or the single job.
SBATCH = """#!/bin/bash
echo "sbatch $*" >> calls
while [[ "$1" == --* ]]; do
    case "$1" in --array=1-*) array=${1#--array=1-};; esac
    shift
done
[ -z "${DO-}" ] || for task in $(seq "${array:-0}" | sed 's/^0$//'); do
    SLURM_JOB_ID=$task SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_PER_TASK=1 "$@" >> out
done
[ -z "${DO-}" ] || [ -n "${array-}" ] || SLURM_JOB_ID=9 SLURM_CPUS_PER_TASK=1 "$@" >> out
echo "17;cluster"
"""
RECORD = '#!/bin/bash\necho "$(basename "$0") $* threads=${NUMTOK_THREADS-}" >> calls\n'
Call = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Return a function that runs a script in an empty folder with these commands first in PATH."""
    bin = tmp_path / "bin"
    bin.mkdir()

    def call(
        script: Path, *words: str, commands: Mapping[str, str], **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        for name, text in commands.items():
            (bin / name).write_text(text)
            (bin / name).chmod(0o755)
        path = os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            [str(script), *words],
            cwd=tmp_path,
            env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)} | environment,
            capture_output=True,
            text=True,
        )

    return call


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_a_sweep_is_submitted_as_an_array_and_a_job_after_it(call: Call, tmp_path: Path) -> None:
    words = ("a b.toml", "--set", "train.steps=2")
    how = {"PARTS": "3", "SBATCH": "--time=1:00:00 --gpus-per-task=1"}
    done = call(SWEEP, *words, commands={"sbatch": SBATCH}, **how)
    assert done.returncode == 0, done.stderr
    job = f"{SWEEP} {' '.join(words)}"
    assert calls(tmp_path) == [
        f"sbatch --parsable --time=1:00:00 --gpus-per-task=1 --array=1-3 {job}",
        f"sbatch --time=1:00:00 --gpus-per-task=1 --dependency=afterany:17 {job}",
    ]
    done = call(SWEEP, *words, commands={})
    assert done.returncode != 0 and "PARTS" in done.stderr


def test_a_job_does_its_part(call: Call, tmp_path: Path) -> None:
    commands = {"numtok": RECORD}
    for how in (
        {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "5", "SLURM_CPUS_PER_TASK": "4"},
        {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "1", "PARTS": "8"},  # a rerun
        {},
    ):
        assert not call(SWEEP, "a.toml", commands=commands, SLURM_JOB_ID="7", **how).stderr
    assert calls(tmp_path) == [
        "numtok sweep a.toml --part 2/5 threads=4",
        "numtok sweep a.toml --part 3/8 threads=1",
        "numtok sweep a.toml threads=1",
    ]


@pytest.mark.slow
def test_the_array_makes_what_one_sweep_makes(call: Call, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        '[gen]\ntask = "arithmetic"\noperands = 2\nsamples = 200\n'
        '[encode]\nscheme = "xval"\n'
        '[train]\npreset = "nano,layers=1,width=16,heads=2"\nsteps = 2\nseed = [0, 1, 2]\n'
        'device = "cpu"\n'
    )
    for store, script, more in (
        ("parts", SWEEP, {"PARTS": "2", "DO": "yes"}),
        ("whole", SWEEP, {"SLURM_JOB_ID": "7"}),
    ):
        done = call(script, "sweep.toml", commands={"sbatch": SBATCH}, NUMTOK_STORE=store, **more)
        assert done.returncode == 0, done.stderr
    made = [
        {
            f"{one.kind}/{one.ref}": one.manifest.content
            for one in Store(tmp_path / name).artifacts()
        }
        for name in ("parts", "whole")
    ]
    assert made[0] == made[1] and len(made[0]) == 2 + 2 * 3
    assert "split test" in (tmp_path / "out").read_text()


#: The second query finds two nodes; a started node runs until it is ended.
FAKE_RAY = """#!/bin/bash
echo "ray $*" >> calls
[ "$1" == start ] && exec sleep 60
echo ' 1 node_0'
[ ! -e asked ] || [ -n "${LOST-}" ] || echo ' 1 node_1'
touch asked
"""
JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_CPUS_PER_TASK": "8",
    "SLURM_GPUS_ON_NODE": "4",
    "RAY_HOST": "10.0.0.1",
}


def test_ray_starts_on_all_nodes_of_a_job(call: Call, tmp_path: Path) -> None:
    srun = '#!/bin/bash\necho "srun $*" >> calls\nexec sleep 60\n'
    commands = {"ray": FAKE_RAY, "srun": srun, "numtok": RECORD}
    commands["sleep"] = '#!/bin/bash\nexec /bin/sleep "$(( $1 > 9 ? $1 : 0 ))"\n'  # polls are fast
    # The script ends its other nodes with its command, perhaps before they have logged their line.
    started_all = "until grep -q ^srun calls; do /bin/sleep 0.01; done\n"
    commands["numtok"] = RECORD.replace("echo", f"{started_all}echo", 1)
    done = call(RAY, "sweep", "a b.toml", commands=commands, **JOB)
    assert done.returncode == 0, done.stderr
    share = "--num-cpus 8 --disable-usage-stats --block --num-gpus 4"
    *_, last = calls(tmp_path)
    started = sorted(one for one in calls(tmp_path) if "start" in one)
    assert started[0] == (
        "ray start --head --node-ip-address 10.0.0.1 --port 6379 --include-dashboard false " + share
    )
    assert started[1].startswith("srun --nodes=1 --ntasks=1 --exclude=")
    assert started[1].endswith(f"ray start --address 10.0.0.1:6379 {share}")
    assert last == "numtok sweep a b.toml --engine ray:10.0.0.1:6379 threads="


def test_a_node_that_does_not_join_is_told(call: Call) -> None:
    srun = "#!/bin/bash\nexit 3\n"
    commands = {"ray": FAKE_RAY, "srun": srun, "numtok": RECORD}
    done = call(RAY, "sweep", "a.toml", commands=commands, LOST="yes", **JOB)
    assert done.returncode == 4
    assert done.stderr == (
        "only 1 of 2 nodes joined the Ray cluster at 10.0.0.1:6379; ./ray-7.log says why\n"
    )


def test_the_cluster_file_is_as_ray_wants_it() -> None:
    spec = find_spec("ray")
    if spec is None or spec.origin is None:
        pytest.skip('needs `pip install "numtok[ray]"`')
    schema = json.loads((Path(spec.origin).parent / "autoscaler/ray-schema.json").read_text())
    config: dict[str, Any] = yaml.safe_load((CLUSTER / "ray-cluster.yaml").read_text())
    validate(config, schema)
    starts = [*config["head_start_ray_commands"], *config["worker_start_ray_commands"]]
    assert sum(" start " in one for one in starts) == 2
