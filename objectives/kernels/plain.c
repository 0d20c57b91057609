/* The kernels as a C programmer writes them, for gcc -O3 to make of them what it can: baselines, not tuned. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the output are sums of shifted rows of the image: the inner loop has no test and no reduction. */
void plain_convolution(const float *image, const float *filter, float *out, int height, int width, int fh, int fw)
{
    for (int y = 0; y < height; y++) {
        float *restrict to = out + (long)y * width;
        memset(to, 0, width * sizeof *to);
        for (int i = 0; i < fh; i++) {
            int row = y + i - fh / 2;
            if (row < 0 || row >= height)
                continue;
            for (int j = 0; j < fw; j++) {
                int shift = j - fw / 2;
                int first = shift < 0 ? -shift : 0, last = shift > 0 ? width - shift : width;
                const float *restrict from = image + (long)row * width + shift;
                float weight = filter[i * fw + j];
                for (int x = first; x < last; x++)
                    to[x] += weight * from[x];
            }
        }
    }
}

/* A sweep over the grid for each step, from one array to another; border cells apart. */
void plain_stencil(const float *heat, const float *power, const float *c, float *out, int height, int width, int steps)
{
    size_t bytes = (size_t)height * width * sizeof *out;
    float *spare = malloc(bytes), c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];
    const float *from = heat;
    for (int s = 1; s <= steps; s++) {
        float *to = (steps - s) % 2 ? spare : out;
        for (int y = 0; y < height; y++) {
            const float *in = from + (long)y * width, *heating = power + (long)y * width;
            const float *up = y ? in - width : in, *down = y + 1 < height ? in + width : in;
            float *restrict row = to + (long)y * width;
            for (int x = 1; x < width - 1; x++)
                row[x] = in[x] * c0 + (up[x] + down[x]) * c1 + (in[x - 1] + in[x + 1]) * c2 + heating[x] * c3 + c4;
            for (int x = 0; x < width; x += width > 1 ? width - 1 : 1) {
                float left = in[x ? x - 1 : x], right = in[x + 1 < width ? x + 1 : x];
                row[x] = in[x] * c0 + (up[x] + down[x]) * c1 + (left + right) * c2 + heating[x] * c3 + c4;
            }
        }
        from = to;
    }
    free(spare);
}

/* Each kept box goes over the later ones that are still there. */
void plain_nms(const float *boxes, uint8_t *keep, int count, float limit)
{
    float *areas = malloc((count + 1) * sizeof *areas);
    for (int i = 0; i < count; i++) {
        areas[i] = (boxes[4 * i + 2] - boxes[4 * i]) * (boxes[4 * i + 3] - boxes[4 * i + 1]);
        keep[i] = 1;
    }
    for (int i = 0; i < count; i++) {
        const float *a = boxes + 4 * i;
        if (!keep[i])
            continue;
        for (int j = i + 1; j < count; j++) {
            const float *b = boxes + 4 * j;
            if (!keep[j])
                continue;
            float left = a[0] > b[0] ? a[0] : b[0], top = a[1] > b[1] ? a[1] : b[1];
            float right = a[2] < b[2] ? a[2] : b[2], bottom = a[3] < b[3] ? a[3] : b[3];
            if (right <= left || bottom <= top)
                continue;
            float shared = (right - left) * (bottom - top);
            if (shared / (areas[i] + areas[j] - shared) > limit)
                keep[j] = 0;
        }
    }
    free(areas);
}

/* The keys halved until the first that is not smaller is left. */
void plain_look_up(const uint64_t *keys, const uint64_t *queries, int32_t *places, int n, int count)
{
    for (int i = 0; i < count; i++) {
        int low = 0, high = n;
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (keys[middle] < queries[i])
                low = middle + 1;
            else
                high = middle;
        }
        places[i] = low;
    }
}
