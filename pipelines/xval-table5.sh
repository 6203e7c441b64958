#!/usr/bin/env bash
# Table 5 of xVal at the scale that SCALE names: the runs of xval-table5.toml, one seed after the
# other, so that there are tables of fewer seeds on the way. At the paper's scale planets, points and
# spans are the published ones.
set -euo pipefail
. "$(dirname "$0")/scales.sh"

case "$SCALE" in
    smoke) SAMPLES=1000 STEPS=20 PRESET=nano,layers=1,width=16,heads=2 BATCH=16 ;;
    cpu) SAMPLES=200000 STEPS=4000 PRESET=nano,width=64 BATCH=64 ;;
    *) SAMPLES=1250000 SYSTEM="2..4 30..59 15..24" ;;
esac
read -r planets points span <<< "${SYSTEM:-2 16 4..11}"

so_far=()
for seed in $SEEDS; do
    so_far+=("$seed")
    echo "=== seeds ${so_far[*]}"
    SEEDS="${so_far[*]}" sweep xval-table5.toml --set gen.planets="\"$planets\"" \
        --set gen.points="\"$points\"" --set gen.span="\"$span\"" --set train.steps="$STEPS"
done
