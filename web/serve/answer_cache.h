/* answer_cache.h - finished answers, kept by address for one version of the data.
 * An answer is counted by its references: answer_create, cache_find and cache_keep hold one each, answer_release gives
 * one back; nothing changes it once it is in the cache. The cache has a lock of its own and may be used by any thread.
 * A full cache keeps less; that is not a failure. */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

struct strbuf;

struct answer { /* immutable once in the cache */
    atomic_int refs;
    int status;
    const char *type; /* static */
    char *disposition, *location, *cookie; /* headers; owned or NULL */
    char *bytes, *gzip; /* owned; gzip NULL when not worth it */
    size_t n, n_gzip;
    char etag[24]; /* with quotes; "" none */
    const char *csp; /* static; NULL: that of the pages */
    bool no_store;
    int64_t version; /* that it was made from; 0: not kept */
};
struct answer *answer_create(int status, const char *type);
void answer_release(struct answer *answer); /* NULL is fine */
/* Takes the text; gzips it when worth it, and gives it an entity tag. */
enum status answer_finish(struct answer *answer, struct strbuf *body, struct error *err) MUST_USE;

struct cache {
    pthread_mutex_t lock;
    struct cache_entry *entries; /* (CACHE_ENTRIES) */
    size_t bytes;
    int64_t tick;
};
void cache_init(struct cache *cache);
void cache_free(struct cache *cache);
struct answer *cache_find(struct cache *cache, const char *key, int64_t version); /* a reference, or NULL */
void cache_keep(struct cache *cache, const char *key, struct answer *answer);
