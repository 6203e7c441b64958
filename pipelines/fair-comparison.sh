#!/usr/bin/env bash
# Compares nine encodings on five sets of short rows, and on texts with a target if REAL is set.
#
# REAL is a CSV of real-sets.py and TARGET its column, such as REAL=sets/molecules.csv TARGET=SOL;
# DROP are columns to leave out. About fifteen hours on two cores with JOBS=2 and NUMTOK_THREADS=1;
# a run that was stopped goes on. SCALE=smoke tries it out. STEPS is the budget of a training, DATA
# the data sets to compare on, and RATES the learning rates to choose from.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
given=${STEPS:-} rates=${RATES:-} # the defaults of the scales are those of other pipelines
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
# One sweep per set, so that the sets that are done have their table.
for set in $sets; do
    numtok sweep "$here/fair-comparison.toml" --set "data=[\"$set\"]" --set "train.steps=$STEPS" \
        --set train.seed="$(list $SEEDS)" ${rates:+--set train.lr="$(list $rates)"} \
        ${JOBS:+--jobs "$JOBS"}
done
