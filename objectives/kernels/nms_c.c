/* Greedy non-maximum suppression: of boxes sorted by falling score, each is kept that overlaps no kept box before it
 * by more than a limit (intersection over union). Boxes are left, top, right, bottom in float32; keep[i] becomes 0 or 1.
 *
 * Every knob is a macro, so that the compiler sees constants:
 *   BLOCK         boxes whose overlaps with all later ones are computed together, before it is known which of
 *                 the block are kept: what can be computed in parallel
 *   WORD          bits of a word of the mask in which a row of overlaps is kept (8, 16, 32, 64)
 *   EARLY_EXIT    0: all overlaps are computed; 1: none of a box that an earlier block has suppressed;
 *                 2: nor those with words whose boxes are all suppressed
 *   VECTOR        boxes compared at once (1: one by one)
 *   COLUMNS       whether the boxes are turned into columns (all lefts, all tops ...) first; vectors need that
 *   AREAS         whether the areas are computed once, and not for each pair
 *   DIVIDE        whether the ratio is computed, or the intersection held against the limit times the union
 *   THREADS       threads that share the words of a block
 *
 * The masks are the method of the GPU kernels that go back to Faster R-CNN (Ren et al., NIPS 2015).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if THREADS > 1
#include <omp.h>
#define PARALLEL _Pragma("omp parallel num_threads(THREADS)")
#define BARRIER _Pragma("omp barrier")
#define SINGLE _Pragma("omp single")
#define THREAD omp_get_thread_num()
#define TEAM omp_get_num_threads()
#else
#define PARALLEL
#define BARRIER
#define SINGLE
#define THREAD 0
#define TEAM 1
#endif

#define UNROLLED _Pragma("GCC unroll 64")
#define PASTE(a, b, c) a##b##c
#define WORD_TYPE(bits) PASTE(uint, bits, _t)

typedef WORD_TYPE(WORD) word;
typedef float vector __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(VECTOR * 4)));

typedef struct {
    const float *left, *top, *right, *bottom, *area;
    long step; /* from one box to the next; areas lie side by side */
    float limit;
    int count, words;
    word *suppressed, *mask; /* a bit a box; BLOCK rows of words */
} problem;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

/* -- one pair, and VECTOR pairs ---------------------------------------------------------------- */

static inline float area_of(const problem *p, long i)
{
    long at = i * p->step;
    return AREAS ? p->area[i] : (p->right[at] - p->left[at]) * (p->bottom[at] - p->top[at]);
}

static inline word overlaps(const problem *p, int first, int second)
{
    long i = first * p->step, j = second * p->step;
    float left = p->left[i] > p->left[j] ? p->left[i] : p->left[j];
    float top = p->top[i] > p->top[j] ? p->top[i] : p->top[j];
    float right = p->right[i] < p->right[j] ? p->right[i] : p->right[j];
    float bottom = p->bottom[i] < p->bottom[j] ? p->bottom[i] : p->bottom[j];
    float shared = (right > left ? right - left : 0) * (bottom > top ? bottom - top : 0);
    float either = area_of(p, first) + area_of(p, second) - shared;
    return DIVIDE ? shared / either > p->limit : shared > p->limit * either;
}

