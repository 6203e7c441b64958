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
# Of temperatures and orbits (xval-table4, xval-table5 and their figures):
#
# OBJECTIVE        what is masked in training: mlm:tokens, any token as in the paper, at all scales;
#                  mlm:targets, what is asked for, is a way of its own
# PRECISION        bfloat16; float32 is faster on a CPU that has no instructions for it
#
# Of tables (decoding-regression-*); at paper scale the whole grid of that paper's Appendix D:
#
# PRESETS, RATES   perceptrons and learning rates, of which the best is chosen on rows held back
# UD, ND, RIEMANN, MDN, POINTWISE   settings of each kind of head, of which likewise
# EPOCHS, ROWS     at most; rows to learn from of data that are made
# RUNS             seeds
# DRAWS, SIZES     numbers drawn (Figures 9 and 12); rows to learn from (Figure 6)
# SETS, TASKS, FUNCTIONS, DIMENSIONS   which data: of UCI, OpenML, BBOB; CURVES, DENSITIES likewise
#
# Of NumGPT (numgpt-*) seeds are five unless set, as in the paper, and:
#
# JUDGED, SIGMAS   which tasks (Table 1), which deviations of prototypes (Figure 3)
# NUMERACY         where Numeracy-600K is: a file, a folder or a URL; else it is downloaded
# CORPUS           text to pre-train on; without it, rows of pre-trained models are left out
#
# Of Value-Aware (numvalue-*):
#
# OTHERS           schemes that are tried on the same questions; none if empty
#
# OUT              a folder: figures are drawn there (needs the extra figures), of numgpt-table1, -figure3,
#                  xval-table4, decoding-regression-figure4 and -figure11
#
# All of these can be set from outside; UCI is a folder with a copy of uci_datasets, so that
# nothing is downloaded.
#
# Every run is an artifact of its own, so a pipeline that was stopped goes on where it stood.

# The sets of Table 3, and the tasks of OpenML-CTR23.
ALL_SETS='airfoil autompg autos bike breastcancer challenger concrete elevators energy fertility gas
    housing keggdirected kin40k parkinsons pol protein pumadyn32nm slice sml solar stock
    tamielectric wine yacht'
ALL_TASKS="$(echo 3612{34..37} 3612{41..44} 361247 36125{0..9} 361249 3612{60,61,64} \
    3612{66..69} 361272 36161{6..9} 36162{1..3})"

# Every spec with every one of some settings: each 'a=1 a=2' x y -> x,a=1 y,a=1 x,a=2 y,a=2.
each() {
    for settings in $1; do
        echo "${@:2}" | sed "s/ \|\$/,$settings&/g"
    done
}

