/* access.c - who may read: the token that every request needs, unless each user of the machine may read the store
 * anyway.
 *
 * Any user of a machine can connect to its loopback address. A store that its owner keeps to himself, by its own mode
 * or by a folder above it, would be read, and steered, by all of them. */
#include "web/serve/serve_priv.h"

#include "web/serve/request.h"

#include <sys/random.h>
#include <sys/stat.h>

enum status serve_make_token(char token[SERVE_TOKEN_MAX], struct error *err)
{
    unsigned char bytes[SERVE_TOKEN_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return FAIL(err, ST_IO, "the system gave no random numbers for a token (%s)", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return ST_OK;
}

/* May each user of this machine read the file? One that is not there yet: no. */
static bool is_public(const char *path)
{
    char at[PATH_MAX];
    struct stat st;

    if (realpath(path, at) == NULL || stat(at, &st) != 0 || (st.st_mode & S_IROTH) == 0)
        return false;
    for (char *slash = strrchr(at, '/'); slash != NULL; slash = strrchr(at, '/')) {
        *slash = '\0';
        if (stat(at[0] != '\0' ? at : "/", &st) != 0 || (st.st_mode & S_IXOTH) == 0)
            return false;
    }
    return true;
}

enum status access_set(struct serve *s, bool is_open, struct error *err)
{
    TRY(serve_make_token(s->csrf, err));
    if (is_open && s->set.no_token)
        return FAIL(err, ST_USAGE,
                    "--no-token is for the address 127.0.0.1 alone: at %s others could read the store; leave one of "
                    "both out",
                    s->set.bind);
    if (s->set.token == NULL && (s->set.no_token || (!is_open && is_public(s->set.store_path))))
        return ST_OK;
    TRY(serve_make_token(s->ticket, err));
    atomic_store(&s->has_ticket, true);
    if (s->set.token == NULL)
        return serve_make_token(s->token, err);
    if (strlen(s->set.token) < 16 || strlen(s->set.token) >= sizeof s->token)
        return FAIL(err, ST_USAGE, "the token has %zu characters; 16 to %zu are needed", strlen(s->set.token),
                    sizeof s->token - 1);
    snprintf(s->token, sizeof s->token, "%s", s->set.token);
    return ST_OK;
}

bool access_is_token(struct serve *s, const char *text)
{
    if (token_equal(s->token, text))
        return true;
    return token_equal(s->ticket, text) && atomic_exchange(&s->has_ticket, false);
}

void access_cookie_name(const struct serve *s, char *buf, size_t size)
{
    snprintf(buf, size, "trawl_%d", s->port); /* browsers share cookies between ports */
}

const char *serve_token(const struct serve *s)
{
    return s->token;
}

const char *serve_ticket(const struct serve *s)
{
    return s->ticket;
}
