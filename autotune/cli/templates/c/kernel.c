/* What is tuned: the transpose of an n x n matrix, in tiles. TILE and UNROLL are the knobs. */
#define TEXT(x) #x
#define UNROLL_BY(n) _Pragma(TEXT(GCC unroll n))

void transpose(const float *in, float *out, int n)
{
    for (int i0 = 0; i0 < n; i0 += TILE)
        for (int j0 = 0; j0 < n; j0 += TILE)
            for (int i = i0; i < (i0 + TILE < n ? i0 + TILE : n); i++) {
                int end = j0 + TILE < n ? j0 + TILE : n;
                UNROLL_BY(UNROLL)
                for (int j = j0; j < end; j++)
                    out[(long)j * n + i] = in[(long)i * n + j];
            }
}
