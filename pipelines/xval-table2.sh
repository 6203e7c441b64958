#!/usr/bin/env bash
# Table 2 of xVal (Section 3.1): products of two whole numbers of 3, 4 and 5 digits, the answer
# masked. The schemes round to three digits, so those of 4 and 5 are written with a loss.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
DIGITS=${DIGITS:-3 4 5}

declare -A encoded
for digits in $DIGITS; do
    data=$(numtok -q gen arithmetic --kind product --digits "$digits" --samples "$SAMPLES" \
        --split $SPLIT --name "table2-$SCALE-$digits")
    for scheme in $SCHEMES; do
        encoded[$digits-$scheme]=$(numtok -q encode --scheme "$scheme" "$data")
    done
done

for seed in $SEEDS; do
    for cell in "${!encoded[@]}"; do
        echo "table2-$SCALE-$cell-1-s$seed ${encoded[$cell]} $seed 1"
    done
done | run_all

for digits in $DIGITS; do
    echo "== $digits digits"
    for scheme in $SCHEMES; do
        for seed in $SEEDS; do echo "table2-$SCALE-$digits-$scheme-1-s$seed"; done
    done | xargs numtok compare --metric adjusted-r2 --metric r2 --metric median-relative-error \
        --metric relative-error-over --against xval/table2
done
