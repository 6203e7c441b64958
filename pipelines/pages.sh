#!/usr/bin/env bash
# The pages of three data sets: pipelines/pages.sh FOLDER [COPY OF UCI'S SETS].
set -euo pipefail
out=$1
from=()
[ -z "${2:-}" ] || from=(--from "$2")

numtok profile numtok/data/sample/era5-uk.jsonl --html "$out/era5-profile.html" > /dev/null

table=$(numtok fetch uci --set yacht "${from[@]}")
reports=()
for head in riemann:64 mdn:5; do
    model=$(numtok train "$table" --head "$head" --epochs 20)
    reports+=("$(numtok eval "$model" "$table")")
done
numtok report "${reports[1]}" --html "$out/uci-report.html" > /dev/null
numtok compare "${reports[@]}" --html "$out/uci-compare.html" > /dev/null

data=$(numtok gen arithmetic --operands 2 --low 1.00 --high 9.99 --samples 20000 \
    --split validation=0.02,test=0.1 --name pages)
reports=()
for scheme in xval p1000; do
    encoded=$(numtok encode --scheme "$scheme" "$data")
    model=$(numtok train "$encoded" --preset nano,layers=1,width=64 --steps "${STEPS:-400}")
    reports+=("$(numtok eval "$model" "$encoded")")
done
numtok report "${reports[0]}" --html "$out/arithmetic-report.html" > /dev/null
numtok compare "${reports[@]}" --html "$out/arithmetic-compare.html" > /dev/null
