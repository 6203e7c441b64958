#!/usr/bin/env bash
# Figures 6 and 10 of Decoding-based Regression: runs decoding-regression-figure6.toml at scale
# SCALE, with the first setting of each head.
#
#     SCALE=cpu pipelines/decoding-regression-figure6.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

first() {
    echo "$1"
}

uci decoding-regression-figure6.toml --set train.rows="[$(echo $SIZES | tr " " ,)]" \
    --set train.head="$(list $(first $ND) $(first $RIEMANN) pointwise,sigmoid=yes)"
