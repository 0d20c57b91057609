/* out[y][x] = sum over i, j of filter[i][j] * image[y + i - fh / 2][x + j - fw / 2], in float32, zero outside
 * the image: a 2D convolution as neural networks mean it, for an image and a filter of any size.
 *
 * Every knob is a macro, so that the compiler sees constants:
 *   TILE_H        rows of the register tile
 *   TILE_V        vectors in a row of the register tile
 *   VECTOR        floats in a vector
 *   BLOCK_H/W     block of outputs whose inputs are to stay in a cache
 *   PAD           0: borders are computed one by one, with a test for each term
 *                 1: the image is copied between borders of zeros first
 *                 2: each block's part of it is, into a small buffer
 *   REUSE         whether a row of the image is loaded once for all rows of the register tile
 *   UNROLL        columns of the filter that are written out
 *   FILTER_H/W    the filter's size where it is compiled in, else 0
 */
#include <stdlib.h>
#include <string.h>

#define TILE_W (TILE_V * VECTOR)
#define UNROLLED _Pragma("GCC unroll 32")

/* Alignment 4: a window of the image may start anywhere. */
typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

/* One output, with a test for each term. */
static float one(const float *image, int height, int width, const float *filter, int fh, int fw, int y, int x)
{
    float sum = 0;
    for (int i = 0; i < fh; i++)
        for (int j = 0; j < fw; j++) {
            int row = y + i - fh / 2, column = x + j - fw / 2;
            if (row >= 0 && row < height && column >= 0 && column < width)
                sum += filter[i * fw + j] * image[(long)row * width + column];
        }
    return sum;
}

static void one_by_one(const float *image, int height, int width, const float *filter, int fh, int fw,
                       float *out, int y0, int y1, int x0, int x1)
{
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            out[(long)y * width + x] = one(image, height, width, filter, fh, fw, y, x);
}

/* What rows i..i + TILE_H of the filter make of one row of the image, for all rows of the register tile. */
static inline __attribute__((always_inline)) void
add_row(vector sum[TILE_H][TILE_V], const float *in, const float *filter, int fw, int first, int last, int row)
{
    int j = 0;
#define COLUMN(j)                                                           \
    do {                                                                    \
        vector right[TILE_V];                                               \
        UNROLLED for (int v = 0; v < TILE_V; v++)                           \
            right[v] = *(const vector *)(in + (j) + v * VECTOR);            \
        UNROLLED for (int r = 0; r < TILE_H; r++)                           \
            if (r >= first && r <= last) {                                  \
                float left = filter[(row - r) * fw + (j)];                  \
                UNROLLED for (int v = 0; v < TILE_V; v++)                   \
                    sum[r][v] += left * right[v];                           \
            }                                                               \
    } while (0)

    for (; j + UNROLL <= fw; j += UNROLL)
        UNROLLED for (int u = 0; u < UNROLL; u++) COLUMN(j + u);
    for (; j < fw; j++)
        COLUMN(j);
}

/* TILE_H x TILE_W outputs; `in` is the input under the filter's first term for the first of them. */
static inline __attribute__((always_inline)) void
register_tile(const float *in, long stride, const float *filter, int fh, int fw, float *out, long out_stride)
{
    vector sum[TILE_H][TILE_V] = {};
    if (REUSE) {
        /* The first and the last rows are under the filter for some rows of the tile only. */
        int row = 0;
        for (; row < TILE_H - 1; row++)
            add_row(sum, in + row * stride, filter, fw, larger(0, row - fh + 1), row, row);
        for (; row < fh; row++)
            add_row(sum, in + row * stride, filter, fw, 0, TILE_H - 1, row);
        for (; row < fh + TILE_H - 1; row++)
            add_row(sum, in + row * stride, filter, fw, row - fh + 1, TILE_H - 1, row);
    } else {
        for (int i = 0; i < fh; i++)
            UNROLLED for (int r = 0; r < TILE_H; r++)
                add_row(sum, in + (i + r) * stride, filter, fw, r, r, i + r);
    }
    UNROLLED for (int r = 0; r < TILE_H; r++)
        UNROLLED for (int v = 0; v < TILE_V; v++)
            *(vector *)(out + r * out_stride + v * VECTOR) = sum[r][v];
}

/* A block that is smaller than a tile. */
static void small_block(const float *in, long stride, const float *filter, int fh, int fw, float *out,
                        long out_stride, int rows, int columns)
{
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            float sum = 0;
            for (int i = 0; i < fh; i++)
                for (int j = 0; j < fw; j++)
                    sum += filter[i * fw + j] * in[(y + i) * stride + x + j];
            out[y * out_stride + x] = sum;
        }
}

/* Where a tile or block begins that may not reach past the end: it is moved back, but not before the first.
 * Some outputs are then computed twice, to the same values. */
static int begin(int at, int first, int end, int tile) { return larger(first, smaller(at, end - tile)); }

