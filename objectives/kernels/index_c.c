/* Lookups in sorted keys: for each query, how many keys are smaller, which is where it is or would be.
 * What helps to find it, the index, is built once by build_index() in memory of index_bytes().
 *
 * Every knob is a macro, so that the compiler sees constants:
 *   SCHEME   BINARY: halving the keys, no index
 *            TREE: the last key of each block of WIDTH, of each block of these, and so on
 *            LEARNED: a line over all keys leads to one of 2^LEAVES lines, which says between which places to look
 *            (the recursive model index of Kraska et al., SIGMOD 2018, in two stages)
 *   GROUP    queries that are looked up side by side, so that they wait for memory together
 *   PREFETCH whether the next place of a query is asked for while the others have their turn
 *   WIDTH    keys of a block of the tree
 *   VECTOR   keys of a block that are compared at once (1: as the compiler likes)
 *   LEAVES   logarithm of the number of lines of the second stage
 *   LOGS     whether the first stage is a line over the logarithm of a key (to some bits) or over the key
 */
#include <stdint.h>
#include <string.h>

#define BINARY 0
#define TREE 1
#define LEARNED 2

typedef uint64_t key;

static inline long smaller(long a, long b) { return a < b ? a : b; }
static inline void ask_for(const void *place)
{
    if (PREFETCH)
        __builtin_prefetch(place);
}

/* Where GROUP queries are found among keys: each has a window in which its place is, and all are halved in turns. */
typedef struct {
    const key *first[GROUP];
    long length[GROUP]; /* the place is at most so far behind the first */
} windows;

static inline void halve(windows *w, const key *keys, const key *queries, int count, int32_t *places)
{
    for (long longest = 2; longest > 1;) {
        longest = 0;
        for (int g = 0; g < count; g++) {
            long half = w->length[g] / 2, rest = w->length[g] - half;
            if (half) /* not where it is found already: there may be no key behind it */
                w->first[g] += w->first[g][half - 1] < queries[g] ? half : 0;
            w->length[g] = rest;
            longest = longest > rest ? longest : rest;
            ask_for(w->first[g] + (rest > 1 ? rest / 2 - 1 : 0));
        }
    }
    for (int g = 0; g < count; g++)
        places[g] = w->first[g] - keys + (w->length[g] && *w->first[g] < queries[g]);
}

#if SCHEME == BINARY

typedef struct {
    const key *keys;
    long n;
} opened;

static opened open_index(const key *keys, long n, const void *memory) { return (opened){keys, n}; }

long index_bytes(int n) { return 0; }

void build_index(const key *keys, void *memory, int n) {}

static inline void find(const opened *in, const key *queries, int count, int32_t *places)
{
    windows w;
    for (int g = 0; g < count; g++) {
        w.first[g] = in->keys;
        w.length[g] = in->n;
    }
    halve(&w, in->keys, queries, count, places);
}

#elif SCHEME == TREE

#define MOST_LEVELS 32 /* with two keys in a block */
typedef key lanes __attribute__((vector_size(VECTOR * 8), aligned(8), may_alias));
typedef int64_t marks __attribute__((vector_size(VECTOR * 8)));

static inline long blocks_of(long n) { return (n + WIDTH - 1) / WIDTH; }

typedef struct {
    const key *level[MOST_LEVELS]; /* the keys, then the levels above them, each in whole blocks; the highest is one */
    long blocks[MOST_LEVELS];
    long n;
    int highest;
} opened;

static opened open_index(const key *keys, long n, const void *memory)
{
    opened in = {{keys}, {blocks_of(n)}, n, 0};
    const key *next = memory;
    while (in.blocks[in.highest] > 1) {
        long blocks = blocks_of(in.blocks[in.highest++]);
        in.level[in.highest] = next;
        in.blocks[in.highest] = blocks;
        next += blocks * WIDTH;
    }
    return in;
}

long index_bytes(int n)
{
    opened in = open_index(0, n, 0);
    long blocks = 0;
    for (int level = 1; level <= in.highest; level++)
        blocks += in.blocks[level];
    return blocks * WIDTH * sizeof(key);
}

void build_index(const key *keys, void *memory, int n)
{
    opened in = open_index(keys, n, memory);
    long below = n;
    for (int level = 1; level <= in.highest; level++) {
        key *to = (key *)in.level[level];
        for (long i = 0; i < in.blocks[level] * WIDTH; i++) /* what is left of the last block has the greatest key */
            to[i] = in.level[level - 1][smaller((i + 1) * WIDTH, below) - 1];
        below = in.blocks[level - 1];
    }
}