case "${SCALE:=cpu}" in
    smoke)
        PRESET=nano,layers=1 SAMPLES=2000 BATCH=64 STEPS=20
        : "${SEEDS:=0 1}" "${SHARES:=1}"
        : "${PRESETS:=mlp,layers=1,width=16}" "${RATES:=5e-4}" "${EPOCHS:=2}" "${ROWS:=160}"
        : "${UD:=decoder:ud,base=4,mantissa=2}" "${ND:=decoder:nd,base=2,length=4}"
        : "${RIEMANN:=riemann:16}" "${MDN:=mdn:2}" "${POINTWISE:=pointwise}" "${RUNS:=0}"
        : "${DRAWS:=1 4}" "${SIZES:=10 100}" "${SETS:=yacht}" "${TASKS:=361237}"
        : "${FUNCTIONS:=1 8}" "${DIMENSIONS:=5}"
        ;;
    cpu)
        PRESET=nano SAMPLES=300000 BATCH=128 STEPS=2000
        : "${SEEDS:=0 1 2}" "${SHARES:=8 4 2 1}"
        : "${PRESETS:=mlp,layers=3,width=256}" "${RATES:=5e-4}" "${EPOCHS:=300}" "${ROWS:=10000}"
        : "${UD:=decoder:ud,base=4,exponent=2,mantissa=4 decoder:ud,exponent=1}"
        : "${ND:=decoder:nd,base=2,length=8 decoder:nd,base=4,length=4}"
        : "${RIEMANN:=riemann:64 riemann:256}" "${MDN:=mdn:2 mdn:10}" "${POINTWISE:=pointwise}"
        : "${RUNS:=0}" "${DRAWS:=1 4 16 64 256}" "${SIZES:=10 30 100 300 1000}"
        : "${SETS:=airfoil autompg autos breastcancer challenger energy fertility housing sml solar
            wine yacht}"
        : "${TASKS:=361234 361235 361236 361237 361251}"
        : "${FUNCTIONS:=1 5 8 12 15 21}" "${DIMENSIONS:=5 20}"
        ;;
    gpu)
        PRESET=xval SAMPLES=600000 BATCH=256 STEPS=50000
        : "${SEEDS:=0 1 2}" "${SHARES:=1}"
        : "${PRESETS:=mlp,layers=3,width=256 mlp,layers=5,width=2048}" "${RATES:=1e-4 5e-4}"
        : "${EPOCHS:=300}" "${ROWS:=100000}"
        : "${UD:=$(echo decoder:ud,base={4,10},exponent={2,4},mantissa={4,8})}"
        : "${ND:=$(echo decoder:nd,base={2,8},length={4,8})}"
        : "${RIEMANN:=riemann:64 riemann:256 riemann:1024}" "${MDN:=mdn:2 mdn:5 mdn:20}"
        : "${POINTWISE:=pointwise}" "${RUNS:=0 1 2}" "${DRAWS:=1 4 16 64 256 1024}"
        : "${SIZES:=10 30 100 300 1000 3000 10000}" "${SETS:=$ALL_SETS}" "${TASKS:=$ALL_TASKS}"
        : "${FUNCTIONS:=$(echo {1..24})}" "${DIMENSIONS:=5 10 15 20}"
        ;;
    paper)
        PRESET=xval SAMPLES=600000 BATCH=32 STEPS=500000
        : "${SEEDS:=0 1 2}" "${SHARES:=1}"
        : "${PRESETS:=$(echo mlp,layers={2,3,4,5},width={256,512,2048})}" "${RATES:=1e-4 5e-4}"
        : "${EPOCHS:=300}" "${ROWS:=100000}"
        WRITERS='layers=1,heads=1,width=32 layers=3,heads=4,width=128'
        : "${UD:=$(each "$WRITERS" decoder:ud,base={4,8,10},exponent={1,2,4},mantissa={2,4,8})}"
        : "${ND:=$(each "$WRITERS" decoder:nd,base={2,4,8},length={4,6,8})}"
        : "${RIEMANN:=$(echo riemann:{16,64,256,1024,4096,16384})}"
        : "${MDN:=$(echo mdn:{1,2,5,10,20,50,1000})}" "${POINTWISE:=pointwise}"
        : "${RUNS:=$(echo {0..9})}" "${DRAWS:=1 4 16 64 256 1024}"
        : "${SIZES:=10 30 100 300 1000 3000 10000}" "${SETS:=$ALL_SETS}" "${TASKS:=$ALL_TASKS}"
        : "${FUNCTIONS:=$(echo {1..24})}" "${DIMENSIONS:=5 10 15 20}"
        ;;
    *) echo "SCALE=$SCALE is none of smoke, cpu, gpu, paper" >&2 && exit 2 ;;
esac
SCHEMES=${SCHEMES:-p10 p1000 b1999 fp15 xval}
OBJECTIVE=${OBJECTIVE:-mlm:tokens} PRECISION=${PRECISION:-bfloat16}
command -v numtok > /dev/null || PATH="$PWD/.venv/bin:$PATH"

