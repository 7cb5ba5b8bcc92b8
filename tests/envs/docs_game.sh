#!/bin/sh
# docs_game.sh - the example of docs/envs.md compiles: the header as it stands there, with the batch loop and its options.
# usage: docs_game.sh ROOT CC...        exit 0 fine, 1 not
set -eu
root=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/envs/games"
block() # FIRST-LINE: the code block that begins with it
{
    awk -v first="$1" '/^```/ { on = 0; fresh = $0 == "```c"; next } fresh { on = index($0, first) == 1; fresh = 0 } on' "$root/docs/envs.md"
}
block '/* apples.h' >"$dir/envs/games/apples.h"
cat >"$dir/apples.c" <<'END'
#include "envs/games/apples.h"
#define ENV_GAME apples
#include "envs/env_loop.h"
const void *const used = &apples_def;
END
[ -s "$dir/envs/games/apples.h" ] || { echo "docs/envs.md has no apples.h"; exit 1; }
"$@" -std=gnu17 -Wall -Wextra -Werror -fsyntax-only -I"$dir" -I"$root" "$dir/apples.c"
