#!/usr/bin/env bash
# Figure 11 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it, with a mean over the dimensions for each function.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

for function in $FUNCTIONS; do
    echo "=== function $function"
    tables decoding-regression-figure11.toml --set gen.function="$function" \
        --set gen.dimension="$(list 2 $DIMENSIONS)" --set gen.samples=$((ROWS * 5 / 4)) \
        --set train.head="$(list $UD $ND $POINTWISE $RIEMANN)"
done
