#!/usr/bin/env bash
# Figure 1 of NumGPT: how confident models are in an answer, and how smoothly confidence changes
# with the answer.
#
#     SCALE=cpu pipelines/numgpt-figure1.sh
#
# The models are those of numgpt-table1.sh that judge measurements, and those of numgpt-table3.sh
# that generate answers to word problems, with the first seed. Existing models are reused.
#
#   QUESTION        a measurement with its answer
#   STORY           a word problem with its answer
#   OUT             folder for the figures (default figures)
#   FORMATS         file types of the figures (default "png svg")
#
# scales.sh describes SCALE and all other variables.
set -euo pipefail
[ "${SCALE:-cpu}" = smoke ] || : "${SEEDS:=0 1 2 3 4}"
. "$(dirname "$0")/scales.sh"
numgpt

: "${OUT:=figures}" "${FORMATS:=png svg}"
: "${QUESTION:=Q: How many grams are 2 eggs? A: 100}"
story="Q: A ship carries 6518 tonnes of coal. In the next harbour it takes on another 3542 tonnes."
: "${STORY:=$story How many tonnes of coal does it carry now? A: 10060}"
read -r seed _ <<< "$SEEDS"
mkdir -p "$OUT"

confidence() { # confidence NAME TEXT OBJECTIVE STEPS DATA SCHEME...
    local scheme encoded model probes=()
    for scheme in "${@:6}"; do
        encoded=$(numtok encode --scheme "$scheme" "$5")
        model=$(numtok train "$encoded" --preset "$PRESET" --objective "$3" --batch "$BATCH" \
            --lr "$RATE" --steps "$4" --seed "$seed")
        probes+=("$(numtok probe confidence "$model" --text "$2")")
    done
    for format in $FORMATS; do
        numtok figure confidence "${probes[@]}" --out "$OUT/$1.$format"
    done
}

data=$(numtok gen measurement ${SAMPLES:+--rows "$SAMPLES"})
confidence numgpt-figure1 "$QUESTION" classify,causal=yes "$(steps_for 16000)" "$data" \
    digits dice,range=0..10000 numgpt
data=$(numtok gen wordproblems --form generate --answers 10001..inf --rows "${SAMPLES:-6850}" \
    --split test=0.19533)
confidence numgpt-figure1-written "$STORY" ar "$(steps_for 5512)" "$data" digits numgpt
