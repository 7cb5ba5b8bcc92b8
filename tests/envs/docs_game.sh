#!/bin/sh
# docs_game.sh - the header that `trawl env new` writes is a built-in game too, as docs/envs.md says: it compiles with the batch loop and
# its options.
# usage: docs_game.sh ROOT CC...        exit 0 fine, 1 not
set -eu
root=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/envs/games"
sed 's|@|apples|g; s|"trawl_env.h"|"envs/env.h"|' "$root/envs/plugin/new_game.h.in" >"$dir/envs/games/apples.h"
cat >"$dir/apples.c" <<'END'
#include "envs/games/apples.h"
#define ENV_GAME apples
#include "envs/env_loop.h"
const void *const used = &apples_def;
END
"$@" -std=gnu17 -Wall -Wextra -Wno-unused-parameter -Werror -fsyntax-only -I"$dir" -I"$root" "$dir/apples.c"
