/* lstm.h - an LSTM layer has two ways: one kernel for a whole sequence (lstm_seq.cu), where W_hh fits the registers of
 * a block, or a product and a cell kernel for each step (lstm.cu). h_prev is NULL in a single step. */
#ifndef KERNELS_CUDA_LSTM_H
#define KERNELS_CUDA_LSTM_H

#include "kernels/cuda/common.h"

/* bf16 only. False: not this width, and nothing was done. */
bool cuda_lstm_seq_forward(struct kern *k, const struct kern_lstm *l);
bool cuda_lstm_seq_backward(struct kern *k, const struct kern_lstm *l);

#endif
