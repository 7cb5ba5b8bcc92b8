/* wasm_libc.h - what games and trawl_policy.h take of the C library, for a page: memory is a block that only grows,
 * text and mathematics are the page's (wasm.js). A header of each standard name includes it. */
#ifndef WEB_WASM_LIBC_H
#define WEB_WASM_LIBC_H

#include <stdarg.h>
#include <stddef.h>

typedef struct wasm_file FILE; /* a page has no files: fopen gives none */
#define SEEK_SET 0
#define SEEK_END 2
#define HUGE_VAL __builtin_huge_val()
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()

static inline FILE *fopen(const char *path, const char *mode)
{
    (void)path, (void)mode;
    return NULL;
}
static inline int fseek(FILE *file, long at, int from)
{
    (void)file, (void)at, (void)from;
    return -1;
}
static inline long ftell(FILE *file)
{
    (void)file;
    return -1;
}
static inline size_t fread(void *to, size_t size, size_t n, FILE *file)
{
    (void)to, (void)size, (void)n, (void)file;
    return 0;
}
static inline int fclose(FILE *file)
{
    (void)file;
    return 0;
}

void *malloc(size_t n);
void *calloc(size_t n, size_t size);
static inline void free(void *block)
{
    (void)block;
}
void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
size_t strlen(const char *text);
int memcmp(const void *a, const void *b, size_t n);
char *strstr(const char *text, const char *part);
int strcmp(const char *a, const char *b);
int sscanf(const char *text, const char *format, ...);
int vsnprintf(char *to, size_t n, const char *format, va_list args);
int snprintf(char *to, size_t n, const char *format, ...);
void abort(void);

#define WASM_MATH1(name)                                                                                               \
    double name(double x);                                                                                             \
    float name##f(float x)
#define WASM_MATH2(name)                                                                                               \
    double name(double x, double y);                                                                                   \
    float name##f(float x, float y)
WASM_MATH1(acos);
WASM_MATH1(asin);
WASM_MATH1(atan);
WASM_MATH1(ceil);
WASM_MATH1(cos);
WASM_MATH1(exp);
WASM_MATH1(expm1);
WASM_MATH1(fabs);
WASM_MATH1(floor);
WASM_MATH1(log);
WASM_MATH1(log1p);
WASM_MATH1(rint);
WASM_MATH1(round);
WASM_MATH1(sin);
WASM_MATH1(sqrt);
WASM_MATH1(tan);
WASM_MATH1(tanh);
WASM_MATH1(trunc);
WASM_MATH2(atan2);
WASM_MATH2(copysign);
WASM_MATH2(fmax);
WASM_MATH2(fmin);
WASM_MATH2(fmod);
WASM_MATH2(pow);
#undef WASM_MATH1
#undef WASM_MATH2

#endif
