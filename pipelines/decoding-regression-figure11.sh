#!/usr/bin/env bash
# Figure 11 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it, with a mean over the dimensions for each function, from one dimension on where the
# function has that; with OUT the figure itself.
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
