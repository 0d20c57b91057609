/* Heat in a plate, step by step, as in Rodinia's hotspot: each cell of a height x width grid of float32 becomes
 *
 *     centre * t + (up + down) * v + (left + right) * h + power * p + ambient
 *
 * with the coefficients in `c`, in that order. A cell outside the grid is as warm as the border cell beside it.
 *
 * Every knob is a macro, so that the compiler sees constants:
 *   WAVEFRONT     0: tiles; each is taken DEPTH steps ahead, with a halo that is computed by its neighbours too
 *                 1: strips; the steps follow each other down a strip, each a row behind the one before
 *   DEPTH         steps in one pass over the grid
 *   TILE_H/W      outputs of a tile; a strip has TILE_W columns
 *   ROWS          rows computed together: rows that are loaded serve several
 *   VECTOR        floats in a vector
 *   UNROLL        vectors of a row that are written out
 *
 * The trapezoids of a tile are the overlapped tiling of Krishnamoorthy et al., "Effective automatic
 * parallelization of stencil computations" (PLDI 2007); the strips are the wavefront of Wellein et al.,
 * "Efficient temporal blocking for stencil computations by multicore-aware wavefront parallelization"
 * (COMPSAC 2009), on one core.
 */
#include <stdlib.h>

#define UNROLLED _Pragma("GCC unroll 32")
#define RING (ROWS + 2)                       /* a step needs the row above and the row below its own */
#define PLANES (WAVEFRONT ? DEPTH + 1 : 2)    /* buffers between the first and the last step of a pass */
#define PLANE_ROWS (WAVEFRONT ? RING : TILE_H + 2 * DEPTH)
/* Rows begin on lines, and a row not at the same place in a page as the one before: loads that look like
 * what was just stored would wait for it. */
#define LINE 16
#define ALIGNED(x) ((x) / LINE * LINE)
#define STRIDE (ALIGNED(TILE_W + 2 * DEPTH + LINE - 1) + 3 * LINE)

/* Alignment 4: a row may start anywhere. */
typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));

/* Rows of one step: `at` is where column `left` of row `top` lies, or would. */
typedef struct {
    float *at;
    int top, left, rows; /* rows: how many there are before they are used again; 0: as many as needed */
    long stride;
} plane;

typedef struct {
    const float *power, *c;
    int height, width;
} plate;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static inline float *row_of(const plane *p, int y)
{
    int row = y - p->top;
    return p->at + (p->rows ? row % p->rows : row) * p->stride - p->left;
}

#define LOAD(row, x) (*(const vector *)((row) + (x)))

static inline float cell(const float *up, const float *in, const float *down, const float *power, const float *c,
                         int x, int left, int right)
{
    return in[x] * c[0] + ((up[x] + down[x]) * c[1] + ((in[left] + in[right]) * c[2] + (power[x] * c[3] + c[4])));
}

/* Columns x0..x1 of `count` rows from y on: `in` holds count + 2 rows, the first of them above y. */
static inline __attribute__((always_inline)) void
compute_rows(const plate *on, float *const in[], float *const out[], int count, int y, int x0, int x1)
{
    /* Copies, since what is stored may be anything, `on` included, for all that the compiler knows. */
    int width = on->width, first = larger(x0, 1), last = smaller(x1, width - 1);
    const float *c = on->c, *power = on->power + (long)y * width;
    float c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];

#define CELL(r, x, left, right) \
    (out[r][x] = cell(in[r], in[(r) + 1], in[(r) + 2], power + (long)(r)*width, c, x, left, right))
#define VECTORS(x, vectors)                                                                          \
    UNROLLED for (int u = 0; u < (vectors); u++)                                                     \
    {                                                                                                \
        int at = (x) + u * VECTOR;                                                                   \
        vector up = LOAD(in[0], at), centre = LOAD(in[1], at);                                       \
        UNROLLED for (int r = 0; r < count; r++)                                                     \
        {                                                                                            \
            vector down = LOAD(in[r + 2], at);                                                       \
            vector sides = LOAD(in[r + 1], at - 1) + LOAD(in[r + 1], at + 1);                        \
            vector warm = LOAD(power + (long)r * width, at) * c3 + c4;                               \
            warm = centre * c0 + ((up + down) * c1 + (sides * c2 + warm));                           \
            *(vector *)(out[r] + at) = warm;                                                         \
            up = centre, centre = down;                                                              \
        }                                                                                            \
    }

    if (x0 == 0)
        for (int r = 0; r < count; r++)
            CELL(r, 0, 0, smaller(1, width - 1));
    if (last - first >= VECTOR) {
        VECTORS(first, 1); /* up to where the rows of this file's own buffers are aligned */
        int x = (first / VECTOR + 1) * VECTOR;
        for (; x + UNROLL * VECTOR <= last; x += UNROLL * VECTOR)
            VECTORS(x, UNROLL);
        for (; x + VECTOR <= last; x += VECTOR)
            VECTORS(x, 1);
        if (x < last) /* the last vector is moved back: some cells are computed twice, to the same values */
            VECTORS(last - VECTOR, 1);
    } else {
        for (int r = 0; r < count; r++)
            for (int x = first; x < last; x++)
                CELL(r, x, x - 1, x + 1);
    }
    if (x1 == width && width > 1)
        for (int r = 0; r < count; r++)
            CELL(r, width - 1, width - 2, width - 1);
}

