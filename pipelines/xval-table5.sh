#!/usr/bin/env bash
# Table 5 of xVal at the scale that SCALE names: the runs of xval-table5.toml, one seed after the
# other, so that there are tables of fewer seeds on the way.
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
