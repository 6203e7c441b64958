#!/usr/bin/env bash
# Figures 7 and 13 of Decoding-based Regression: runs decoding-regression-figure7.toml at scale
# SCALE.
#
#     SCALE=cpu pipelines/decoding-regression-figure7.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

tables decoding-regression-figure7.toml --set gen.rows=$((ROWS * 5 / 4)) \
    --set train.head="$(list decoder:ud,base=10,exponent=1,mantissa=5 $ND $MDN $RIEMANN)" \
    ${DENSITIES:+--set gen.density="$(list $DENSITIES)"}
