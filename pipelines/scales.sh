# The sizes of all pipelines, sourced by each: SCALE=smoke|cpu|gpu|paper.
#
#   smoke   does the chain run at all: a minute
#   cpu     two cores, hours (the default, and what the sweep files say): a small model, three
#           seeds, four budgets
#   gpu     one GPU, hours: the paper's model
#   paper   the paper's model for the 500,000 steps of its temperature runs; of arithmetic it
#           does not say how long it trained, nor on how much
#
# SAMPLES  rows of each data set, 1% of them for validation, 1% for testing; there are only 810,000
#          products of three digits
# SHARES   a budget is STEPS / share; each is a run of its own, with its own warm-up and decay
#
# SEEDS, SHARES and SCHEMES can be set from outside, and so can OPERANDS of Table 3 and DIGITS of
# Table 2; JOBS is how many runs go on side by side, NUMTOK_THREADS how many cores they share.
#
# Every run is an artifact of its own, so a pipeline that was stopped goes on where it stood.

case "${SCALE:=cpu}" in
    smoke)
        PRESET=nano,layers=1 SAMPLES=2000 BATCH=64 STEPS=20
        : "${SEEDS:=0 1}" "${SHARES:=1}"
        ;;
    cpu)
        PRESET=nano SAMPLES=300000 BATCH=128 STEPS=2000
        : "${SEEDS:=0 1 2}" "${SHARES:=8 4 2 1}"
        ;;
    gpu)
        PRESET=xval SAMPLES=600000 BATCH=256 STEPS=50000
        : "${SEEDS:=0 1 2}" "${SHARES:=1}"
        ;;
    paper)
        PRESET=xval SAMPLES=600000 BATCH=32 STEPS=500000
        : "${SEEDS:=0 1 2}" "${SHARES:=1}"
        ;;
    *) echo "SCALE=$SCALE is none of smoke, cpu, gpu, paper" >&2 && exit 2 ;;
esac
SCHEMES=${SCHEMES:-p10 p1000 b1999 fp15 xval}
command -v numtok > /dev/null || PATH="$PWD/.venv/bin:$PATH"

# A list as sweep files have it: `list 2 3` gives ["2", "3"].
list() {
    local quoted
    printf -v quoted '"%s", ' "$@"
    echo "[${quoted%, }]"
}

# The sweep in a file beside this one, at the scale and with further options: sweep FILE [...].
sweep() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" --set gen.samples="$SAMPLES" \
        --set encode.scheme="$(list $SCHEMES)" --set train.preset="$PRESET" \
        --set train.batch="$BATCH" --set train.seed="$(list $SEEDS)" \
        ${JOBS:+--jobs "$JOBS"} "${@:2}"
}
