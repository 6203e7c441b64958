#!/usr/bin/env bash
# Writes example HTML pages of three data sets (ERA5 texts, a UCI table, arithmetic) into FOLDER:
#
#     pipelines/pages.sh FOLDER [UCI [OPTION...]]
#
#   UCI             folder with a copy of uci_datasets; "" downloads the set
#   OPTION          further options of `numtok sweep`
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
. "$here/scales.sh"
out=$1
from=()
[ -z "${2:-}" ] || from=(--from "$2")

numtok profile "$here/../numtok/data/sample/era5-uk.jsonl" --html "$out/era5-profile.html" > /dev/null

table=$(numtok fetch uci --set yacht "${from[@]}")
of_table=()
for head in riemann:64 mdn:5; do
    model=$(numtok train "$table" --head "$head" --epochs 20)
    of_table+=("$(numtok eval "$model" "$table")")
done
numtok report "${of_table[1]}" --html "$out/uci-report.html" > /dev/null
numtok compare "${of_table[@]}" --html "$out/uci-compare.html" > /dev/null
numtok race "$table" --minutes 2 --html "$out/uci-race.html" > /dev/null

# shellcheck disable=SC2207 - REFs have no spaces
of_sums=($(numtok sweep "$here/pages.toml" "${@:3}" --html "$out/arithmetic-sweep.html" --json \
    | reports))
numtok report "${of_sums[0]}" --html "$out/arithmetic-report.html" > /dev/null
