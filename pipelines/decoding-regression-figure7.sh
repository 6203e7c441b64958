#!/usr/bin/env bash
# Figures 7 and 13 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep
# file beside it.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

tables decoding-regression-figure7.toml --set gen.rows=$((ROWS * 5 / 4)) \
    --set train.head="$(list decoder:ud,base=10,exponent=1,mantissa=5 $ND $MDN $RIEMANN)" \
    ${DENSITIES:+--set gen.density="$(list $DENSITIES)"}
