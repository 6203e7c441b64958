#!/usr/bin/env bash
# Figure 4 of Decoding-based Regression: runs decoding-regression-figure4.toml at scale SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-figure4.sh
#
# With OUT=DIR, it also draws the figure, on a signed logarithmic scale. scales.sh describes SCALE
# and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

figure4() {
    tables decoding-regression-figure4.toml --set gen.rows=$((ROWS * 5 / 4)) \
        --set train.head="$(list $UD $POINTWISE)" \
        ${CURVES:+--set gen.curve="$(list $CURVES)"} "$@"
}

figure4
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT"
    # shellcheck disable=SC2046 - several REFs
    numtok figure curve $(figure4 --json | reports) --scale signed-log \
        --out "$OUT/decoding-regression-figure4.png"
fi
