/* The correlation of a float32 image with a filter ("convolution" of deep learning), without padding.
 *
 * out[y][x] is the sum over i, j of image[y + i][x + j] * filter[i][j]; the image has FILTER_H - 1 more rows and
 * FILTER_W - 1 more columns than the output. The knobs are those of B. van Werkhoven et al., "Optimizing
 * convolution operations on GPUs using adaptive tiling" (FGCS 30, 2014).
 *
 *   FILTER_H, FILTER_W    the filter
 *   BLOCK_X, BLOCK_Y      threads of a block
 *   TILE_X, TILE_Y        outputs of a thread, BLOCK_X and BLOCK_Y apart
 *   IMAGE_SHARED          1: what the block reads of the image is copied to shared memory first
 *   PAD                   floats after each row of that copy, against bank conflicts
 *   FILTER_SHARED         1: so is the filter
 *   READ_ONLY             1: through the read-only cache
 *   UNROLL                rows of the filter that are written out; its columns always are
 */
#define OUT_X (BLOCK_X * TILE_X)
#define OUT_Y (BLOCK_Y * TILE_Y)
#define HELD_X (OUT_X + FILTER_W - 1)
#define HELD_Y (OUT_Y + FILTER_H - 1)
#define STRIDE (HELD_X + PAD)
#define THREADS (BLOCK_X * BLOCK_Y)

constexpr int rows_at_once = UNROLL; /* a pragma's macro is not replaced by every preprocessor */

static __device__ __forceinline__ float value(const float *from)
{
    return READ_ONLY ? __ldg(from) : *from;
}

/* Zero outside the image: such a pixel belongs to an output that is not written. */
static __device__ __forceinline__ float pixel(const float *image, int y, int x, int height, int width)
{
    return y < height && x < width ? value(image + (size_t)y * width + x) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    convolution(const float *__restrict__ image, const float *__restrict__ filter, float *__restrict__ out,
                int out_height, int out_width)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float *held = reinterpret_cast<float *>(shared_memory);
    float *held_filter = held + (IMAGE_SHARED ? HELD_Y * STRIDE : 0);

    int height = out_height + FILTER_H - 1, width = out_width + FILTER_W - 1;
    int top = blockIdx.y * OUT_Y, left = blockIdx.x * OUT_X;
    int tx = threadIdx.x, ty = threadIdx.y, thread = ty * BLOCK_X + tx;

    if (FILTER_SHARED)
        for (int i = thread; i < FILTER_H * FILTER_W; i += THREADS)
            held_filter[i] = value(filter + i);
    if (IMAGE_SHARED)
        for (int y = ty; y < HELD_Y; y += BLOCK_Y)
            for (int x = tx; x < HELD_X; x += BLOCK_X)
                held[y * STRIDE + x] = pixel(image, top + y, left + x, height, width);
    if (IMAGE_SHARED || FILTER_SHARED)
        __syncthreads();

    float sum[TILE_Y][TILE_X] = {};
#pragma unroll rows_at_once
    for (int i = 0; i < FILTER_H; i++)
#pragma unroll
        for (int j = 0; j < FILTER_W; j++) {
            int at = i * FILTER_W + j;
            float weight = FILTER_SHARED ? held_filter[at] : value(filter + at);
#pragma unroll
            for (int v = 0; v < TILE_Y; v++)
#pragma unroll
                for (int u = 0; u < TILE_X; u++) {
                    int y = ty + v * BLOCK_Y + i, x = tx + u * BLOCK_X + j;
                    float read = IMAGE_SHARED ? held[y * STRIDE + x] : pixel(image, top + y, left + x, height, width);
                    sum[v][u] += read * weight;
                }
        }

#pragma unroll
    for (int v = 0; v < TILE_Y; v++)
#pragma unroll
        for (int u = 0; u < TILE_X; u++) {
            int y = top + ty + v * BLOCK_Y, x = left + tx + u * BLOCK_X;
            if (y < out_height && x < out_width)
                out[(size_t)y * out_width + x] = sum[v][u];
        }
}
