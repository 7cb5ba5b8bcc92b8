/* library_device.cuh - the device code of a game in a library: the root of the text that `trawl env build` gives to
 * nvcc after the game's header, with ENV_GAMES(X) for X(game) and the batch loop of env_loop.h. It exports
 *   const struct env_device *trawl_env_device(void)
 * beside trawl_env(). The library has a CUDA runtime of its own (static), which shares the process' context with ours;
 * its launches go to our stream, so that they are recorded like others. */
#ifndef CUDA_GAME_GPU
/* A header without ENV_GPU: struct game_gpu is declared and never completed. */
template <class MINE, class = void> struct library_gpu {
    typedef ENV_DEVICE_DEFAULT type; /* env_gpu_direct, or env_gpu_bytes */
};
template <class MINE> struct library_gpu<MINE, decltype((void)sizeof(MINE))> {
    typedef MINE type;
};
#define CUDA_GAME_GPU(game) typename library_gpu<struct game##_gpu>::type
#endif

#include "kernels/cuda/play/rollout_kernel.cuh"

template <class G>
static cudaError_t library_rollout(const struct rollout_args *args, size_t width, int n_blocks, unsigned n_ctas,
                                   size_t shared_max, size_t shared, cudaStream_t stream)
{
    rollout_kernel *kernel = rollout_kernel_at<G>(width, n_blocks);
    cudaFuncAttributes made = {};
    cudaError_t code = cudaFuncGetAttributes(&made, (const void *)kernel);

    if (code == cudaSuccess && made.binaryVersion != 90) /* not Hopper: nothing is in it */
        return cudaErrorNotSupported;
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)(shared_max - made.sharedSizeBytes));
    if (code != cudaSuccess)
        return code;
    kernel<<<n_ctas, (unsigned)(2 * width) * (unsigned)args->n_groups, shared, stream>>>(*args);
    return cudaGetLastError();
}

template <class G> static constexpr auto library_rollout_of(void) -> decltype(&library_rollout<G>)
{
    if constexpr (cuda_env_tiles<G>::yes)
        return library_rollout<G>;
    else
        return nullptr;
}

#define LIBRARY_DEVICE(game)                                                                                           \
    extern "C" __attribute__((visibility("default"))) const struct env_device *trawl_env_device(void)                  \
    {                                                                                                                  \
        static const struct env_device device =                                                                        \
            ENV_DEVICE_OF(game, ENV_DEVICE_LAYOUT, library_rollout_of<cuda_game_##game>());                            \
        return &device;                                                                                                \
    }
ENV_GAMES(LIBRARY_DEVICE)
