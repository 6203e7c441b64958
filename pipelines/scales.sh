# Settings of all pipelines. Every script sources this file and takes its size from SCALE:
#
#     SCALE=smoke pipelines/xval-table3.sh
#
#   smoke   a test run of about a minute
#   cpu     hours on two cores (default): a small model, three seeds, four budgets. The sweep files
#           have these settings
#   gpu     hours on one GPU: a model of the paper's size, except in numvalue-*
#   paper   the model and settings of the paper. xVal trains for 500,000 steps on temperatures; for
#           arithmetic, it states neither the number of steps nor of rows
#
# Run scripts from the root of the clone. Every run is an artifact, so the same command resumes a
# stopped pipeline.
#
# The scale sets these variables; only fair-comparison and grand-table accept another STEPS:
#
#   PRESET          model (a preset of `numtok train`)
#   SAMPLES         rows per data set, 1% for validation and 1% for test. Only 810,000 products of
#                   two three-digit integers exist
#   STEPS, BATCH    training steps, and rows per step
#
# You can set all variables below. A list is a string with spaces:
#
#     SEEDS="0 1" SCHEMES="xval p10" JOBS=2 pipelines/xval-table3.sh
#
# Most scripts:
#
#   SEEDS           seeds; numgpt-*: five by default, as in the paper
#   SHARES          budgets (xval-table3, numgpt-table1): "4 1" trains for STEPS / 4 and for STEPS,
#                   each in a separate run with its own warm-up and decay
#   JOBS            number of parallel runs
#   NUMTOK_THREADS  CPU threads per run
#   OUT             folder for figures (xval-table4, numgpt-table1, numgpt-figure3,
#                   decoding-regression-figure4, -figure11); needs the extra `figures`
#
# xval-*:
#
#   SCHEMES         number encodings
#   DIGITS          digits of the two factors (xval-table2)
#   OPERANDS        numbers of operands (xval-table3)
#   OBJECTIVE       what training masks (xval-table4, xval-table5, xval-figures): mlm:tokens masks
#                   any token, as in the paper (default at all scales); mlm:targets only the targets
#   PRECISION       bfloat16 (default) or float32, which is faster on a CPU without bfloat16
#                   instructions; same scripts as OBJECTIVE
#   ERA5            weather data (xval-table4): a value of `numtok fetch era5 --from`, or a copy
#   TOKENS, MINUTES token budget and time budget (xval-table4)
#   HOURS           step between the fetched hours (xval-table4; 6h from gpu scale on)
#
# decoding-regression-*; at paper scale, the whole grid of the paper's Appendix D:
#
#   PRESETS, RATES  MLPs and learning rates. If the sweep file has [select], the best are chosen on
#                   held-out rows
#   UD, ND, RIEMANN, MDN, POINTWISE
#                   settings for each kind of head, chosen in the same way
#   EPOCHS          maximum number of epochs
#   ROWS            training rows of generated data
#   RUNS            seeds
#   DRAWS           numbers of samples per prediction (Figures 9 and 12)
#   SIZES           numbers of training rows (Figure 6)
#   SETS            UCI data sets
#   TASKS           OpenML tasks (Figure 5)
#   FUNCTIONS, DIMENSIONS
#                   BBOB functions and their dimensions (Table 1, Figure 11)
#   CURVES, DENSITIES
#                   choices of `numtok gen curves` (Figure 4) and `numtok gen densities` (Figure 7)
#   UCI             folder with a copy of uci_datasets; otherwise the sets are downloaded
#
# numgpt-*:
#
#   JUDGED          tasks (numgpt-table1)
#   SIGMAS          widths of the mantissa prototypes (numgpt-figure3)
#   NUMERACY        Numeracy-600K as a file, folder or URL (numgpt-table2); otherwise downloaded
#   CORPUS          files of text for pre-training; otherwise pretrained models are left out
#   PRETRAINING     steps of pre-training (default: the steps of fine-tuning)
#
# numvalue-*:
#
#   OTHERS          further schemes for the same questions (default "p1000 xval numgpt"; "": none)

# The UCI sets in Table 3 of Decoding-based Regression, and the tasks of OpenML-CTR23.
ALL_SETS='airfoil autompg autos bike breastcancer challenger concrete elevators energy fertility gas
    housing keggdirected kin40k parkinsons pol protein pumadyn32nm slice sml solar stock
    tamielectric wine yacht'
ALL_TASKS="$(echo 3612{34..37} 3612{41..44} 361247 36125{0..9} 361249 3612{60,61,64} \
    3612{66..69} 361272 36161{6..9} 36162{1..3})"

# each SETTINGS SPEC...: print every spec with every group of settings:
#
#     each 'a=1 a=2' x y      prints x,a=1 y,a=1 x,a=2 y,a=2
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

