#!/usr/bin/env bash
# Figure 12 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

uci decoding-regression-figure12.toml --set eval.num-samples="[$(echo $DRAWS | tr " " ,)]"