/* Rows y0..y1 and columns x0..x1, one step on from `from` to `to`. */
static void step(const plate *on, const plane *from, const plane *to, int y0, int y1, int x0, int x1)
{
    float *in[ROWS + 2], *out[ROWS];
    for (int y = y0; y < y1; y += ROWS) {
        int count = smaller(ROWS, y1 - y);
        for (int r = 0; r < count + 2; r++)
            in[r] = row_of(from, larger(0, smaller(on->height - 1, y + r - 1)));
        for (int r = 0; r < count; r++)
            out[r] = row_of(to, y + r);
        if (count == ROWS)
            compute_rows(on, in, out, ROWS, y, x0, x1);
        else
            for (int r = 0; r < count; r++)
                compute_rows(on, in + r, out + r, 1, y + r, x0, x1);
    }
}

/* The rectangle y0..y1, x0..x1 of the grid, `depth` steps on: each step needs a cell less on every side. */
static void tile(const plate *on, const plane *source, const plane *target, plane *between, int depth, int y0,
                 int y1, int x0, int x1)
{
    for (int i = 0; i < 2; i++)
        between[i].top = larger(0, y0 - depth), between[i].left = ALIGNED(larger(0, x0 - depth));
    for (int s = 1; s <= depth; s++) {
        int halo = depth - s;
        const plane *from = s == 1 ? source : &between[(s - 1) % 2], *to = s == depth ? target : &between[s % 2];
        step(on, from, to, larger(0, y0 - halo), smaller(on->height, y1 + halo), larger(0, x0 - halo),
             smaller(on->width, x1 + halo));
    }
}

/* The columns x0..x1 of the grid, `depth` steps on: step s computes its rows s - 1 rows behind the first. */
static void strip(const plate *on, const plane *source, const plane *target, plane *between, int depth, int x0,
                  int x1)
{
    for (int s = 1; s < depth; s++)
        between[s].left = ALIGNED(larger(0, x0 - depth));
    for (int y = 0; y - (depth - 1) < on->height; y += ROWS)
        for (int s = 1; s <= depth; s++) {
            int halo = depth - s, begin = y - (s - 1);
            step(on, s == 1 ? source : &between[s - 1], s == depth ? target : &between[s], larger(0, begin),
                 smaller(on->height, begin + ROWS), larger(0, x0 - halo), smaller(on->width, x1 + halo));
        }
}

/* One pass over the grid: `depth` steps. */
static void pass(const plate *on, const float *in, float *out, float *buffer, int depth)
{
    plane source = {(float *)in, 0, 0, 0, on->width}, target = {out, 0, 0, 0, on->width};
    plane between[PLANES];
    for (int s = 0; s < PLANES; s++)
        between[s] = (plane){buffer + (long)s * PLANE_ROWS * STRIDE, 0, 0, WAVEFRONT ? RING : 0, STRIDE};
    for (int x = 0; x < on->width; x += TILE_W) {
        int right = smaller(on->width, x + TILE_W);
        if (WAVEFRONT)
            strip(on, &source, &target, between, depth, x, right);
        else
            for (int y = 0; y < on->height; y += TILE_H)
                tile(on, &source, &target, between, depth, y, smaller(on->height, y + TILE_H), x, right);
    }
}

static float *scratch;
static size_t scratch_size;

/* So many floats, kept from call to call. */
static float *at_least(size_t size)
{
    if (size > scratch_size) {
        free(scratch);
        scratch = aligned_alloc(64, (size * sizeof *scratch + 63) / 64 * 64);
        scratch_size = scratch ? size : 0;
        if (!scratch)
            abort();
    }
    return scratch;
}

void stencil(const float *heat, const float *power, const float *c, float *out, int height, int width, int steps)
{
    plate on = {power, c, height, width};
    long cells = ALIGNED((long)height * width + LINE - 1);
    float *other = at_least(cells + (long)PLANES * PLANE_ROWS * STRIDE), *buffer = other + cells;
    int passes = (steps + DEPTH - 1) / DEPTH;
    const float *from = heat;
    for (int p = 1; p <= passes; p++) {
        float *to = (passes - p) % 2 ? other : out; /* the last one writes the output */
        pass(&on, from, to, buffer, smaller(DEPTH, steps));
        steps -= DEPTH;
        from = to;
    }
}
