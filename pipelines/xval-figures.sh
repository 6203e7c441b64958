#!/usr/bin/env bash
# Figures 2, 5, 6 and 7 of xVal and those of its Appendix B.5, with the tables behind them.
#
#     SCALE=cpu pipelines/xval-figures.sh
#
# The models are those of xval-table5.sh with the first seed. Existing models are reused.
#
#   OUT             folder for the figures (default figures)
#   FORMATS         file types of the figures (default "png svg")
#
# scales.sh describes SCALE and all other variables.
set -euo pipefail
. "$(dirname "$0")/scales.sh"
orbits

: "${OUT:=figures}" "${FORMATS:=png svg}"
mkdir -p "$OUT"

# Each entry has a name, a scheme, and options of `numtok train`.
ways=()
for scheme in $SCHEMES; do
    ways+=("$scheme $scheme")
done
ways+=("xval-fourier xval --embedder fourier" "xval-mdn xval --head mdn:5"
    "xval-riemann xval --head riemann:64")

draw() { # draw NAME KIND REF... [OPTION...]
    for format in $FORMATS; do
        numtok figure "${@:2}" --out "$OUT/$1.$format"
    done
}

read -r seed _ <<< "$SEEDS"
data=$(numtok gen orbits --planets "$PLANETS" --points "$POINTS" --span "$SPAN" \
    --aligned "$ALIGNED" --rows "$SAMPLES" --split "$SHIFTED")
names=()
declare -A models encodings
for way in "${ways[@]}"; do
    read -r name scheme options <<< "$way"
    names+=("$name")
    encodings[$name]=$(numtok encode --scheme "$scheme" --text-tokenizer structure "$data")
    # shellcheck disable=SC2086 - several options
    models[$name]=$(numtok train "${encodings[$name]}" --preset "$PRESET" --batch "$BATCH" \
        --steps "$STEPS" --objective "$OBJECTIVE" --precision "$PRECISION" --seed "$seed" $options)
done

# Continuity between trained values (Figures 5 and 6).
for target in stepsize a; do
    split=ood-$target
    [ $target != a ] || split=ood-a1
    reports=()
    for name in "${names[@]}"; do
        reports+=("$(numtok eval "${models[$name]}" "${encodings[$name]}" --split $split)")
        probe=$(numtok probe examples "${models[$name]}" "${encodings[$name]}" \
            --split $split --target $target --top 5)
        draw "xval-figure6-$target-$name" vary "$probe"
    done
    draw "xval-figure5-$target" truth "${reports[@]}" --target $target --seen
    draw "xval-error-$target" error "${reports[@]}" --target $target
done

# Masses, which no model predicts well (Figure 7).
reports=()
for name in "${names[@]}"; do
    reports+=("$(numtok eval "${models[$name]}" "${encodings[$name]}" --split test)")
done
draw xval-figure7 truth "${reports[@]}" --target m

# Embeddings of a number after the first layer norm (Figure 2), and those of number tokens.
for name in "${names[@]}"; do
    form=pca drawn=xval-pca
    [[ $name != xval* ]] || form=embedding drawn=xval-figure2
    draw "$drawn-$name" "$form" "$(numtok probe "$form" "${models[$name]}")"
done
