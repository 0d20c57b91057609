/* Some steps of a five-point heat equation with sources, on a float32 grid ("hotspot").
 *
 * new = old + sx (west + east - 2 old) + sy (north + south - 2 old) + sz (ambient - old) + sp power;
 * a neighbour outside the grid is as warm as the cell itself. A block reads its tile with FUSED more cells on
 * each side and takes FUSED steps in shared memory, of which each leaves one ring fewer right: overlapped
 * temporal tiling (J. Meng and K. Skadron, "Performance modeling and automatic ghost zone optimization for
 * iterative stencil loops on GPUs", ICS 2009). The problem is that of Rodinia's hotspot (Che et al., IISWC 2009).
 *
 *   BLOCK_X, BLOCK_Y     threads of a block
 *   TILE_X, TILE_Y       cells of a thread, BLOCK_X and BLOCK_Y apart
 *   FUSED                steps of a launch at most
 *   POWER_SHARED         1: the sources are held in shared memory as well
 *   UNROLL               rows of cells of a thread that are written out
 *   MIN_BLOCKS           blocks that a multiprocessor must be able to hold
 */
#define OUT_X (BLOCK_X * TILE_X)
#define OUT_Y (BLOCK_Y * TILE_Y)
#define HELD_X (OUT_X + 2 * FUSED)
#define HELD_Y (OUT_Y + 2 * FUSED)
#define HELD (HELD_X * HELD_Y)
#define THREADS (BLOCK_X * BLOCK_Y)

constexpr int rows_at_once = UNROLL; /* a pragma's macro is not replaced by every preprocessor */

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    stencil(const float *__restrict__ from, const float *__restrict__ power, float *__restrict__ to, int height,
            int width, int steps, float sx, float sy, float sz, float sp, float ambient)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float *old = reinterpret_cast<float *>(shared_memory);
    float *fresh = old + HELD; /* used only where there is a second step */
    float *held_power = old + (FUSED > 1 ? 2 : 1) * HELD;
    int top = (int)blockIdx.y * OUT_Y - FUSED, left = (int)blockIdx.x * OUT_X - FUSED;

    for (int y = threadIdx.y; y < HELD_Y; y += BLOCK_Y)
        for (int x = threadIdx.x; x < HELD_X; x += BLOCK_X) {
            int row = top + y, column = left + x;
            if (row < 0 || row >= height || column < 0 || column >= width)
                continue;
            old[y * HELD_X + x] = from[(size_t)row * width + column];
            if (POWER_SHARED)
                held_power[y * HELD_X + x] = power[(size_t)row * width + column];
        }
    __syncthreads();

    for (int step = 1; step <= steps; step++) {
        /* Right after the last step is at least the tile itself: nothing else is needed of it. */
        int ring = step == steps ? FUSED : step;
#pragma unroll rows_at_once
        for (int y = threadIdx.y; y < HELD_Y; y += BLOCK_Y)
            for (int x = threadIdx.x; x < HELD_X; x += BLOCK_X) {
                int row = top + y, column = left + x, at = y * HELD_X + x;
                if (x < ring || x >= HELD_X - ring || y < ring || y >= HELD_Y - ring)
                    continue;
                if (row < 0 || row >= height || column < 0 || column >= width)
                    continue;
                float here = old[at];
                float north = row > 0 ? old[at - HELD_X] : here;
                float south = row < height - 1 ? old[at + HELD_X] : here;
                float west = column > 0 ? old[at - 1] : here;
                float east = column < width - 1 ? old[at + 1] : here;
                float source = POWER_SHARED ? held_power[at] : power[(size_t)row * width + column];
                float next = here + sx * (west + east - 2.0f * here) + sy * (north + south - 2.0f * here) +
                             sz * (ambient - here) + sp * source;
                if (step == steps)
                    to[(size_t)row * width + column] = next;
                else
                    fresh[at] = next;
            }
        __syncthreads();
        float *swap = old;
        old = fresh;
        fresh = swap;
    }
}