/* How many keys of a whole block are smaller. */
static inline long smaller_in(const key *block, key query)
{
#if VECTOR > 1
    lanes query_lanes = query - (lanes){0};
    marks found = {0};
    for (int i = 0; i < WIDTH; i += VECTOR)
        found -= (marks)(*(const lanes *)(block + i) < query_lanes);
    long all = 0;
    for (int i = 0; i < VECTOR; i++)
        all += found[i];
    return all;
#else
    long all = 0;
    for (int i = 0; i < WIDTH; i++)
        all += block[i] < query;
    return all;
#endif
}

static inline void find(const opened *in, const key *queries, int count, int32_t *places)
{
    if (in->n < WIDTH) {
        for (int g = 0; g < count; g++)
            for (places[g] = 0; places[g] < in->n && in->level[0][places[g]] < queries[g];)
                places[g]++;
        return;
    }
    long block[GROUP] = {0};
    for (int level = in->highest; level > 0; level--)
        for (int g = 0; g < count; g++) {
            long next = block[g] * WIDTH + smaller_in(in->level[level] + block[g] * WIDTH, queries[g]);
            block[g] = smaller(next, in->blocks[level - 1] - 1); /* past the greatest key: the last */
            ask_for(in->level[level - 1] + block[g] * WIDTH);
        }
    for (int g = 0; g < count; g++) {
        long first = smaller(block[g] * WIDTH, in->n - WIDTH); /* the last block begins earlier, and is whole */
        places[g] = first + smaller_in(in->level[0] + first, queries[g]);
    }
}

#else

#define LINES (1L << LEAVES)

/* From the least key of a line on, so many places a key; how far a place is before that and behind it at most. */
typedef struct {
    key least;
    float slope;
    int32_t first, count, before, behind;
} line;

typedef struct {
    double least, slope;
} root;

/* The bits of a double are, but for a constant, a logarithm in pieces that are lines: and they grow with the key. */
static inline double measure_of(key k)
{
    double number = (double)k;
    if (!LOGS)
        return number;
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (double)bits;
}

static inline long leaf_of(const root *r, key k)
{
    double leaf = (measure_of(k) - r->least) * r->slope;
    return leaf < 0 ? 0 : leaf < LINES ? (long)leaf : LINES - 1;
}

/* The places of the line before a key, by its own rule; it never falls as the key grows. */
static inline int32_t place_on(const line *l, key k)
{
    float place = k > l->least ? l->slope * (float)(k - l->least) : 0;
    return place < (float)l->count ? (int32_t)place : l->count;
}

typedef struct {
    const key *keys;
    const line *lines;
    root root;
} opened;

static opened open_index(const key *keys, long n, const void *memory)
{
    const line *lines = memory;
    return (opened){keys, lines, *(const root *)(lines + LINES)};
}

long index_bytes(int n) { return LINES * sizeof(line) + sizeof(root); }

void build_index(const key *keys, void *memory, int n)
{
    line *lines = memory;
    root *r = (root *)(lines + LINES);
    double range = measure_of(keys[n - 1]) - measure_of(keys[0]);
    *r = (root){measure_of(keys[0]), range > 0 ? LINES / range : 0};
    int32_t next = 0;
    for (long leaf = 0; leaf < LINES; leaf++) {
        int32_t first = next;
        while (next < n && leaf_of(r, keys[next]) == leaf)
            next++;
        line l = {next > first ? keys[first] : 0, 0, first, next - first, 0, 0};
        if (l.count > 1)
            l.slope = (float)(l.count - 1) / (float)(keys[next - 1] - l.least);
        for (int32_t i = 0; i < l.count; i++) {
            /* A key is at place i; what comes behind it and before the next one would be at place i + 1. */
            int32_t off = place_on(&l, keys[first + i]) - i;
            l.before = off > l.before ? off : l.before;
            l.behind = 1 - off > l.behind ? 1 - off : l.behind;
        }
        lines[leaf] = l;
    }
}

static inline void find(const opened *in, const key *queries, int count, int32_t *places)
{
    const line *found[GROUP];
    windows w;
    for (int g = 0; g < count; g++) {
        found[g] = in->lines + leaf_of(&in->root, queries[g]);
        ask_for(found[g]);
    }
    for (int g = 0; g < count; g++) {
        const line *l = found[g];
        long place = place_on(l, queries[g]), from = place - l->before, to = smaller(place + l->behind, l->count);
        from = from > 0 ? from : 0;
        w.first[g] = in->keys + l->first + from;
        w.length[g] = to - from;
        ask_for(w.first[g] + w.length[g] / 2);
    }
    halve(&w, in->keys, queries, count, places);
}

#endif

void look_up(const key *keys, const void *memory, const key *queries, int32_t *places, int n, int count)
{
    opened in = open_index(keys, n, memory);
    int i = 0;
    for (; i + GROUP <= count; i += GROUP)
        find(&in, queries + i, GROUP, places + i);
    if (i < count)
        find(&in, queries + i, count - i, places + i);
}
