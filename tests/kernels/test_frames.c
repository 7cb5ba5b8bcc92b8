/* test_frames.c - stacks of frames against the list of frames that were shown. */
#include "tests/kernels/kern_test.h"

enum { N = 5, K = 3, PIXELS = 4, CHANNELS = 2, LIST = 3, GRID = PIXELS * CHANNELS, D = GRID + LIST, STEPS = 9 };

/* Number j of the frame of agent i at time t; the same in every size of numbers. */
static unsigned shown(int t, size_t i, size_t j)
{
    return (unsigned)(1 + t * 23 + (int)i * 7 + (int)j * 3) % 251;
}

static void put(char *at, size_t bytes, unsigned value)
{
    uint8_t one = (uint8_t)value;
    uint16_t two = (uint16_t)value;
    uint32_t four = value;
    memcpy(at, bytes == 1 ? (void *)&one : bytes == 2 ? (void *)&two : (void *)&four, bytes);
}

/* What dst has to hold: frames began[i] .. t of agent i, the first one repeated. */
static void check_stack(const char *dst, size_t bytes, int t, const int *began)
{
    for (size_t i = 0; i < N; i++)
        for (size_t f = 0; f < K; f++)
            for (size_t j = 0; j < D; j++) {
                int time = t - (int)(K - 1 - f);
                size_t at = j < GRID ? j / CHANNELS * CHANNELS * K + f * CHANNELS + j % CHANNELS
                                     : GRID * K + f * LIST + (j - GRID);
                char want[4];
                put(want, bytes, shown(time > began[i] ? time : began[i], i, j));
                if (memcmp(dst + (i * K * D + at) * bytes, want, bytes) != 0)
                    fail_msg("%zu bytes, step %d, agent %zu, frame %zu, number %zu differs", bytes, t, i, f, j);
            }
}

/* Slots one after another, or (in_place) one that is its own past. */
static void play(struct kern *k, size_t bytes, bool in_place)
{
    size_t slot = (size_t)N * K * D * bytes;
    char frame[N * D * 4];
    MEM_LOCAL char *stack = NEW(char, slot *(STEPS + 1));
    int began[N] = {0};

    for (int t = 0; t <= STEPS; t++) {
        uint8_t reset[N];
        char *dst = stack + (in_place ? 0 : (size_t)t) * slot, *old = in_place ? dst : dst - slot;
        for (size_t i = 0; i < N; i++) {
            reset[i] = t > 0 && (t + (int)i) % 4 == 0;
            began[i] = reset[i] ? t : began[i];
            for (size_t j = 0; j < D; j++)
                put(frame + (i * D + j) * bytes, bytes, shown(t, i, j));
        }
        kern_ops(k)->frames_stack(k, &(struct kern_frames){.N = N,
                                                           .k = K,
                                                           .pixels = PIXELS,
                                                           .channels = CHANNELS,
                                                           .list = LIST,
                                                           .number_bytes = bytes,
                                                           .frame = frame,
                                                           .old = t == 0 ? NULL : old,
                                                           .dst = dst,
                                                           .reset = t == 0 ? NULL : reset});
        check_stack(dst, bytes, t, began);
    }
}

TEST(stacks_hold_the_last_frames)
{
    static const size_t sizes[] = {1, 2, 4};
    for (size_t t = 0; t < N_THREADS; t++) {
        KERN *k = test_kern(test_threads[t]);
        for (size_t s = 0; s < 3; s++) {
            play(k, sizes[s], false);
            play(k, sizes[s], true);
        }
    }
}

/* Rows that are not asked for keep their bytes. */
TEST(only_some_rows)
{
    KERN *k = test_kern(1);
    uint8_t old[3 * 2], dst[3 * 2] = {9, 9, 9, 9, 9, 9}, frame[3] = {1, 2, 3};
    const uint8_t only[3] = {1, 0, 1}, want[3 * 2] = {5, 1, 9, 9, 5, 3};

    memset(old, 5, sizeof old);
    kern_ops(k)->frames_stack(
        k, &(struct kern_frames){
               .N = 3, .k = 2, .list = 1, .number_bytes = 1, .frame = frame, .old = old, .dst = dst, .only = only});
    assert_memory_equal(dst, want, sizeof want);
}

TEST_PROGRAM("frames")
