/* export_policy.h - `trawl export CHECKPOINT`: its policy for other programs. */
#pragma once

#include "base/base.h"

/* format: onnx, safetensors or header; NULL: by path's suffix (.onnx, .safetensors, .h). path NULL: stdout. samples: a
 * file that gets decisions of the policy, to check another program by; NULL: none. */
enum status export_policy(const char *checkpoint, const char *format, const char *path, const char *samples,
                          struct error *err) MUST_USE;

/* Does the format, or without one the path's suffix, ask for a policy? */
bool export_asks_policy(const char *format, const char *path);
