#!/usr/bin/env bash
# Table 5 of xVal: runs xval-table5.toml at scale SCALE, one seed after the other, with a table
# after each seed.
#
#     SCALE=cpu pipelines/xval-table5.sh
#
# scales.sh describes SCALE and all variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
orbits

so_far=()
for seed in $SEEDS; do
    so_far+=("$seed")
    echo "=== seeds ${so_far[*]}"
    SEEDS="${so_far[*]}" sweep xval-table5.toml --set gen.planets="\"$PLANETS\"" \
        --set gen.points="\"$POINTS\"" --set gen.span="\"$SPAN\"" --set gen.aligned="$ALIGNED" \
        --set train.steps="$STEPS" --set train.objective="$OBJECTIVE" \
        --set train.precision="$PRECISION"
done
