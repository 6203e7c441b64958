#!/bin/bash
# Start a Ray cluster on all nodes of a Slurm job, and run a numtok command on it:
#
#   sbatch --nodes=4 pipelines/cluster/slurm-ray.sh sweep SWEEP.toml
#   sbatch --nodes=4 pipelines/cluster/slurm-ray.sh encode --scheme xval DATA.jsonl
#
# The current folder and NUMTOK_STORE must be visible to all nodes. The cluster ends with the job.
#
#   RAY_HOST    address of the head (default: the address of the first node)
#   RAY_PORT    port of the head (default 6379)
#
#SBATCH --job-name=numtok-ray
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
set -euo pipefail

port=${RAY_PORT:-6379}
share=(--num-cpus "${SLURM_CPUS_PER_TASK:-1}" --disable-usage-stats --block)
[ -z "${SLURM_GPUS_ON_NODE-}" ] || share+=(--num-gpus "$SLURM_GPUS_ON_NODE")
log=${SLURM_SUBMIT_DIR:-.}/ray-${SLURM_JOB_ID:?call it with sbatch}.log

# This script runs on the first node, which becomes the head.
host=${RAY_HOST:-$(python -c "import ray.util; print(ray.util.get_node_ip_address())")}
ray start --head --node-ip-address "$host" --port "$port" --include-dashboard false \
    "${share[@]}" >> "$log" 2>&1 &
started=($!)
trap 'kill "${started[@]}" 2>> "$log" || true; wait' EXIT
others=$((${SLURM_JOB_NUM_NODES:-1} - 1))
if [ "$others" -gt 0 ]; then
    srun --nodes="$others" --ntasks="$others" --exclude="$(hostname)" \
        ray start --address "$host:$port" "${share[@]}" >> "$log" 2>&1 &
    started+=($!)
fi

# Wait until all nodes have joined.
for _ in $(seq 60); do
    there=$(ray status --address "$host:$port" 2>> "$log" | grep -c '^ 1 node_' || true)
    [ "$there" -le "$others" ] || break
    for pid in "${started[@]}"; do
        kill -0 "$pid" 2>> "$log" || break 2
    done
    sleep 2
done
if [ "$there" -le "$others" ]; then
    echo "only $there of $((others + 1)) nodes joined the Ray cluster at $host:$port; $log says why" >&2
    exit 4
fi
numtok "$@" --engine "ray:$host:$port"
