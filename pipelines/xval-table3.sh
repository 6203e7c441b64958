#!/usr/bin/env bash
# Table 3 of xVal: runs xval-table3.toml at scale SCALE, with a table for each budget. The last
# table, for the full budget, is by the operator at the root.
#
#     SCALE=cpu pipelines/xval-table3.sh
#
# scales.sh describes SCALE and all variables.
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
