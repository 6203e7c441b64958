#!/usr/bin/env bash
# Figure 4 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it, and with OUT the figure itself, on signed logarithms.
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
