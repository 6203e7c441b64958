#!/usr/bin/env bash
# Figure 9 of Decoding-based Regression at the scale that SCALE names: the runs of the sweep file
# beside it, with the first setting of the decoder.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

first() {
    echo "$1"
}

head=$(first $UD)
uci decoding-regression-figure9.toml --set eval.num-samples="[$(echo $DRAWS | tr " " ,)]" \
    --set train.head="$(list "$head" "$head,repeat=3" "$head,repeat=5")"
