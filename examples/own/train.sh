#!/bin/sh
# train.sh - a toy that "trains": sh train.sh --learning-rate 0.01 --layers 2 --optimizer sgd --momentum 0.9
lr=0.01 layers=2 momentum=0
while [ $# -gt 1 ]; do
    case $1 in
    --learning-rate) lr=$2 ;;
    --layers) layers=$2 ;;
    --momentum) momentum=$2 ;;
    esac
    shift 2
done
for epoch in 1 2 3; do
    awk -v lr="$lr" -v layers="$layers" -v momentum="$momentum" -v epoch="$epoch" -v seed="${TRAWL_SEED:-1}" 'BEGIN {
        srand(seed)
        x = log(lr) / log(10) + 2.5 - momentum / 2
        score = (1 - x * x / 6) * (1 - exp(-layers * epoch / 4)) + 0.02 * (rand() - 0.5)
        printf "TRAWL score=%.4f step=%d cost=%.2f\n", score, epoch, layers * epoch
    }'
done
