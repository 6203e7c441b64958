#!/usr/bin/env bash
# Table 3 of xVal at the scale that SCALE names: the runs of xval-table3.toml, their tables by
# budget, and those of the whole budget by the operator at the root.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

table3() {
    sweep xval-table3.toml --set gen.operands="$(list ${OPERANDS:-2 3 4})" "$@"
}

for share in $SHARES; do
    echo "=== 1/$share of $STEPS steps"
    table3 --set train.steps=$((STEPS / share))
done
echo "=== by root operator, all steps"
table3 --set train.steps="$STEPS" --set compare.by=operator
