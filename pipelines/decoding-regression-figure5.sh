#!/usr/bin/env bash
# Figure 5 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

tables decoding-regression-figure5.toml --set fetch.task="[$(echo $TASKS | tr " " ,)]" \
    --set train.head="$(list $UD $POINTWISE)"