/* rows x columns outputs all of whose inputs are there. */
static inline __attribute__((always_inline)) void
block(const float *in, long stride, const float *filter, int fh, int fw, float *out, long out_stride, int rows,
      int columns)
{
    if (rows < TILE_H || columns < TILE_W) {
        small_block(in, stride, filter, fh, fw, out, out_stride, rows, columns);
        return;
    }
    for (int y = 0; y < rows; y += TILE_H)
        for (int x = 0; x < columns; x += TILE_W) {
            long top = begin(y, 0, rows, TILE_H), left = begin(x, 0, columns, TILE_W);
            register_tile(in + top * stride + left, stride, filter, fh, fw,
                          out + top * out_stride + left, out_stride);
        }
}

static float *buffer;
static size_t buffer_size;

/* A buffer of at least so many floats, kept from call to call. */
static float *at_least(size_t size)
{
    if (size > buffer_size) {
        free(buffer);
        buffer = aligned_alloc(64, (size * sizeof *buffer + 63) / 64 * 64);
        buffer_size = buffer ? size : 0;
        if (!buffer)
            abort();
    }
    return buffer;
}

/* Rows and columns from (y0, x0) of the image, as if there were zeros all around it. */
static void copy_padded(const float *image, int height, int width, int y0, int x0, int rows, int columns, float *to)
{
    int left = smaller(columns, larger(0, -x0)), right = larger(left, smaller(columns, width - x0));
    for (int y = 0; y < rows; y++, to += columns) {
        int row = y0 + y;
        if (row < 0 || row >= height) {
            memset(to, 0, columns * sizeof *to);
            continue;
        }
        memset(to, 0, left * sizeof *to);
        memcpy(to + left, image + (long)row * width + x0 + left, (right - left) * sizeof *to);
        memset(to + right, 0, (columns - right) * sizeof *to);
    }
}

/* All outputs of rows y0..y1 and columns x0..x1; `in` is the input under the filter's first term for (0, 0). */
static inline __attribute__((always_inline)) void
blocks(const float *in, long stride, const float *filter, int fh, int fw, float *out, int width, int y0, int y1,
       int x0, int x1)
{
    for (int y = y0; y < y1; y += BLOCK_H)
        for (int x = x0; x < x1; x += BLOCK_W) {
            long top = begin(y, y0, y1, TILE_H), left = begin(x, x0, x1, TILE_W);
            block(in + top * stride + left, stride, filter, fh, fw, out + top * width + left, width,
                  smaller(BLOCK_H, y1 - top), smaller(BLOCK_W, x1 - left));
        }
}

static void pad_image(const float *image, const float *filter, float *out, int height, int width, int fh, int fw)
{
    int rows = height + fh - 1, columns = width + fw - 1;
    float *padded = at_least((size_t)rows * columns);
    copy_padded(image, height, width, -(fh / 2), -(fw / 2), rows, columns, padded);
    blocks(padded, columns, filter, fh, fw, out, width, 0, height, 0, width);
}

static void pad_blocks(const float *image, const float *filter, float *out, int height, int width, int fh, int fw)
{
    float *padded = at_least((size_t)(BLOCK_H + fh - 1) * (BLOCK_W + fw - 1));
    for (int y = 0; y < height; y += BLOCK_H)
        for (int x = 0; x < width; x += BLOCK_W) {
            int top = begin(y, 0, height, TILE_H), left = begin(x, 0, width, TILE_W);
            int rows = smaller(BLOCK_H, height - top), columns = smaller(BLOCK_W, width - left);
            int stride = columns + fw - 1;
            copy_padded(image, height, width, top - fh / 2, left - fw / 2, rows + fh - 1, stride, padded);
            block(padded, stride, filter, fh, fw, out + (long)top * width + left, width, rows, columns);
        }
}

/* Outputs from (top, left) up to (bottom, right) have all their inputs inside the image. */
static void test_borders(const float *image, const float *filter, float *out, int height, int width, int fh, int fw)
{
    int top = smaller(fh / 2, height), bottom = larger(top, height - (fh - 1 - fh / 2));
    int left = smaller(fw / 2, width), right = larger(left, width - (fw - 1 - fw / 2));
    const float *in = image - (long)(fh / 2) * width - fw / 2;
    blocks(in, width, filter, fh, fw, out, width, top, bottom, left, right);
    one_by_one(image, height, width, filter, fh, fw, out, 0, top, 0, width);
    one_by_one(image, height, width, filter, fh, fw, out, bottom, height, 0, width);
    one_by_one(image, height, width, filter, fh, fw, out, top, bottom, 0, left);
    one_by_one(image, height, width, filter, fh, fw, out, top, bottom, right, width);
}

void convolution(const float *image, const float *filter, float *out, int height, int width, int fh, int fw)
{
#if FILTER_H
    fh = FILTER_H, fw = FILTER_W;
#endif
    if (PAD == 1)
        pad_image(image, filter, out, height, width, fh, fw);
    else if (PAD == 2)
        pad_blocks(image, filter, out, height, width, fh, fw);
    else
        test_borders(image, filter, out, height, width, fh, fw);
}
