/* export_priv.h - what the writers of trainer/export/ are given: a policy in host memory. */
#pragma once

#include "trainer/trainer_priv.h"

struct exported {
    const struct policy *policy;
    const struct env_shape *shape;
    const char *env; /* the game's name */
    float *params; /* (n_params) */
    float *scale; /* (obs_size, 2): mean, 1 / deviation; NULL: observations are taken as they are */
};

void exported_centres(const struct exported *e,
                      float *ret_centres); /* (n_bins) numbers that the value's bins stand for */
/* The file's bytes. strbuf's own limit is checked by the caller. */
void safetensors_write(const struct exported *e, struct strbuf *out);
void onnx_write(const struct exported *e, struct strbuf *out);

extern const char trawl_policy_h[]; /* the text of trawl_policy.h (made by embed_text.py) */
