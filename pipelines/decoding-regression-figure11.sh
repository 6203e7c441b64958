#!/usr/bin/env bash
# Figure 11 of Decoding-based Regression: runs decoding-regression-figure11.toml at scale SCALE,
# with a mean over dimensions for each function. Functions that exist in one dimension start there,
# all others with two.
#
#     SCALE=cpu pipelines/decoding-regression-figure11.sh
#
# With OUT=DIR, it also draws the figure. scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

figure11() { # figure11 FUNCTION [OPTION...]
    local least=2
    [[ " 1 2 10 11 " != *" $1 "* ]] || least="1 2"
    tables decoding-regression-figure11.toml --set gen.function="$1" \
        --set gen.dimension="$(list $least $DIMENSIONS)" --set gen.rows=$((ROWS * 5 / 4)) \
        --set train.head="$(list $UD $ND $POINTWISE $RIEMANN)" "${@:2}"
}

for function in $FUNCTIONS; do
    echo "=== function $function"
    figure11 "$function"
done
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT"
    drawn=()
    for function in $FUNCTIONS; do
        # shellcheck disable=SC2207 - REFs have no spaces
        drawn+=($(figure11 "$function" --json | reports))
    done
    numtok figure lines "${drawn[@]}" --x data.dimension --metric kendall-tau \
        --out "$OUT/decoding-regression-figure11.png"
fi
