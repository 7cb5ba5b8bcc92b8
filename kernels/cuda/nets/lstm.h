/* lstm.h - an LSTM layer's operands, and its two ways: one kernel for a whole sequence (lstm_seq.cu), where W_hh
 * fits the registers of a block, or a product and a cell kernel for each step (lstm.cu). */
#ifndef KERNELS_CUDA_LSTM_H
#define KERNELS_CUDA_LSTM_H

#include "kernels/cuda/common.h"

/* Shapes as in kernels.h; what a direction has no use for is NULL. */
struct cuda_lstm {
    void *out; /* (T, B, H) */
    void *h_prev, *c_prev; /* (T, B, H); NULL forward: nothing is kept, T is 1 */
    void *gates; /* (T, B, 4H) */
    float *state; /* (B, 2H) */
    float *dstate; /* (2, B, H) */
    const void *dout; /* (T, B, H) */
    const void *w; /* (4H, H) */
    const uint8_t *reset; /* (T, B) */
    size_t T, B, H;
};

/* bf16 only. False: not this width, and nothing was done. */
bool cuda_lstm_seq_forward(struct kern *k, const struct cuda_lstm *l);
bool cuda_lstm_seq_backward(struct kern *k, const struct cuda_lstm *l);

#endif
