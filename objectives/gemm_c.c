/* C = A * B for row-major float32 matrices of any shape, blocked for cache and tiled for registers.
 *
 * Every knob is a macro, so that the compiler sees constants:
 *   TILE_M        rows of the register tile
 *   TILE_V        vectors in a row of the register tile
 *   VECTOR        floats in a vector
 *   BLOCK_M/N/K   cache block, in elements
 *   UNROLL        steps of the innermost loop over k that are written out
 *   PREFETCH      how many k steps ahead the packed B panel is prefetched (0: not)
 *   PACK_A/B      whether the block is copied to a contiguous buffer first
 *   OUTER, MIDDLE, INNER   which of 'i', 'j', 'k' each loop over blocks runs over
 *
 * The method is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
 * (ACM TOMS 34(3), 2008): pack blocks of A and B, and let a register tile run over them.
 */
#include <string.h>

#define TILE_N (TILE_V * VECTOR)
#define ROUND_UP(x, to) (((x) + (to)-1) / (to) * (to))

/* Alignment 4: rows of C and of an unpacked B may start anywhere. */
typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

static float packed_a[ROUND_UP(BLOCK_M, TILE_M) * BLOCK_K] __attribute__((aligned(64)));
static float packed_b[ROUND_UP(BLOCK_N, TILE_N) * BLOCK_K] __attribute__((aligned(64)));

static int smaller(int a, int b) { return a < b ? a : b; }

/* Panels of TILE_M rows, k outermost within a panel; rows past the end are zero. */
static void pack_a(const float *a, int lda, int rows, int depth)
{
    float *to = packed_a;
    for (int i0 = 0; i0 < rows; i0 += TILE_M)
        for (int p = 0; p < depth; p++)
            for (int i = 0; i < TILE_M; i++)
                *to++ = i0 + i < rows ? a[(long)(i0 + i) * lda + p] : 0.0f;
}

/* One panel of TILE_N columns; columns past the end are zero. */
static void pack_b_panel(const float *b, int ldb, int columns, int depth, float *to)
{
    for (int p = 0; p < depth; p++, to += TILE_N) {
        memcpy(to, b + (long)p * ldb, columns * sizeof *to);
        if (columns < TILE_N)
            memset(to + columns, 0, (TILE_N - columns) * sizeof *to);
    }
}

static void pack_b(const float *b, int ldb, int columns, int depth)
{
    for (int j0 = 0; j0 < columns; j0 += TILE_N)
        pack_b_panel(b + j0, ldb, smaller(TILE_N, columns - j0), depth, packed_b + (long)j0 * depth);
}

/* C[rows x columns] += A panel * B panel; a_row and a_step are the strides of A in i and in k. */
static inline __attribute__((always_inline)) void
register_tile(const float *a, long a_row, long a_step, const float *b, long b_step,
              float *c, int ldc, int rows, int columns, int depth)
{
    vector sum[TILE_M][TILE_V] = {};
    const float *row[TILE_M];
    /* Rows past the end repeat the last one: they are read, never written. */
    for (int i = 0; i < TILE_M; i++)
        row[i] = a + (PACK_A ? i : smaller(i, rows - 1)) * a_row;

    int p = 0;
#define STEP(p)                                                                     \
    do {                                                                            \
        if (PREFETCH)                                                               \
            __builtin_prefetch(b + ((p) + PREFETCH) * b_step);                      \
        vector right[TILE_V];                                                       \
        _Pragma("GCC unroll 32") for (int v = 0; v < TILE_V; v++)                   \
            right[v] = *(const vector *)(b + (p)*b_step + v * VECTOR);              \
        _Pragma("GCC unroll 32") for (int i = 0; i < TILE_M; i++)                   \
        {                                                                           \
            float left = row[i][(p)*a_step];                                        \
            _Pragma("GCC unroll 32") for (int v = 0; v < TILE_V; v++)               \
                sum[i][v] += left * right[v];                                       \
        }                                                                           \
    } while (0)

    for (; p + UNROLL <= depth; p += UNROLL)
        _Pragma("GCC unroll 32") for (int u = 0; u < UNROLL; u++) STEP(p + u);
    for (; p < depth; p++)
        STEP(p);

    if (rows == TILE_M && columns == TILE_N) {
        _Pragma("GCC unroll 32") for (int i = 0; i < TILE_M; i++)
            _Pragma("GCC unroll 32") for (int v = 0; v < TILE_V; v++)
                *(vector *)(c + (long)i * ldc + v * VECTOR) += sum[i][v];
    } else {
        float edge[TILE_M][TILE_N];
        memcpy(edge, sum, sizeof edge);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                c[(long)i * ldc + j] += edge[i][j];
    }
}

/* C block += A block * B block; the blocks are packed already where that is asked for. */
static void multiply_block(const float *a, int lda, const float *b, int ldb, float *c, int ldc,
                           int rows, int columns, int depth)
{
    for (int j = 0; j < columns; j += TILE_N) {
        int width = smaller(TILE_N, columns - j);
        const float *panel = PACK_B ? packed_b + (long)j * depth : b + j;
        long b_step = PACK_B ? TILE_N : ldb;
        if (!PACK_B && width < TILE_N) { /* reading past the end of a row is not allowed */
            pack_b_panel(b + j, ldb, width, depth, packed_b);
            panel = packed_b;
            b_step = TILE_N;
        }
        for (int i = 0; i < rows; i += TILE_M) {
            int height = smaller(TILE_M, rows - i);
            if (PACK_A)
                register_tile(packed_a + (long)i * depth, 1, TILE_M, panel, b_step,
                              c + (long)i * ldc + j, ldc, height, width, depth);
            else
                register_tile(a + (long)i * lda, lda, 1, panel, b_step,
                              c + (long)i * ldc + j, ldc, height, width, depth);
        }
    }
}

void gemm(const float *a, const float *b, float *c, int m, int n, int k)
{
    int at['k' + 1], extent['k' + 1], block['k' + 1];
    extent['i'] = m, extent['j'] = n, extent['k'] = k;
    block['i'] = BLOCK_M, block['j'] = BLOCK_N, block['k'] = BLOCK_K;
    int a_packed_i = -1, a_packed_k = -1, b_packed_j = -1, b_packed_k = -1;

    memset(c, 0, (size_t)m * n * sizeof *c);
    for (at[OUTER] = 0; at[OUTER] < extent[OUTER]; at[OUTER] += block[OUTER])
        for (at[MIDDLE] = 0; at[MIDDLE] < extent[MIDDLE]; at[MIDDLE] += block[MIDDLE])
            for (at[INNER] = 0; at[INNER] < extent[INNER]; at[INNER] += block[INNER]) {
                int i = at['i'], j = at['j'], p = at['k'];
                int rows = smaller(BLOCK_M, m - i), columns = smaller(BLOCK_N, n - j);
                int depth = smaller(BLOCK_K, k - p);
                if (PACK_A && (i != a_packed_i || p != a_packed_k)) {
                    pack_a(a + (long)i * k + p, k, rows, depth);
                    a_packed_i = i, a_packed_k = p;
                }
                if (PACK_B && (j != b_packed_j || p != b_packed_k)) {
                    pack_b(b + (long)p * n + j, n, columns, depth);
                    b_packed_j = j, b_packed_k = p;
                }
                multiply_block(a + (long)i * k + p, k, b + (long)p * n + j, n,
                               c + (long)i * n + j, n, rows, columns, depth);
            }
}
