#!/usr/bin/env bash
# Figures 6 and 10 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep
# file beside it, the first setting of each head.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

first() {
    echo "$1"
}

uci decoding-regression-figure6.toml --set train.rows="[$(echo $SIZES | tr " " ,)]" \
    --set train.head="$(list $(first $ND) $(first $RIEMANN) pointwise,sigmoid=yes)"
