#!/usr/bin/env bash
# Tables 1, 2 and 6 of Value-Aware: runs numvalue-table1.toml at scale SCALE, then adds xval, p1000
# and numgpt (OTHERS) on the same questions.
#
#     SCALE=cpu pipelines/numvalue-table1.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
numvalue
TEXTS="digits numerologic numerologic:answer"

table1() { # table1 SCHEMES [OPTION...]
    # shellcheck disable=SC2086 - several schemes
    numtok sweep "$(dirname "$0")/numvalue-table1.toml" --set gen.tasks="$TASKS" \
        --set gen.digits="\"$DIGITS\"" --set gen.train="$ROWS" \
        --set gen.validation="$VALIDATION" --set gen.test="$TEST" \
        --set encode.scheme="$(list $1)" --set train.preset="$PRESET" --set train.lr="$RATE" \
        --set train.batch="$BATCH" --set train.steps="$STEPS" --set train.seed="$(list $SEEDS)" \
        ${LEVEL:+--set "compare.tokens-to=\"$LEVEL\""} \
        ${SCHEDULE:+--set "train.curriculum=\"$SCHEDULE\"" --set train.lr-end=6e-6} \
        ${SCHEDULE:+--set train.warmup=0.3} ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

echo "=== Table 6, by groups of tasks"
table1 "$TEXTS"
echo "=== Table 2, by digits"
table1 "$TEXTS" --set compare.against=numvalue/table2
echo "=== Table 1"
table1 "$TEXTS" --set compare.against=numvalue/table1
: "${OTHERS=p1000 xval numgpt}"
if [ -n "$OTHERS" ]; then
    echo "=== Other schemes"
    table1 "$TEXTS $OTHERS"
fi
