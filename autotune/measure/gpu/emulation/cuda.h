/* The part of CUDA C that kernels here use, for a C++ compiler: see emulator.cpp.
 *
 * Shared memory is dynamic only:  extern __shared__ __align__(16) unsigned char shared_memory[];
 */
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#define __global__ __attribute__((noinline))
#define __device__
#define __constant__ const
#define __forceinline__ inline
#define __restrict__ __restrict
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
};
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};

struct EmulatorState {
    dim3 thread, block, block_size, grid_size;
};
extern "C" EmulatorState emulator_state;
#define threadIdx emulator_state.thread
#define blockIdx emulator_state.block
#define blockDim emulator_state.block_size
#define gridDim emulator_state.grid_size

extern "C" void emulator_barrier();
static inline void __syncthreads() { emulator_barrier(); }

template <typename T> static inline T __ldg(const T *from) { return *from; }
template <typename T> static inline T min(T a, T b) { return b < a ? b : a; }
template <typename T> static inline T max(T a, T b) { return a < b ? b : a; }

extern "C" const char *emulator_launch(const unsigned grid[3], const unsigned block[3], size_t shared_bytes,
                                       unsigned seed, const void *const *buffers, const size_t *sizes,
                                       size_t count, void (*run)(void *), void *with);

/* Calls a kernel with the arguments that an array of pointers to them gives, as cuLaunchKernel does. */
template <typename... A> struct EmulatorCall {
    void (*kernel)(A...);
    void **arguments;

    template <size_t... I>
    __attribute__((no_sanitize("thread"), noinline)) void call(std::index_sequence<I...>)
    {
        kernel(*static_cast<A *>(arguments[I])...);
    }
    __attribute__((no_sanitize("thread"))) static void run(void *self)
    {
        static_cast<EmulatorCall *>(self)->call(std::index_sequence_for<A...>());
    }
};

template <typename... A>
__attribute__((no_sanitize("thread"))) static const char *
emulator_call(void (*kernel)(A...), const unsigned grid[3], const unsigned block[3], size_t shared_bytes,
              unsigned seed, void **arguments, const void *const *buffers, const size_t *sizes, size_t count)
{
    EmulatorCall<A...> call{kernel, arguments};
    return emulator_launch(grid, block, shared_bytes, seed, buffers, sizes, count, EmulatorCall<A...>::run, &call);
}

#define EMULATE(kernel)                                                                                   \
    extern "C" const char *emulate_##kernel(const unsigned *grid, const unsigned *block, size_t shared,   \
                                            unsigned seed, void **arguments, const void *const *buffers,  \
                                            const size_t *sizes, size_t count)                            \
    {                                                                                                     \
        return emulator_call(kernel, grid, block, shared, seed, arguments, buffers, sizes, count);        \
    }
