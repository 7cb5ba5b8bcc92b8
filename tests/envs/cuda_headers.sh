#!/bin/sh
# cuda_headers.sh - every game's header compiles for the device, as one batch kernel per game.
# usage: cuda_headers.sh ROOT GAME...        exit 0 fine, 1 not, 77 no nvcc (skipped)
# The kernels are generated: a game needs nothing but its header and its name in envs/meson.build.
set -eu
root=$1
shift
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "no nvcc, skipped"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
    cat <<END
#include "envs/env.h"
template <bool BYTES> struct obs_of {
    typedef float type;
};
template <> struct obs_of<true> {
    typedef uint8_t type;
};
END
    for game in "$@"; do
        cat <<END
#include "envs/games/$game.h"
#define ENV_GAME $game
#include "envs/env_loop.h"
__global__ void ${game}_reset_k(struct ${game}_settings settings, struct ${game}_instance *instances, struct rng root,
                                obs_of<${game}_gpu::bytes>::type *obs, uint8_t *mask, uint64_t n)
{
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    ${game}_instance_reset(&settings, &instances[i], root, i);
    ${game}_instance_observe(&settings, &instances[i], obs, mask, i);
}
__global__ void ${game}_step_k(struct ${game}_settings settings, struct ${game}_instance *instances, struct env_log *logs,
                               struct env_io io, uint64_t n)
{
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    if (i < n)
        ${game}_instance_step(&settings, &instances[i], &logs[i], &io, i);
}
END
    done
} >"$dir/games.cu"
"$nvcc" -x cu -arch=sm_90 -fmad=false -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unused-function,-Wno-unused-parameter -I"$root" \
    -c "$dir/games.cu" -o "$dir/games.o"
echo "$# games compile for the device"
