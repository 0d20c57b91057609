/* A matrix product whose register tile is chosen at compile time: the least seconds of some runs, on stdout.
 * ROWS, COLUMNS: of the tile; STEPS: of the inner loop in one. */
#include <stdio.h>
#include <time.h>

enum { M = 96, N = 192, K = 128, RUNS = 9 };

static float a[M * K], b[K * N], c[M * N];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void whole_tile(int row, int column)
{
    float sums[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sums[i][j] = 0;
    for (int k = 0; k < K; k += STEPS)
        for (int step = k; step < k + STEPS; step++)
            for (int i = 0; i < ROWS; i++) {
                float left = a[(row + i) * K + step];
                for (int j = 0; j < COLUMNS; j++)
                    sums[i][j] += left * b[step * N + column + j];
            }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            c[(row + i) * N + column + j] = sums[i][j];
}

static void rest(int row, int column, int rows, int columns)
{
    for (int i = row; i < row + rows; i++)
        for (int j = column; j < column + columns; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * N + j];
            c[i * N + j] = sum;
        }
}

int main(void)
{
    for (int i = 0; i < M * K; i++)
        a[i] = i % 7;
    for (int i = 0; i < K * N; i++)
        b[i] = i % 5;
    double least = 1e9;
    for (int run = 0; run < RUNS; run++) {
        double began = now();
        for (int row = 0; row < M; row += ROWS)
            for (int column = 0; column < N; column += COLUMNS) {
                int rows = M - row < ROWS ? M - row : ROWS, columns = N - column < COLUMNS ? N - column : COLUMNS;
                if (rows == ROWS && columns == COLUMNS)
                    whole_tile(row, column);
                else
                    rest(row, column, rows, columns);
            }
        double took = now() - began;
        least = took < least ? took : least;
    }
    printf("%.9f %g\n", least, c[17]);
    return 0;
}