# The sizes of planetary systems and of what learns them (xval-table5, xval-figures). At two cores
# these are small ones, and planets begin in a line: of systems that begin anywhere a small model told
# no step size after 4,000 steps (docs/log). The published ranges of planets, points, spans and the
# published share of planets in a line from the scale of a GPU on.
orbits() {
    PLANETS=2 POINTS=14 SPAN=3..10 ALIGNED=1
    SHIFTED=validation=0.01,test=0.01,ood-stepsize=0.01,ood-a1=0.01
    case "$SCALE" in
        smoke)
            SAMPLES=1000 PRESET=nano,layers=1,width=16,heads=2 BATCH=16
            ;;
        cpu) SAMPLES=150000 PRESET=nano,heads=2,width=64 BATCH=64 STEPS=2000 ;;
        *) SAMPLES=1250000 PLANETS=2..4 POINTS=30..59 SPAN=15..24 ALIGNED=0.3 ;;
    esac
}

# The weather of xval-table4: the field, what of it a row has, and the three budgets. TOKENS and
# MINUTES are about those of p10, the longest, in STEPS steps, as in the paper; at two cores half of
# that. There places, days and steps are few, places always as many, so that a number of the same
# meaning stands at the same token, and batches are small: of what a small model learns here, steps
# decide and not rows (docs/log). Rows begin at any hour that the field has; HOURS=6h takes fewer
# of a large one. The published sizes are those from the scale of a GPU on, with rows of thousands
# of tokens.
weather() {
    AREA=58,-10,50,2 PERIOD=2019-03-01..2019-03-31 PARTS=validation=0.15,test=0.2
    STATIONS=8..8 DAYS=1 EVERY=6
    case "$SCALE" in
        smoke)
            SAMPLES=400 PRESET=nano,layers=1,width=16,heads=2 BATCH=16 TOKENS=150000 MINUTES=0.05
            ;;
        cpu)
            SAMPLES=100000 PRESET=nano,heads=2,width=64 BATCH=16 STEPS=4000
            : "${TOKENS:=11800000}" "${MINUTES:=6}"
            ;;
        *)
            AREA=60,-10,40,30 PERIOD=2010-01-01..2019-12-31 PARTS=validation=0.1,test=0.1
            STATIONS=60..90 DAYS=2..4 SAMPLES=1000000 PRESET=xval,context=12288 BATCH=16
            : "${TOKENS:=$((STEPS * BATCH * 6000))}" "${MINUTES:=1500}" "${HOURS:=6h}"
            ;;
    esac
}

# The models of NumGPT (numgpt-*): decoders, in batches of 96. From the scale of a GPU on they have the
# published size and rate, and learn for the published epochs; at two cores they have three layers of
# width 64, and a budget in steps. There Table 1 takes two hours and a half, an hour of it for the
# smaller budgets, Table 3 half an hour, and Figure 3 three quarters of one (docs/log).
numgpt() {
    BATCH=96 RATE=6.25e-5 PRESET=gpt2 SAMPLES= EPOCHS=50
    case "$SCALE" in
        smoke) RATE=2e-3 PRESET=nano,layers=1,width=16,heads=2 SAMPLES=400 STEPS=10 EPOCHS= ;;
        cpu) RATE=2e-3 PRESET=nano,layers=3,heads=2,width=64 STEPS=5000 EPOCHS= ;;
    esac
}

# The models of Value-Aware (numvalue-*): decoders that learn answers alone, and how many rows of each
# task and digit key there are. At two cores six tasks of up to four digits, and small batches: steps
# decide, not rows (docs/log); with one GPU all 38 of up to five; at paper scale the published data,
# size, rate and curriculum.
numvalue() {
    TASKS=add_Integer+floordiv_Integer+length_Integer+max_Float+multiply_easy_Integer+to_scient_Float
    DIGITS=1..4 ROWS=20000 VALIDATION=100 TEST=250 RATE=2e-3 SCHEDULE=
    LEVEL='exact>=0.9'
    case "$SCALE" in
        smoke)
            DIGITS=1..2 ROWS=40 VALIDATION=4 TEST=4
            PRESET=nano,layers=1,width=16,heads=2 BATCH=16 STEPS=20
            ;;
        cpu) PRESET=nano,layers=3,heads=4,width=64 BATCH=16 RATE=1e-3 STEPS=70000 LEVEL= ;;
        gpu)
            TASKS=all DIGITS=1..5 ROWS=100000 VALIDATION=100 TEST=-1 RATE=5e-4
            PRESET=small BATCH=256 STEPS=20000
            ;;
        paper)
            TASKS=all DIGITS=published ROWS=100000 VALIDATION=-1 TEST=-1 RATE=5e-5
            PRESET=gpt2 BATCH=256 STEPS=85507
            SCHEDULE=$(dirname "${BASH_SOURCE[0]}")/curricula/value-aware.toml
            ;;
    esac
}

