#!/usr/bin/env bash
# Figure 3 of NumGPT: runs numgpt-figure3.toml at scale SCALE.
#
#     SCALE=cpu pipelines/numgpt-figure3.sh
#
# With OUT=DIR, it also draws the figure. scales.sh describes SCALE and all variables.
set -euo pipefail
[ "${SCALE:-cpu}" = smoke ] || : "${SEEDS:=0 1 2 3 4}"
. "$(dirname "$0")/scales.sh"
numgpt

embedders=()
for sigma in ${SIGMAS:-0.1 0.5 1 5 10 50 100}; do
    embedders+=("numgpt,sigma=$sigma")
done
figure3() {
    numgpt_sweep numgpt-figure3.toml --set train.steps="$(steps_for 16000)" \
        --set train.embedder="$(list "${embedders[@]}")" "$@"
}

figure3
if [ -n "${OUT:-}" ]; then
    mkdir -p "$OUT"
    # shellcheck disable=SC2046 - several REFs
    numtok figure lines $(figure3 --json | reports) --x embedder.sigma --metric accuracy \
        --out "$OUT/numgpt-figure3.png"
fi