#if VECTOR == 16 && defined(__AVX512DQ__)
static inline vector least(vector a, vector b) { return (vector)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vector most(vector a, vector b) { return (vector)_mm512_max_ps((__m512)a, (__m512)b); }
static inline word signs(lanes x) { return _mm512_movepi32_mask((__m512i)x); }
#elif VECTOR == 8 && defined(__AVX__)
static inline vector least(vector a, vector b) { return (vector)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vector most(vector a, vector b) { return (vector)_mm256_max_ps((__m256)a, (__m256)b); }
static inline word signs(lanes x) { return _mm256_movemask_ps((__m256)x); }
#elif VECTOR == 4 && defined(__SSE__)
static inline vector least(vector a, vector b) { return (vector)_mm_min_ps((__m128)a, (__m128)b); }
static inline vector most(vector a, vector b) { return (vector)_mm_max_ps((__m128)a, (__m128)b); }
static inline word signs(lanes x) { return _mm_movemask_ps((__m128)x); }
#else
static inline vector choose(lanes first, vector a, vector b)
{
    return (vector)((first & (lanes)a) | (~first & (lanes)b));
}
static inline vector least(vector a, vector b) { return choose(a < b, a, b); }
static inline vector most(vector a, vector b) { return choose(a > b, a, b); }
/* Bit n is the sign of lane n. */
static inline word signs(lanes x)
{
    word bits = 0;
    UNROLLED for (int n = 0; n < VECTOR; n++) bits |= (word)(x[n] < 0) << n;
    return bits;
}
#endif

/* Box i against VECTOR boxes from j on, in columns: a bit each. */
static inline word overlaps_from(const problem *p, long i, long j)
{
#define LOAD(column) (*(const vector *)(p->column + j))
    vector zero = {}, left = LOAD(left), top = LOAD(top), right = LOAD(right), bottom = LOAD(bottom);
    vector areas = (right - left) * (bottom - top);
    if (AREAS)
        areas = LOAD(area);
    vector width = least(zero + p->right[i], right) - most(zero + p->left[i], left);
    vector height = least(zero + p->bottom[i], bottom) - most(zero + p->top[i], top);
    vector shared = most(width, zero) * most(height, zero), either = area_of(p, i) + areas - shared;
    return signs(DIVIDE ? shared / either > p->limit : shared > either * p->limit);
}

/* -- rows of the mask -------------------------------------------------------------------------- */

/* Which boxes of word w overlap box i. Bits of boxes up to i say nothing: what becomes of those is decided. */
static inline __attribute__((always_inline)) word row_word(const problem *p, int i, int w)
{
    int begin = w * WORD, first = larger(begin, i + 1), last = smaller(begin + WORD, p->count);
    word bits = 0;
    if (VECTOR == 1) {
        for (int j = first; j < last; j++)
            bits |= overlaps(p, i, j) << (j - begin);
        return bits;
    }
    /* The columns go on to the end of their last word, with boxes that overlap nothing. */
    UNROLLED for (int v = 0; v < WORD; v += VECTOR) bits |= overlaps_from(p, i, begin + v) << v;
    return bits;
}

static inline int is_suppressed(const problem *p, int i) { return p->suppressed[i / WORD] >> i % WORD & 1; }

static inline int may_skip(const problem *p, int w) { return EARLY_EXIT == 2 && p->suppressed[w] == (word)~(word)0; }

/* Each kept box suppresses what it overlaps before the next is looked at. */
static void one_by_one(const problem *p, uint8_t *keep)
{
    for (int i = 0; i < p->count; i++) {
        keep[i] = !is_suppressed(p, i);
        if (EARLY_EXIT && !keep[i])
            continue;
        for (int w = (i + 1) / WORD; w < p->words; w++) {
            word bits = may_skip(p, w) ? 0 : row_word(p, i, w);
            p->suppressed[w] |= keep[i] ? bits : 0;
        }
    }
}

/* The block's overlaps, in words `begin`..`end`. */
static void fill_mask(const problem *p, int first, int last, int begin, int end)
{
    for (int i = first; i < last; i++) {
        if (EARLY_EXIT && is_suppressed(p, i))
            continue;
        word *row = p->mask + (long)(i - first) * p->words;
        for (int w = larger(begin, (i + 1) / WORD); w < end; w++)
            row[w] = may_skip(p, w) ? 0 : row_word(p, i, w);
    }
}

/* Which boxes of the block are kept: in their order, each suppresses later ones of the block. */
static void resolve(const problem *p, int first, int last, uint8_t *keep)
{
    for (int i = first; i < last; i++) {
        const word *row = p->mask + (long)(i - first) * p->words;
        keep[i] = !is_suppressed(p, i);
        for (int w = (i + 1) / WORD; keep[i] && w <= (last - 1) / WORD; w++)
            p->suppressed[w] |= row[w];
    }
}

/* What the kept boxes of the block suppress, in words `begin`..`end`. */
static void suppress(const problem *p, int first, int last, int begin, int end, const uint8_t *keep)
{
    for (int i = first; i < last; i++) {
        const word *row = p->mask + (long)(i - first) * p->words;
        for (int w = larger(begin, (i + 1) / WORD); keep[i] && w < end; w++)
            p->suppressed[w] |= row[w];
    }
}

static void block_by_block(const problem *p, uint8_t *keep)
{
    PARALLEL
    for (int first = 0; first < p->count; first += BLOCK) {
        int last = smaller(first + BLOCK, p->count), done = first / WORD, left = p->words - done;
        int begin = done + (long)left * THREAD / TEAM, end = done + (long)left * (THREAD + 1) / TEAM;
        fill_mask(p, first, last, begin, end);
        BARRIER
        SINGLE resolve(p, first, last, keep); /* the others wait at its end */
        suppress(p, first, last, begin, end, keep);
        BARRIER
    }
}

/* -- columns, and memory kept from call to call ------------------------------------------------ */

static char *memory;
static size_t memory_size;

static char *at_least(size_t size)
{
    if (size > memory_size) {
        free(memory);
        memory = aligned_alloc(64, (size + 63) / 64 * 64);
        memory_size = memory ? size : 0;
        if (!memory)
            abort();
    }
    return memory;
}

void nms(const float *boxes, uint8_t *keep, int count, float limit)
{
    int words = (count + WORD - 1) / WORD, padded = words * WORD;
    size_t columns = 5 * (size_t)padded * sizeof(float), row = words * sizeof(word);
    char *at = at_least(columns + (BLOCK + 1) * row);
    float *column = (float *)at, *area = column + 4 * (size_t)padded;
    problem p = {boxes, boxes + 1, boxes + 2, boxes + 3, area, 4, limit, count, words,
                 (word *)(at + columns), (word *)(at + columns) + words};

    memset(p.suppressed, 0, row);
    if (AREAS)
        for (int i = 0; i < padded; i++)
            area[i] = i < count ? (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]) : 0;
    if (COLUMNS) {
        for (int i = 0; i < padded; i++)
            for (int side = 0; side < 4; side++)
                column[side * (long)padded + i] = i < count ? boxes[4 * i + side] : 0;
        p.left = column, p.top = column + padded, p.right = p.top + padded, p.bottom = p.right + padded, p.step = 1;
    }
    if (BLOCK == 1)
        one_by_one(&p, keep);
    else
        block_by_block(&p, keep);
}