# Planetary systems and models of xval-table5 and xval-figures. At smoke and cpu scale both are
# small, and all planets start in a line: with other starts, a small model had not learned the step
# size after 4,000 steps (docs/log). Larger scales have the published ranges of planets, points and
# spans, and the published fraction of systems that start in a line.
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

# Weather data and budgets of xval-table4. TOKENS and MINUTES are about what p10, which has the
# longest rows, needs for STEPS steps, as in the paper; at cpu scale, half of that.
#
# At cpu scale, rows have few stations, days and steps. All rows have the same number of stations,
# so that numbers of the same meaning have the same token position. Batches are small, because the
# number of steps limits what a small model learns here, not the number of rows (docs/log). From gpu
# scale on, sizes are the published ones, with thousands of tokens per row.
#
# A row can start at any hour of the field. HOURS=6h fetches only every sixth hour of a large one.
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

# Models of numgpt-*: decoders with 96 rows per step. From gpu scale on, they have the published
# size, learning rate and epochs. At cpu scale, they have three layers of width 64 and a budget in
# steps: Table 1 takes two and a half hours (one of them for the smaller budgets), Table 3 half an
# hour, and Figure 3 three quarters of an hour (docs/log).
numgpt() {
    BATCH=96 RATE=6.25e-5 PRESET=gpt2 SAMPLES= EPOCHS=50
    case "$SCALE" in
        smoke) RATE=2e-3 PRESET=nano,layers=1,width=16,heads=2 SAMPLES=400 STEPS=10 EPOCHS= ;;
        cpu) RATE=2e-3 PRESET=nano,layers=3,heads=2,width=64 STEPS=5000 EPOCHS= ;;
    esac
}

# Data and models of numvalue-*: decoders that train on answers only. ROWS, VALIDATION and TEST are
# rows per task and digit key.
#
#   cpu     six tasks of up to four digits, and small batches: the number of steps limits what is
#           learned, not the number of rows (docs/log)
#   gpu     all 38 tasks of up to five digits, and a model smaller than the paper's
#   paper   the published data, model size, learning rate and curriculum
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

# steps_for ROWS: print the number of training steps: EPOCHS passes over ROWS rows if EPOCHS is set,
# otherwise STEPS.
steps_for() {
    echo $((EPOCHS ? (EPOCHS * $1 + BATCH - 1) / BATCH : STEPS))
}

# numgpt_sweep FILE [OPTION...]: run a sweep file of this folder with the models of numgpt-*.
numgpt_sweep() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" ${SAMPLES:+--set gen.rows="$SAMPLES"} \
        --set train.preset="$PRESET" --set train.lr="$RATE" --set train.batch="$BATCH" \
        --set train.seed="$(list $SEEDS)" ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# pretrained TABLE DATA STEPS OBJECTIVE [OPTION...]: make the rows "pre-train and fine-tune" of a
# published table. For each scheme, it pre-trains on CORPUS, fine-tunes on DATA with each seed,
# evaluates with the options of `numtok eval`, and compares all reports with TABLE.
#
# CORPUS is one or more files of rows {"text": "..."}, each a paragraph of at most 1,023 tokens.
# 2,300 is read as 2300 and 23% as 0.23, as by the paper's parser.
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

# Read the output of `numtok sweep --json`, and print the REFs of all reports.
reports() {
    python3 -c 'import json, sys
for table in json.load(sys.stdin)["tables"]:
    for one in table["comparison"]["experiments"]:
        print(*one["reports"])'
}

# list WORD...: print a list for a sweep file; `list 2 3` prints ["2", "3"].
list() {
    local quoted
    printf -v quoted '"%s", ' "$@"
    echo "[${quoted%, }]"
}

# sweep FILE [OPTION...]: run a sweep file of this folder on texts, at this scale.
sweep() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" --set gen.rows="$SAMPLES" \
        --set encode.scheme="$(list $SCHEMES)" --set train.preset="$PRESET" \
        --set train.batch="$BATCH" --set train.seed="$(list $SEEDS)" \
        ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# tables FILE [OPTION...]: run a sweep file of this folder on tables, at this scale.
tables() {
    numtok sweep "$(dirname "${BASH_SOURCE[0]}")/$1" --set train.preset="$(list $PRESETS)" \
        --set train.lr="$(list $RATES)" --set train.epochs="$EPOCHS" \
        --set train.seed="$(list $RUNS)" ${JOBS:+--jobs "$JOBS"} "${@:2}"
}

# uci FILE [OPTION...]: run a sweep file on the UCI sets in SETS. Folder UCI, if set, has a copy of
# them.
uci() {
    tables "$1" --set fetch.set="$(list $SETS)" ${UCI:+--set fetch.from="\"$UCI\""} "${@:2}"
}
