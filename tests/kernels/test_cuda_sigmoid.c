/* test_cuda_sigmoid.c - the sigmoid that the gates of the CUDA tables share, within the error that it promises. Skipped
 * without a GPU. */
#include "tests/kernels/kern_test.h"

static struct kern *gpu;

/* Numbers as the activations of the precision; the caller's to kern_free. */
static void *upload(const float *x, size_t n)
{
    MEM_LOCAL uint16_t *half = NEW(uint16_t, n);
    bool is_half = kern_ops(gpu)->act_size == 2;
    void *mem;

    for (size_t i = 0; i < n; i++)
        half[i] = bf16_bits(x[i]);
    mem = test_device_bytes(gpu, is_half ? (const void *)half : x, n * kern_ops(gpu)->act_size);
    return mem;
}

/* A MinGRU cell from zero state: where a = 1/2, h is sigmoid(g); where g is large and a < 0, h is sigmoid(a); out / h
 * is sigmoid(p). All three within what num_sigmoids (number.h) promises, and NaN stays NaN. */
TEST(is_within_its_error)
{
    enum { H = 4096 };
    const double promised = 5e-7;
    const bool is_half = kern_ops(gpu)->act_size == 2;
    static float gates[3 * H], zero[H];
    uint8_t one = 1;
    void *x = upload(zero, H), *h = test_device_bytes(gpu, zero, sizeof zero), *out = upload(zero, H);
    void *reset = test_device_bytes(gpu, &one, 1);

    for (int from_a = 0; from_a < 2; from_a++) {
        for (size_t i = 0; i < H; i++) {
            float at = 200.0f * ((float)i / (float)(H - 1) - 0.5f);
            at = is_half ? bf16_value(bf16_bits(at)) : at;
            gates[i] = from_a ? -fabsf(at) - 0x1p-10f : 0.5f;
            gates[i] = is_half ? bf16_value(bf16_bits(gates[i])) : gates[i];
            gates[H + i] = from_a ? 100.0f : at;
            gates[2 * H + i] = at;
        }
        gates[H + 77] = NAN;
        void *g = upload(gates, 3 * H);
        struct kern_mingru l = {.B = 1, .H = H, .out = out, .state = h, .gates = g, .x = x, .reset = reset};
        kern_ops(gpu)->mingru_step(gpu, &l);
        float *got = test_host_bytes(gpu, h, sizeof zero);
        void *shown = test_host_bytes(gpu, out, H * kern_ops(gpu)->act_size);
        for (size_t i = 0; i < H; i++) {
            double z = 1.0 / (1.0 + exp(-(double)gates[(from_a ? 0 : H) + i]));
            double s = 1.0 / (1.0 + exp(-(double)gates[2 * H + i]));
            float y = is_half ? bf16_value(((uint16_t *)shown)[i]) : ((float *)shown)[i];
            if (i == 77) {
                assert_true(isnan(got[i]));
                continue;
            }
            assert_float_equal(got[i], z, promised);
            assert_float_equal(y, s * (double)got[i], is_half ? 4e-3 : 2.0 * promised);
        }
        mem_free(got), mem_free(shown);
        kern_free(gpu, g);
    }
    kern_free(gpu, x), kern_free(gpu, h), kern_free(gpu, out), kern_free(gpu, reset);
}

/* usage: test_cuda_sigmoid f32|bf16 [PATTERN|--list] */
int main(int argc, char **argv)
{
    bool is_half = argc > 1 && strcmp(argv[1], "bf16") == 0;
    struct kern_settings settings = {.kind = KERN_CUDA};
    struct error err = {0};
    char reason[512];
    int n_failed;

    if (test_listed(argc > 2 ? argv[2] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    if (kern_open(&gpu, &settings, &err) != ST_OK ||
        kern_precision_set(gpu, is_half ? KERN_BF16 : KERN_F32, &err) != ST_OK) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    n_failed = run_cases(kern_ops(gpu)->name, NULL, NULL);
    kern_close(gpu);
    return n_failed;
}
