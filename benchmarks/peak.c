/* What one core of this machine reaches: multiply-adds in registers, and a + 2 * b over arrays of a size. */
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define SUMS 20 /* more than the units hold in flight, fewer than there are registers */

typedef float vector __attribute__((vector_size(LANES * 4)));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* Operations a second, the best of so many tries. */
void peak_operations(double *out, int tries)
{
    vector sum[SUMS] = {}, zero = {}, factor = zero + 1.0001f, term = zero + 0.5f;
    const long steps = 200000;
    for (int try = 0; try < tries; try++) {
        double start = now();
        for (long step = 0; step < steps; step++) {
            _Pragma("GCC unroll 32") for (int n = 0; n < SUMS; n++) sum[n] = sum[n] * factor + term;
        }
        double rate = 2.0 * LANES * SUMS * steps / (now() - start);
        *out = rate > *out ? rate : *out;
    }
    for (int n = 0; n < SUMS; n++) /* so that none of it is left out */
        __asm__ volatile("" : : "m"(sum[n]));
}

/* Bytes a second of three arrays of so many floats each, the best of so many tries. */
void peak_bandwidth(double *out, int count, int tries)
{
    float *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b), *c = calloc(count, sizeof *c);
    for (int i = 0; i < count; i++)
        a[i] = b[i] = c[i] = 1;
    for (int try = 0; try < tries; try++) {
        double start = now();
        for (int i = 0; i < count; i++)
            c[i] = a[i] + 2 * b[i];
        double rate = 12.0 * count / (now() - start);
        __asm__ volatile("" : : "r"(c) : "memory");
        *out = rate > *out ? rate : *out;
    }
    free(a), free(b), free(c);
}
