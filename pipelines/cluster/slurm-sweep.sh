#!/bin/bash
# A sweep as a Slurm job array, each task of which does a part of the runs, and a last job that
# compares them:
#
#   PARTS=8 pipelines/cluster/slurm-sweep.sh SWEEP.toml [options of numtok sweep]
#
# submits both; what sbatch is to know beside stands in SBATCH, as "--gpus-per-task=1 --time=8:00:00".
# Call it in the folder, and with the NUMTOK_STORE, that all nodes see. The same command again does
# what is left. One part alone, the third: PARTS=8 sbatch --array=3 with the same words behind.
#
#SBATCH --job-name=numtok-sweep
#SBATCH --cpus-per-task=4
# A minute before its time is up a run writes a checkpoint.
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
# In place of this shell, so that signals reach it.
exec numtok sweep "$@"
