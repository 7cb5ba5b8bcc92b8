/* wandb_settings.c - reads W&B's settings from [track], then the environment, then ./wandb/settings and
 * ~/.config/wandb/settings, and the key from netrc too. No message holds the key. */
#include "web/track/wandb.h"

#include <strings.h>

#define PUBLIC_URL "https://api.wandb.ai"
#define RUN_ID_MAX 128
#define KEY_LENGTH_MIN 40

/* The first value among Trawl's option, the variable and the settings files. Returns its origin for messages; NULL: not
 * set. */
static const char *find(const char *ours, const char *our_name, const char *name, const char *file_key, char *ret,
                        size_t size)
{
    const char *home = track_env("HOME"), *value = track_env(name);
    char path[1024];

    ret[0] = '\0';
    if (ours != NULL && ours[0] != '\0') {
        snprintf(ret, size, "%s", ours);
        return our_name;
    }
    if (value != NULL) {
        snprintf(ret, size, "%s", value);
        return name;
    }
    if (file_key != NULL && track_ini_value("wandb/settings", "default", file_key, ret, size))
        return "wandb/settings";
    snprintf(path, sizeof path, "%s/.config/wandb/settings", home != NULL ? home : "");
    if (file_key != NULL && home != NULL && track_ini_value(path, "default", file_key, ret, size))
        return "~/.config/wandb/settings";
    return NULL;
}

static enum status read_mode(struct wandb_settings *s, struct error *err)
{
    static const struct {
        const char *word;
        enum track_mode mode;
    } words[] = {{"online", TRACK_ONLINE},   {"run", TRACK_ONLINE},     {"shared", TRACK_ONLINE},
                 {"offline", TRACK_OFFLINE}, {"dryrun", TRACK_OFFLINE}, {"disabled", TRACK_DISABLED}};
    const char *mode = track_env("WANDB_MODE");

    s->mode = TRACK_ONLINE;
    for (size_t i = 0; mode != NULL && i < COUNT(words); i++)
        if (strcasecmp(mode, words[i].word) == 0) {
            s->mode = words[i].mode;
            return ST_OK;
        }
    return mode == NULL ? ST_OK
                        : FAIL(err, ST_CONFIG, "WANDB_MODE is '%s'; online, offline or disabled are allowed", mode);
}

static enum status read_urls(const struct track_settings *track, struct wandb_settings *s, struct error *err)
{
    char url[OPT_STR_MAX];
    const char *origin = find(track->wandb_url, "track.wandb_url", "WANDB_BASE_URL", "base_url", url, sizeof url);
    const char *host, *app = track_env("WANDB_APP_URL");

    if (origin == NULL)
        snprintf(url, sizeof url, PUBLIC_URL);
    if (http_url_has_secret(url))
        return FAIL(err, ST_CONFIG, "%s holds a password or a token; W&B's key belongs into WANDB_API_KEY or netrc",
                    origin != NULL ? origin : "the address");
    TRY(http_url_check(url, origin != NULL ? origin : "W&B", s->base_url, sizeof s->base_url, err));
    host = strstr(s->base_url, "://") + 3;
    size_t n = strcspn(host, ":/");
    if (n > 9 && strncasecmp(host + n - 9, ".wandb.ai", 9) == 0) {
        if (strncasecmp(s->base_url, "https://", 8) != 0 || strncasecmp(host, "api.", 4) != 0)
            return FAIL(err, ST_CONFIG, "%s is %s; W&B's own address begins with https://api.", origin, s->base_url);
        snprintf(s->app_url, sizeof s->app_url, "https://%.*s", (int)strcspn(host + 4, "/"), host + 4);
    } else {
        snprintf(s->app_url, sizeof s->app_url, "%s", s->base_url);
    }
    if (app != NULL)
        return http_url_check(app, "WANDB_APP_URL", s->app_url, sizeof s->app_url, err);
    return ST_OK;
}

static enum status check_key(const struct wandb_settings *s, struct error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *key = s->api_key;
    size_t n = strlen(key);

    if (key[strspn(key, plain)] != '\0')
        return FAIL(err, ST_CONFIG,
                    "wandb: the API key from %s holds a blank, a quote or a line's end; copy it again from W&B's "
                    "settings page",
                    s->key_source);
    if (n < KEY_LENGTH_MIN)
        return FAIL(err, ST_CONFIG, "wandb: the API key from %s has %zu characters, it must have %d or more",
                    s->key_source, n, KEY_LENGTH_MIN);
    return ST_OK;
}

static enum status read_key(struct wandb_settings *s, struct error *err)
{
    const char *key = track_env("WANDB_API_KEY"), *host = strstr(s->base_url, "://") + 3;
    char machine[OPT_STR_MAX], login[WANDB_NAME_MAX];

