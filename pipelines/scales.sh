# The sizes of all pipelines and how they run, sourced by each: SCALE=smoke|cpu|gpu|paper.
#
#   smoke   does the chain run at all: a minute
#   cpu     two cores, hours (the default): a small model, three seeds, four budgets
#   gpu     one GPU, hours: the paper's model
#   paper   the paper's model for the 500,000 steps of its temperature runs; of arithmetic it
#           does not say how long it trained, nor on how much
#
# SAMPLES  rows of each data set, 1% of them for validation, 1% for testing; there are only 810,000
#          products of three digits
# SHARES   a budget is STEPS / share; each is a run of its own, with its own warm-up and decay
# JOBS     runs at a time; each uses NUMTOK_THREADS threads (1 unless set)
#
# SEEDS, SHARES, JOBS, NUMTOK_THREADS and SCHEMES can be set from outside, and so can OPERANDS of
# Table 3 and DIGITS of Table 2.
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
case $SCALE in
    smoke | cpu) : "${JOBS:=$(getconf _NPROCESSORS_ONLN)}" "${NUMTOK_THREADS:=1}" ;;
    *) : "${JOBS:=1}" "${NUMTOK_THREADS:=$(getconf _NPROCESSORS_ONLN)}" ;;
esac
SCHEMES=${SCHEMES:-p10 p1000 b1999 fp15 xval}
SPLIT=validation=0.01,test=0.01
export PRESET BATCH STEPS NUMTOK_THREADS
command -v numtok > /dev/null || PATH="$PWD/.venv/bin:$PATH"

# What is left to do stands on standard input: one line a run, for `learn`.
run_all() {
    xargs -P "$JOBS" -L 1 bash -euo pipefail -c 'learn "$@"' learn
}

# One run: a name, encoded data, a seed, a share of the budget. Model and report get the name.
learn() {
    local model
    model=$(numtok -q train "$2" --preset "$PRESET" --batch "$BATCH" --steps $((STEPS / $4)) \
        --seed "$3" --name "$1")
    numtok -q eval "$model" "$2" --name "$1" > /dev/null
    echo "$1" >&2
}
export -f learn
