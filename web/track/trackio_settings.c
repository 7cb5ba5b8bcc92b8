/* trackio_settings.c - address, project and token of a Trackio server, from [track] and Trackio's own variables.
 * Invariant: no message holds the token. */
#include "web/track/trackio.h"

#include <ctype.h>

/* Takes "write_token=..." out of a URL's query; any other query is an error. */
static enum status take_token(char *url, const char *origin, char *ret_token, size_t size, struct error *err)
{
    char *query = strchr(url, '?');
    static const char name[] = "write_token=";

    ret_token[0] = '\0';
    if (query == NULL)
        return ST_OK;
    if (strncmp(query + 1, name, strlen(name)) != 0 || strchr(query, '&') != NULL || strchr(query, '#') != NULL)
        return FAIL(err, ST_CONFIG, "trackio: %s has a query; only ?write_token=TOKEN may stand there", origin);
    snprintf(ret_token, size, "%s", query + 1 + strlen(name));
    *query = '\0';
    return ST_OK;
}

/* "user/space" -> "https://user-space.hf.space"; the login is Hugging Face's. */
static enum status read_space(struct trackio_settings *t, const char *space, struct error *err)
{
    const char *token = track_env("HF_TOKEN"), *slash = strchr(space, '/');
    char host[64];
    size_t n = 0;

    if (slash == NULL || strlen(space) >= sizeof host || slash == space || slash[1] == '\0')
        return FAIL(err, ST_CONFIG, "TRACKIO_SPACE_ID is '%.80s', it must be USER/SPACE", space);
    for (const char *c = space; *c != '\0'; c++)
        host[n++] = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    host[n] = '\0';
    if (token == NULL)
        return FAIL(err, ST_CONFIG, "trackio: a Space needs a Hugging Face token with the right to write in HF_TOKEN");
    snprintf(t->url, sizeof t->url, "https://%s.hf.space", host);
    snprintf(t->token, sizeof t->token, "%s", token);
    t->is_space = true;
    t->token_source = "HF_TOKEN";
    return ST_OK;
}

static enum status read_address(struct trackio_settings *t, const struct track_settings *track, struct error *err)
{
    const char *origin = track->trackio_url[0] != '\0' ? "track.trackio_url" : "TRACKIO_SERVER_URL";
    const char *from = track->trackio_url[0] != '\0' ? track->trackio_url : track_env("TRACKIO_SERVER_URL");
    const char *token = track_env("TRACKIO_WRITE_TOKEN"), *space = track_env("TRACKIO_SPACE_ID");
    char url[OPT_STR_MAX + TRACK_SECRET_MAX];

    if (from == NULL && space != NULL)
        return read_space(t, space, err);
    if (from == NULL)
        return FAIL(err, ST_CONFIG,
                    "trackio: there is no address; start `trackio show` and set TRACKIO_SERVER_URL to the address with "
                    "write access that it prints (or track.trackio_url and TRACKIO_WRITE_TOKEN)");
    if (strlen(from) >= sizeof url)
        return FAIL(err, ST_CONFIG, "trackio: %s is too long", origin);
    snprintf(url, sizeof url, "%s", from);
    enum status rc = take_token(url, origin, t->token, sizeof t->token, err);
    if (rc == ST_OK && http_url_has_secret(url))
        rc = FAIL(err, ST_CONFIG, "trackio: %s holds a login; the token belongs into TRACKIO_WRITE_TOKEN", origin);
    THEN(rc, http_url_check(url, origin, t->url, sizeof t->url, err));
    explicit_bzero(url, sizeof url);
    t->token_source = t->token[0] != '\0' ? origin : "TRACKIO_WRITE_TOKEN";
    if (rc != ST_OK || t->token[0] != '\0')
        return rc;
    if (token == NULL)
        return FAIL(
            err, ST_CONFIG,
            "trackio: there is no write token; set TRACKIO_WRITE_TOKEN to the one that the server prints when it "
            "starts (\"...?write_token=...\")");
    snprintf(t->token, sizeof t->token, "%s", token);
    return ST_OK;
}

enum status trackio_settings_read(const struct track_settings *track, struct trackio_settings *t, struct error *err)
{
    const char *project = track->project[0] != '\0' ? track->project : track_env("TRACKIO_PROJECT");
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ";

    *t = (struct trackio_settings){.token = ""};
    if (project == NULL)
        project = "trawl";
    /* The server would drop other characters silently, and two projects could become one. */
    if (strlen(project) > TRACKIO_PROJECT_MAX || project[strspn(project, plain)] != '\0')
        return FAIL(err, ST_CONFIG,
                    "trackio: a project has up to %d letters, digits, blanks, - and _ ('%.140s' is given)",
                    TRACKIO_PROJECT_MAX, project);
    snprintf(t->project, sizeof t->project, "%s", project);
    TRY(read_address(t, track, err));
    if (t->token[strcspn(t->token, " \t\r\n\"'")] != '\0')
        return FAIL(err, ST_CONFIG, "trackio: the token from %s holds a blank, a quote or a line's end",
                    t->token_source);
    return ST_OK;
}
