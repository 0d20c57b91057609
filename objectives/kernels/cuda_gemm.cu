/* C = A * B for row-major float32 matrices of any shape.
 *
 * A block computes a tile of C from tiles of A and B in shared memory; a thread computes a tile of registers.
 * The order of blocks, in groups of GROUP tile rows, keeps what neighbours read in the second-level cache.
 * Method: V. Volkov and J. Demmel, "Benchmarking GPUs to tune dense linear algebra" (SC 2008), and NVIDIA's
 * description of CUTLASS, "Efficient GEMM in CUDA".
 *
 *   BLOCK_M, BLOCK_N, BLOCK_K   the tile of a block
 *   THREAD_M, THREAD_N          the tile of a thread
 *   LOAD                        floats that a thread reads from global memory at once: 1, 2, 4
 *   READ                        floats that a thread reads from shared memory at once: 1, 2, 4
 *   STAGES                      1, or 2: the next tiles are loaded while these are multiplied
 *   PAD                         floats after each row of a tile of A, against bank conflicts
 *   GROUP                       rows of tiles whose blocks run together
 *   UNROLL                      steps over k that are written out
 *   MIN_BLOCKS                  blocks that a multiprocessor must be able to hold
 *
 * READ divides THREAD_M, THREAD_N, BLOCK_M + PAD; LOAD divides BLOCK_K and BLOCK_N.
 */
#define COLUMNS (BLOCK_N / THREAD_N)
#define ROWS (BLOCK_M / THREAD_M)
#define THREADS (ROWS * COLUMNS)
#define STRIDE_A (BLOCK_M + PAD)
#define TILE_A (BLOCK_K * STRIDE_A)
#define TILE_B (BLOCK_K * BLOCK_N)
#define LOADS_A ((BLOCK_M * BLOCK_K / LOAD + THREADS - 1) / THREADS)
#define LOADS_B ((BLOCK_K * BLOCK_N / LOAD + THREADS - 1) / THREADS)

constexpr int steps = UNROLL; /* a pragma's macro is not replaced by every preprocessor */

template <int WIDTH> struct Vector;
template <> struct Vector<1> {
    typedef float type;
};
template <> struct Vector<2> {
    typedef float2 type;
};
template <> struct Vector<4> {
    typedef float4 type;
};

template <int WIDTH> static __device__ __forceinline__ void copy(float *to, const float *from)
{
    *reinterpret_cast<typename Vector<WIDTH>::type *>(to) =
        *reinterpret_cast<const typename Vector<WIDTH>::type *>(from);
}

/* LOAD floats from row `row`, column `column` on; past the end they are zero. ALIGNED: LOAD divides the row. */
template <bool ALIGNED>
static __device__ __forceinline__ void load(float *to, const float *matrix, int row, int column, int rows, int columns)
{
    const float *from = matrix + (size_t)row * columns + column;
    if (ALIGNED && row < rows && column < columns) {
        copy<LOAD>(to, from);
        return;
    }
#pragma unroll
    for (int i = 0; i < LOAD; i++)
        to[i] = row < rows && column + i < columns ? from[i] : 0.0f;
}

/* A tile on its way from global to shared memory, in registers. */
struct Staged {
    alignas(16) float a[LOADS_A][LOAD];
    alignas(16) float b[LOADS_B][LOAD];

    template <bool ALIGNED>
    __device__ __forceinline__ void fetch(const float *matrix_a, const float *matrix_b, int row, int column, int depth,
                                          int m, int n, int k)
    {
#pragma unroll
        for (int i = 0; i < LOADS_A; i++) {
            int at = (threadIdx.x + i * THREADS) * LOAD;
            if (LOADS_A * THREADS * LOAD == BLOCK_M * BLOCK_K || at < BLOCK_M * BLOCK_K)
                load<ALIGNED>(a[i], matrix_a, row + at / BLOCK_K, depth + at % BLOCK_K, m, k);
        }
#pragma unroll
        for (int i = 0; i < LOADS_B; i++) {
            int at = (threadIdx.x + i * THREADS) * LOAD;
            if (LOADS_B * THREADS * LOAD == BLOCK_K * BLOCK_N || at < BLOCK_K * BLOCK_N)
                load<ALIGNED>(b[i], matrix_b, depth + at / BLOCK_N, column + at % BLOCK_N, k, n);
        }
    }

