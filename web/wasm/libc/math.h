/* math.h - for games in a page: all of it is in one header. */
#include "web/wasm/libc/wasm_libc.h"