# The steps that ROWS rows are learnt in: those of a scale, or EPOCHS passes over them.
steps_for() {
    echo $((EPOCHS ? (EPOCHS * $1 + BATCH - 1) / BATCH : STEPS))
}

# A sweep of these models: numgpt_sweep FILE [...].
numgpt_sweep() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" ${SAMPLES:+--set gen.rows="$SAMPLES"} \
        --set train.preset="$PRESET" --set train.lr="$RATE" --set train.batch="$BATCH" \
        --set train.seed="$(list $SEEDS)" ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# The rows "pre-train and fine-tune" of a table, where CORPUS names text to read first, as files of
# rows {"text": "..."}, in which 2,300 is 2300 and 23% is 0.23 as the paper's parser has it;
# PRETRAINING is how many steps that takes, as many as a table's unless said: pretrained TABLE DATA
# STEPS OBJECTIVE [OPTION...], the last being options of `numtok eval`. Rows of text are paragraphs,
# of 1,023 tokens at most.
pretrained() {
    local table=$1 data=$2 steps=$3 objective=$4 scheme tokenizer text begun encoded model seed
    local reports=() shape=(--preset "$PRESET,context=1024" --lr "$RATE" --batch "$BATCH")
    for scheme in bpe digits numgpt; do
        tokenizer=${TOKENIZER:-}
        [ $scheme != bpe ] || tokenizer=bpe:8000
        # shellcheck disable=SC2086 - several files
        text=$(numtok encode --scheme $scheme ${tokenizer:+--text-tokenizer "$tokenizer"} \
            --numbers thousands,percent $CORPUS)
        begun=$(numtok train "$text" --objective ar "${shape[@]}" --steps "${PRETRAINING:-$steps}")
        encoded=$(numtok encode --reuse-encoding "$begun" "$data")
        for seed in $SEEDS; do
            model=$(numtok train "$encoded" --objective "$objective" --init-from "$begun" "${shape[@]}" \
                --steps "$steps" --seed "$seed")
            reports+=("$(numtok eval "$model" "$encoded" "${@:5}")")
        done
    done
    numtok compare "${reports[@]}" --against "$table"
}

# The REFs of all reports that `numtok sweep --json` tells of.
reports() {
    python3 -c 'import json, sys
for table in json.load(sys.stdin)["tables"]:
    for one in table["comparison"]["experiments"]:
        print(*one["reports"])'
}

# A list as sweep files have it: `list 2 3` gives ["2", "3"].
list() {
    local quoted
    printf -v quoted '"%s", ' "$@"
    echo "[${quoted%, }]"
}

# The sweep in a file beside this one, at the scale and with further options: sweep FILE [...].
sweep() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" --set gen.rows="$SAMPLES" \
        --set encode.scheme="$(list $SCHEMES)" --set train.preset="$PRESET" \
        --set train.batch="$BATCH" --set train.seed="$(list $SEEDS)" \
        ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# The same of tables: tables FILE [...].
tables() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" --set train.preset="$(list $PRESETS)" \
        --set train.lr="$(list $RATES)" --set train.epochs="$EPOCHS" \
        --set train.seed="$(list $RUNS)" ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# Sets of UCI, from the copy in the folder $UCI if that is set: uci FILE [...].
uci() {
    tables "$1" --set fetch.set="$(list $SETS)" ${UCI:+--set fetch.from="\"$UCI\""} "${@:2}"
}