    snprintf(machine, sizeof machine, "%.*s", (int)strcspn(host, "/"), host);
    if (key != NULL) {
        s->key_source = "WANDB_API_KEY";
        if (strlen(key) >= sizeof s->api_key)
            return FAIL(err, ST_CONFIG, "wandb: the API key from WANDB_API_KEY is too long");
        snprintf(s->api_key, sizeof s->api_key, "%s", key);
        return check_key(s, err);
    }
    if (track_env("WANDB_IDENTITY_TOKEN_FILE") != NULL)
        return FAIL(err, ST_CONFIG,
                    "wandb: WANDB_IDENTITY_TOKEN_FILE is not supported; give an API key (WANDB_API_KEY)");
    if (netrc_find(machine, login, sizeof login, s->api_key, sizeof s->api_key)) {
        s->key_source = "netrc";
        return check_key(s, err);
    }
    if (s->mode != TRACK_ONLINE)
        return ST_OK;
    return FAIL(err, ST_CONFIG,
                "wandb: no API key; set WANDB_API_KEY, or put 'machine %s login user password KEY' into "
                "~/.netrc (`wandb login` does), or use --track.offline true and `trawl sync` later",
                machine);
}

static enum status check_project(const struct wandb_settings *s, const char *origin, struct error *err)
{
    if (strlen(s->project) > 128 || strpbrk(s->project, "/\\#?%:") != NULL)
        return FAIL(err, ST_CONFIG,
                    "%s: a W&B project has up to 128 characters and none of / \\ # ? %% : ('%.140s' is given)",
                    origin != NULL ? origin : "track.project", s->project);
    return ST_OK;
}

/* For a single training: runs of a sweep have their own ids and names. */
static enum status read_run(struct wandb_settings *s, struct error *err)
{
    const char *resume = track_env("WANDB_RESUME");

    (void)find(NULL, NULL, "WANDB_RUN_ID", NULL, s->run_id, sizeof s->run_id);
    (void)find(NULL, NULL, "WANDB_NAME", NULL, s->run_name, sizeof s->run_name);
    (void)find(NULL, NULL, "WANDB_RUN_GROUP", NULL, s->run_group, sizeof s->run_group);
    if (s->run_id[strcspn(s->run_id, ":;,#?/'")] != '\0' || strlen(s->run_id) > RUN_ID_MAX)
        return FAIL(err, ST_CONFIG, "WANDB_RUN_ID is '%.140s': up to %d characters, none of : ; , # ? / '", s->run_id,
                    RUN_ID_MAX);
    if (resume == NULL || strcmp(resume, "allow") == 0 || strcmp(resume, "auto") == 0)
        s->resume = WANDB_RESUME_ALLOW;
    else if (strcmp(resume, "must") == 0)
        s->resume = WANDB_RESUME_MUST;
    else if (strcmp(resume, "never") == 0)
        s->resume = WANDB_RESUME_NEVER;
    else
        return FAIL(err, ST_CONFIG, "WANDB_RESUME is '%.40s'; allow, must, never or auto are allowed", resume);
    return ST_OK;
}

static void read_proxy(struct wandb_settings *s)
{
    bool tls = strncasecmp(s->base_url, "https", 5) == 0;
    const char *proxy = track_env(tls ? "WANDB_HTTPS_PROXY" : "WANDB_HTTP_PROXY");

    snprintf(s->proxy, sizeof s->proxy, "%s", proxy != NULL ? proxy : "");
}

enum status wandb_settings_read(const struct track_settings *track, struct wandb_settings *s, struct error *err)
{
    const char *timeout = track_env("WANDB_HTTP_TIMEOUT"), *insecure = track_env("WANDB_INSECURE_DISABLE_SSL"), *origin;

    *s = (struct wandb_settings){.timeout_s = 30, .stream_timeout_s = 60};
    TRY(read_mode(s, err));
    TRY(read_urls(track, s, err));
    origin = find(track->project, "track.project", "WANDB_PROJECT", "project", s->project, sizeof s->project);
    if (origin == NULL)
        snprintf(s->project, sizeof s->project, "trawl");
    TRY(check_project(s, origin, err));
    (void)find(track->entity, "track.entity", "WANDB_ENTITY", "entity", s->entity, sizeof s->entity);
    (void)find(track->notes, "track.notes", "WANDB_NOTES", NULL, s->notes, sizeof s->notes);
    if (find(NULL, NULL, "WANDB_JOB_TYPE", NULL, s->job_type, sizeof s->job_type) == NULL)
        snprintf(s->job_type, sizeof s->job_type, "train");
    s->env_tags = track_env("WANDB_TAGS");
    (void)find(NULL, NULL, "WANDB_USERNAME", NULL, s->username, sizeof s->username);
    (void)find(NULL, NULL, "WANDB_USER_EMAIL", NULL, s->email, sizeof s->email);
    if (timeout != NULL && (!num_parse_f64(timeout, &s->timeout_s) || s->timeout_s <= 0))
        return FAIL(err, ST_CONFIG, "WANDB_HTTP_TIMEOUT is '%s', seconds are needed", timeout);
    if (timeout != NULL)
        s->stream_timeout_s = s->timeout_s;
    s->insecure = insecure != NULL && (strcasecmp(insecure, "true") == 0 || strcmp(insecure, "1") == 0);
    TRY(read_run(s, err));
    read_proxy(s);
    return read_key(s, err);
}
