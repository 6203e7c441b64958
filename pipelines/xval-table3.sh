#!/usr/bin/env bash
# Table 3 of xVal (Section 3.1): trees of 2, 3 and 4 operands with +, - and *, the answer masked.
#
# The paper does not say how operands are distributed. Here they have three significant figures
# and lie between 1.00 and 9.99, so that every scheme can write them exactly.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
OPERANDS=${OPERANDS:-2 3 4}

declare -A encoded
for operands in $OPERANDS; do
    data=$(numtok -q gen arithmetic --operands $operands --low 1.00 --high 9.99 \
        --samples "$SAMPLES" --split $SPLIT --name "table3-$SCALE-$operands")
    for scheme in $SCHEMES; do
        encoded[$operands-$scheme]=$(numtok -q encode --scheme "$scheme" "$data")
    done
done

for seed in $SEEDS; do
    for share in $SHARES; do
        for cell in "${!encoded[@]}"; do
            echo "table3-$SCALE-$cell-$share-s$seed ${encoded[$cell]} $seed $share"
        done
    done
done | run_all

for operands in $OPERANDS; do
    for share in $SHARES; do
        echo "== $operands operands, 1/$share of $STEPS steps"
        for scheme in $SCHEMES; do
            for seed in $SEEDS; do echo "table3-$SCALE-$operands-$scheme-$share-s$seed"; done
        done | xargs numtok compare --against xval/table3
    done
    echo "== $operands operands by root operator, all steps"
    for scheme in $SCHEMES; do
        for seed in $SEEDS; do echo "table3-$SCALE-$operands-$scheme-1-s$seed"; done
    done | xargs numtok compare --by operator
done
