#!/bin/bash
# Run a sweep as a Slurm job array. Each task trains and evaluates a part of the runs; a last job
# compares them:
#
#   PARTS=8 pipelines/cluster/slurm-sweep.sh SWEEP.toml [OPTION...]
#
#   PARTS       number of tasks that divide the runs
#   SBATCH      further options of sbatch, such as "--gpus-per-task=1 --time=8:00:00"
#   OPTION      options of numtok sweep
#
# The current folder and NUMTOK_STORE must be visible to all nodes. The same command resumes an
# interrupted sweep. To run only the third part:
#
#   PARTS=8 sbatch --array=3 pipelines/cluster/slurm-sweep.sh SWEEP.toml [OPTION...]
#
#SBATCH --job-name=numtok-sweep
#SBATCH --cpus-per-task=4
# Runs write a checkpoint one minute before the time limit.
#SBATCH --signal=B:TERM@60
set -euo pipefail

if [ -z "${SLURM_JOB_ID-}" ]; then
    : "${PARTS:?how many jobs share the runs, as in PARTS=8 $0 SWEEP.toml}"
    export PARTS
    # shellcheck disable=SC2086 # several words
    array=$(sbatch --parsable ${SBATCH-} --array="1-$PARTS" "$0" "$@")
    # shellcheck disable=SC2086
    exec sbatch ${SBATCH-} --dependency="afterany:${array%%;*}" "$0" "$@"
fi

export NUMTOK_THREADS=${SLURM_CPUS_PER_TASK:-1}
if [ -n "${SLURM_ARRAY_TASK_ID-}" ]; then
    set -- "$@" --part "$SLURM_ARRAY_TASK_ID/${PARTS:-$SLURM_ARRAY_TASK_COUNT}"
fi
# Replace this shell, so that signals reach numtok.
exec numtok sweep "$@"
