/* request.h - what comes in over HTTP, taken apart and judged: path, query, Host, Origin, cookie, token.
 * Pure functions over texts: no socket, no clock, no state; anything may be in them (tests/fuzz/fuzz_request.c). */
#pragma once

#include "base/base.h"

#define TARGET_MAX_BYTES 4096
#define TARGET_MAX_SEGMENTS 8
#define TARGET_MAX_QUERY 16

/* "/api/v1/studies/my%20study?x=1" decoded; the texts live in `text`. */
struct target {
    char *text; /* owned */
    size_t n_segments;
    const char *segments[TARGET_MAX_SEGMENTS];
    size_t n_query;
    struct {
        const char *key, *value; /* "" without '=' */
    } query[TARGET_MAX_QUERY];
};

/* ST_USAGE, or ST_LIMIT when too long: no leading '/', a bad escape, control characters, invalid UTF-8, "." and "..",
 * empty segments, a parameter twice, too many. "/" has no segments. */
enum status target_parse(struct target *ret_target, const char *raw, struct error *err) MUST_USE;
void target_free(struct target *target); /* a zeroed one is fine */
const char *target_query(const struct target *target, const char *key); /* NULL when absent */

/* Whole values of the query; absent: *ret_value is left as it is. ST_USAGE names the parameter. */
enum status target_i64(const struct target *target, const char *key, int64_t min, int64_t max, int64_t *ret_value,
                       struct error *err) MUST_USE;
enum status target_f64(const struct target *target, const char *key, double *ret_value, struct error *err) MUST_USE;
enum status target_bool(const struct target *target, const char *key, bool *ret_value, struct error *err) MUST_USE;
/* Is the word in a list like "a,b,c"? */
bool list_has(const char *list, const char *word);

/* "name", "name:80", "[::1]:80" against loopback names, the names given (n) and the port; NULL host: false. any_host:
 * only the form is looked at. */
bool host_is_allowed(const char *host, const char *const *names, size_t n_names);
/* Is a request that changes something from one of our own pages? origin and fetch_site may be NULL; host: its Host. */
bool origin_is_own(const char *origin, const char *fetch_site, const char *host);
/* The value of a cookie in a Cookie header, copied to ret_value (size); false when absent or longer. */
bool cookie_find(const char *header, const char *name, char *ret_value, size_t size);
/* In a time that depends on the lengths alone. */
bool token_equal(const char *a, const char *b);
/* Does an Accept-Encoding header allow gzip? */
bool accepts_gzip(const char *header);
/* Does an If-None-Match header hold this entity tag (with its quotes)? Weak ones match. */
bool etag_matches(const char *header, const char *etag);