    /* The tile of A is transposed: a thread then reads its rows side by side. */
    __device__ __forceinline__ void store(float *tile_a, float *tile_b) const
    {
#pragma unroll
        for (int i = 0; i < LOADS_A; i++) {
            int at = (threadIdx.x + i * THREADS) * LOAD;
            if (LOADS_A * THREADS * LOAD == BLOCK_M * BLOCK_K || at < BLOCK_M * BLOCK_K)
#pragma unroll
                for (int j = 0; j < LOAD; j++)
                    tile_a[(at % BLOCK_K + j) * STRIDE_A + at / BLOCK_K] = a[i][j];
        }
#pragma unroll
        for (int i = 0; i < LOADS_B; i++) {
            int at = (threadIdx.x + i * THREADS) * LOAD;
            if (LOADS_B * THREADS * LOAD == BLOCK_K * BLOCK_N || at < BLOCK_K * BLOCK_N)
                copy<LOAD>(tile_b + at, b[i]);
        }
    }
};

/* A thread's rows lie in runs of READ, ROWS * READ apart, so that a warp reads without gaps; columns likewise. */
static __device__ __forceinline__ int row_of(int i)
{
    return (i / READ * ROWS + threadIdx.x / COLUMNS) * READ + i % READ;
}

static __device__ __forceinline__ int column_of(int j)
{
    return (j / READ * COLUMNS + threadIdx.x % COLUMNS) * READ + j % READ;
}

static __device__ __forceinline__ void multiply(float sum[THREAD_M][THREAD_N], const float *tile_a, const float *tile_b)
{
#pragma unroll steps
    for (int p = 0; p < BLOCK_K; p++) {
        alignas(16) float left[THREAD_M], right[THREAD_N];
#pragma unroll
        for (int i = 0; i < THREAD_M; i += READ)
            copy<READ>(left + i, tile_a + p * STRIDE_A + row_of(i));
#pragma unroll
        for (int j = 0; j < THREAD_N; j += READ)
            copy<READ>(right + j, tile_b + p * BLOCK_N + column_of(j));
#pragma unroll
        for (int i = 0; i < THREAD_M; i++)
#pragma unroll
            for (int j = 0; j < THREAD_N; j++)
                sum[i][j] += left[i] * right[j];
    }
}

template <bool ALIGNED>
static __device__ __forceinline__ void gemm(const float *__restrict__ a, const float *__restrict__ b,
                                            float *__restrict__ c, int m, int n, int k)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float *tile_a = reinterpret_cast<float *>(shared_memory), *tile_b = tile_a + STAGES * TILE_A;

    int tiles_m = (m + BLOCK_M - 1) / BLOCK_M, tiles_n = (n + BLOCK_N - 1) / BLOCK_N;
    int group = blockIdx.x / (GROUP * tiles_n), inside = blockIdx.x % (GROUP * tiles_n);
    int height = min(GROUP, tiles_m - group * GROUP); /* the last group may be lower */
    int row = (group * GROUP + inside % height) * BLOCK_M, column = inside / height * BLOCK_N;

    Staged staged;
    float sum[THREAD_M][THREAD_N] = {};
    int stage = 0;
    staged.fetch<ALIGNED>(a, b, row, column, 0, m, n, k);
    staged.store(tile_a, tile_b);
    __syncthreads();
    for (int depth = BLOCK_K; depth < k; depth += BLOCK_K) {
        if (STAGES == 2) {
            staged.fetch<ALIGNED>(a, b, row, column, depth, m, n, k);
            multiply(sum, tile_a + stage * TILE_A, tile_b + stage * TILE_B);
            stage ^= 1;
        } else {
            multiply(sum, tile_a, tile_b);
            __syncthreads(); /* nobody may still read what is overwritten now */
            staged.fetch<ALIGNED>(a, b, row, column, depth, m, n, k);
        }
        staged.store(tile_a + stage * TILE_A, tile_b + stage * TILE_B);
        __syncthreads();
    }
    multiply(sum, tile_a + stage * TILE_A, tile_b + stage * TILE_B);

#pragma unroll
    for (int i = 0; i < THREAD_M; i++)
#pragma unroll
        for (int j = 0; j < THREAD_N; j++) {
            int at_row = row + row_of(i), at_column = column + column_of(j);
            if (at_row < m && at_column < n)
                c[(size_t)at_row * n + at_column] = sum[i][j];
        }
}

/* For rows of A and of B that LOAD divides. */
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_aligned(const float *a, const float *b, float *c, int m, int n, int k)
{
    gemm<true>(a, b, c, m, n, k);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_ragged(const float *a, const float *b, float *c, int m, int n, int k)
{
    gemm<false>(a, b, c, m, n, k);
}
