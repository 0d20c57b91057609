/* Greedy non-maximum suppression: of boxes by falling score, each stays that no better one that stays overlaps.
 *
 * First every pair is compared, and one bit says whether the better box would suppress the other; then one block
 * goes through the boxes in order, a word of bits at a time. (The division of work is that of the widely used GPU
 * version in Faster R-CNN, Ren et al., NIPS 2015.)
 *
 *   WORD               bits of a word: 32 or 64
 *   ROWS               boxes that a block of the first kernel has on its left side: its threads
 *   TILE               boxes of a thread there, ROWS apart
 *   COLUMNS_SHARED     1: the boxes on the right side are copied to shared memory first
 *   SKIP               1: blocks without any pair in order end at once
 *   UNROLL             pairs that are written out
 *   WALKERS            threads of the second kernel
 *
 * Boxes are (x1, y1, x2, y2). A box is suppressed where intersection > threshold * union, in float32.
 */
#if WORD == 64
typedef unsigned long long word;
#else
typedef unsigned int word;
#endif

constexpr int pairs_at_once = UNROLL; /* a pragma's macro is not replaced by every preprocessor */

static __device__ __forceinline__ bool overlaps(float4 a, float4 b, float threshold)
{
    float width = fmaxf(fminf(a.z, b.z) - fmaxf(a.x, b.x), 0.0f);
    float height = fmaxf(fminf(a.w, b.w) - fmaxf(a.y, b.y), 0.0f);
    float intersection = width * height;
    float either = (a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - intersection;
    return intersection > threshold * either;
}

/* Bit j of mask[i][w]: box i suppresses box w * WORD + j, where that is a worse one. Words whose boxes are all
 * better ones are not written where SKIP is set, and never read. */
extern "C" __global__ void __launch_bounds__(ROWS)
    nms_compare(const float4 *__restrict__ boxes, word *__restrict__ mask, int count, float threshold)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float4 *held = reinterpret_cast<float4 *>(shared_memory);
    int words = (count + WORD - 1) / WORD;
    int row = blockIdx.y * ROWS * TILE, column = blockIdx.x * WORD;
    if (SKIP && column + WORD <= row)
        return; /* the whole block, before any barrier */

    if (COLUMNS_SHARED) {
        for (int j = threadIdx.x; j < WORD && column + j < count; j += ROWS)
            held[j] = boxes[column + j];
        __syncthreads();
    }
    for (int tile = 0; tile < TILE; tile++) {
        int i = row + tile * ROWS + threadIdx.x;
        if (i >= count)
            break;
        float4 box = boxes[i];
        word bits = 0;
#pragma unroll pairs_at_once
        for (int j = 0; j < WORD; j++)
            if (column + j > i && column + j < count &&
                overlaps(box, COLUMNS_SHARED ? held[j] : boxes[column + j], threshold))
                bits |= (word)1 << j;
        mask[(size_t)i * words + blockIdx.x] = bits;
    }
}

/* kept[i] is 1 where box i stays, else 0. One block; shared memory: a word for each word of boxes, and WORD + 1. */
extern "C" __global__ void __launch_bounds__(WALKERS)
    nms_walk(const word *__restrict__ mask, int *__restrict__ kept, int count)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    int words = (count + WORD - 1) / WORD;
    word *gone = reinterpret_cast<word *>(shared_memory), *within = gone + words, *staying = within + WORD;

    for (int w = threadIdx.x; w < words; w += WALKERS)
        gone[w] = 0;
    for (int w = 0; w < words; w++) {
        int first = w * WORD, boxes = min(WORD, count - first);
        for (int j = threadIdx.x; j < boxes; j += WALKERS)
            within[j] = mask[(size_t)(first + j) * words + w];
        __syncthreads();
        if (threadIdx.x == 0) {
            word dead = gone[w], stay = 0;
            for (int j = 0; j < boxes; j++)
                if (!(dead >> j & 1)) {
                    stay |= (word)1 << j;
                    dead |= within[j];
                }
            *staying = stay;
        }
        __syncthreads();
        word stay = *staying;
        for (int j = threadIdx.x; j < boxes; j += WALKERS)
            kept[first + j] = (int)(stay >> j & 1);
        for (int later = w + 1 + threadIdx.x; later < words; later += WALKERS) {
            word bits = gone[later];
            for (int j = 0; j < boxes; j++)
                if (stay >> j & 1)
                    bits |= mask[(size_t)(first + j) * words + later];
            gone[later] = bits;
        }
    }
}
