#!/usr/bin/env bash
# Compares encodings on five data sets of short rows, and on texts with a target if REAL is
# set. The sweep file is fair-comparison.toml.
#
#     JOBS=2 NUMTOK_THREADS=1 pipelines/fair-comparison.sh
#
# This takes about fifteen hours on two cores; the same command resumes a stopped run. SCALE=smoke
# is a quick test; all other scales are equal.
#
#   STEPS           training steps (default 4,000)
#   RATES           learning rates to choose from
#   DATA            data sets (default "sums products mixed stories nupa")
#   REAL            CSV file of real-sets.py, such as sets/molecules.csv
#   TARGET          target column of REAL, such as SOL
#   DROP            columns of REAL to leave out
#   SEEDS, JOBS, NUMTOK_THREADS
#                   see scales.sh
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
given=${STEPS:-} rates=${RATES:-} # before scales.sh sets those of other pipelines
. "$here/scales.sh"
case "$SCALE" in
    smoke)
        ROWS=600
        STEPS=${given:-20}
        ;;
    *)
        ROWS=40000
        STEPS=${given:-4000}
        ;;
esac
PARTS=validation=0.05,test=0.05

numtok gen arithmetic --operands 2 --operators + --rows $ROWS --split $PARTS --name sums
numtok gen arithmetic --kind product --rows $ROWS --split $PARTS --name products
numtok gen arithmetic --operands 3 --rows $ROWS --split $PARTS --name mixed
numtok gen nupa --tasks add_Integer+sub_Integer+max_Float+multiply_easy_Integer --digits 1..5 \
    --train $((ROWS / 20)) --validation 50 --test 100 --prompt short --name nupa
numtok gen wordproblems --form generate --rows $ROWS --split $PARTS --name stories
sets=${DATA:-sums products mixed stories nupa}
if [ -n "${REAL:-}" ]; then
    texts=$(basename "$REAL" .csv)
    numtok encode --scheme digits "$REAL" --target "$TARGET" ${DROP:+--drop "$DROP"} \
        --split validation=0.1,test=0.2
    sets="$sets $texts"
fi
# One sweep per data set, so that each prints its table when it is finished.
for set in $sets; do
    numtok sweep "$here/fair-comparison.toml" --set "data=[\"$set\"]" --set "train.steps=$STEPS" \
        --set train.seed="$(list $SEEDS)" ${rates:+--set train.lr="$(list $rates)"} \
        ${JOBS:+--jobs "$JOBS"}
done
