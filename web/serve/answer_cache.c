/* answer_cache.c - answers with their gzip and entity tag, kept by address for the version of the data they were made
 * from.
 *
 * Invariants: (1) an answer never changes once it is in the cache; its sender holds a reference; (2) all answers
 * in the cache together are at most CACHE_BYTES, the longest unused leave first; (3) one that was made from an older
 * version is never given. */
#include "web/serve/answer_cache.h"

#include "base/hash.h"

#include <microhttpd.h>
#include <zlib.h>

#define CACHE_ENTRIES 128
#define CACHE_BYTES (64u << 20)
#define GZIP_MIN 512 /* bytes below which it is not worth it */
#define GZIP_LEVEL 4

struct cache_entry {
    char *key; /* owned; NULL: free */
    struct answer *answer; /* a reference */
    int64_t used;
};

struct answer *answer_create(int status, const char *type)
{
    struct answer *a = mem_alloc(sizeof *a);

    atomic_init(&a->refs, 1);
    a->status = status;
    a->type = type;
    return a;
}

void answer_release(struct answer *a)
{
    if (a == NULL || atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    mem_free(a->disposition);
    mem_free(a->location);
    mem_free(a->cookie);
    mem_free(a->bytes);
    mem_free(a->gzip);
    mem_free(a);
}

/* Bytes as one gzip member; *ret is NULL when that is no shorter. */
static enum status pack(const char *bytes, size_t n, char **ret, size_t *ret_n, struct error *err)
{
    z_stream z = {0};

    *ret = NULL;
    *ret_n = 0;
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return FAIL(err, ST_NOMEM, "no memory to compress an answer");
    size_t bound = deflateBound(&z, (uLong)n);
    char *out = mem_alloc(bound);
    z.next_in = (Bytef *)(void *)(uintptr_t)bytes;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)bound;
    int rc = deflate(&z, Z_FINISH);
    *ret_n = z.total_out;
    deflateEnd(&z);
    if (rc != Z_STREAM_END || *ret_n >= n) {
        mem_free(out);
        return rc == Z_STREAM_END ? ST_OK : FAIL(err, ST_INTERNAL, "zlib did not compress an answer (%d)", rc);
    }
    char *fit = mem_alloc(*ret_n);
    memcpy(fit, out, *ret_n);
    mem_free(out);
    *ret = fit;
    return ST_OK;
}

enum status answer_finish(struct answer *a, struct strbuf *body, struct error *err)
{
    TRY(strbuf_status(body, "an answer", err));
    a->n = body->len;
    a->bytes = strbuf_take(body);
    if (a->status == MHD_HTTP_OK)
        snprintf(a->etag, sizeof a->etag, "\"%016llx\"", (unsigned long long)hash_bytes(HASH_START, a->bytes, a->n));
    if (a->n < GZIP_MIN)
        return ST_OK;
    return pack(a->bytes, a->n, &a->gzip, &a->n_gzip, err);
}

void cache_init(struct cache *cache)
{
    *cache = (struct cache){.entries = mem_array(CACHE_ENTRIES, sizeof(struct cache_entry))};
    pthread_mutex_init(&cache->lock, NULL);
}

static void drop(struct cache *cache, struct cache_entry *e)
{
    if (e->key == NULL)
        return;
    cache->bytes -= e->answer->n + e->answer->n_gzip;
    mem_free(e->key);
    answer_release(e->answer);
    *e = (struct cache_entry){0};
}

void cache_free(struct cache *cache)
{
    if (cache->entries == NULL)
        return;
    for (size_t i = 0; i < CACHE_ENTRIES; i++)
        drop(cache, &cache->entries[i]);
    mem_free(cache->entries);
    cache->entries = NULL;
    pthread_mutex_destroy(&cache->lock);
}

struct answer *cache_find(struct cache *cache, const char *key, int64_t version)
{
    struct answer *found = NULL;

    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < CACHE_ENTRIES && found == NULL; i++) {
        struct cache_entry *e = &cache->entries[i];
        if (e->key == NULL || e->answer->version != version || strcmp(e->key, key) != 0)
            continue;
        e->used = ++cache->tick;
        found = e->answer;
        atomic_fetch_add(&found->refs, 1);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

/* The entry of that address, else a free one, else the longest unused. key: NULL: the longest unused. */
static struct cache_entry *place(struct cache *cache, const char *key)
{
    struct cache_entry *best = NULL;

    for (size_t i = 0; i < CACHE_ENTRIES; i++) {
        struct cache_entry *e = &cache->entries[i];
        if (key != NULL && e->key != NULL && strcmp(e->key, key) == 0)
            return e;
        if (e->key == NULL && key == NULL)
            continue;
        if (best == NULL || (best->key != NULL && (e->key == NULL || e->used < best->used)))
            best = e;
    }
    return best;
}

void cache_keep(struct cache *cache, const char *key, struct answer *answer)
{
    size_t bytes = answer->n + answer->n_gzip;

    if (answer->version == 0 || bytes > CACHE_BYTES / 4)
        return;
    char *copy = mem_strdup(key);
    pthread_mutex_lock(&cache->lock);
    drop(cache, place(cache, key));
    while (cache->bytes + bytes > CACHE_BYTES)
        drop(cache, place(cache, NULL));
    struct cache_entry *e = place(cache, key);
    atomic_fetch_add(&answer->refs, 1);
    *e = (struct cache_entry){copy, answer, ++cache->tick};
    cache->bytes += bytes;
    pthread_mutex_unlock(&cache->lock);
}
