/* seen.c - the distinct points of a history, snapped and sorted, so that "was this tried?" is a binary search.
 * Invariant: rows are strictly rising in dictionary order. */
#include "gp/gp_priv.h"

static int compare(const double *a, const double *b, size_t dim)
{
    for (size_t i = 0; i < dim; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int compare_rows(const void *a, const void *b, void *dim)
{
    return compare(a, b, *(const size_t *)dim);
}

void seen_create(struct seen *ret_seen, const struct space *space, const struct gp_history *history)
{
    size_t dim = space->dim;
    *ret_seen = (struct seen){.dim = dim};
    double *x = mem_array2(history->n, dim, sizeof *x);
    for (size_t i = 0; i < history->n; i++) {
        memcpy(x + i * dim, history->trials[i].x, dim * sizeof *x);
        space_snap(space, x + i * dim);
    }
    qsort_r(x, history->n, dim * sizeof *x, compare_rows, &dim);
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) {
        if (n > 0 && compare(x + (n - 1) * dim, x + i * dim, dim) == 0)
            continue;
        if (n < i)
            memcpy(x + n * dim, x + i * dim, dim * sizeof *x);
        n++;
    }
    ret_seen->x = x;
    ret_seen->n = n;
}

void seen_free(struct seen *seen)
{
    mem_free(seen->x);
    *seen = (struct seen){0};
}

bool seen_has(const struct seen *seen, const double *x)
{
    size_t lo = 0, hi = seen->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare(seen->x + mid * seen->dim, x, seen->dim);
        if (c == 0)
            return true;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return false;
}
