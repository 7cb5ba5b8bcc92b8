/* play_child.c - the page's end of the pipes to `trawl env play` (sweep/cmd/env/env_play.c).
 *   child: {"width": 140, "height": 280}          once it has opened the checkpoint
 *   page:  an empty line                           the next decision, please
 *   child: {"draw": [...], "step": 1, ...}         the fields of struct player_frame */
#include "web/serve/play_child.h"

#include "base/text/json.h"
#include "envs/plugin/child.h"

struct play_child {
    struct child child;
    double width, height, open_s, step_s;
    char checkpoint[];
};

static enum status next_json(struct play_child *c, double timeout_s, cJSON **ret_json, struct error *err)
{
    const char *line = child_line(&c->child, timeout_s);

    if (line == NULL)
        return child_fail(&c->child, c->checkpoint, "play", timeout_s, err);
    return json_parse(line, strlen(line), ret_json, err);
}

static enum status open_child(struct play_child *c, int64_t seed, bool greedy, int stop_fd, struct error *err)
{
    char text[32];
    char *argv[] = {"trawl", "env", "play", c->checkpoint, "--seed", text, greedy ? "--greedy" : NULL, NULL};
    JSON_LOCAL cJSON *json = NULL;

    snprintf(text, sizeof text, "%lld", (long long)seed);
    TRY(child_start(&c->child, argv, err));
    c->child.stop = stop_fd;
    TRY(next_json(c, c->open_s, &json, err));
    (void)json_get_f64(json, "width", &c->width);
    (void)json_get_f64(json, "height", &c->height);
    return ST_OK;
}

enum status play_child_open(struct play_child **ret_child, const char *checkpoint, int64_t seed, bool greedy,
                            double open_s, double step_s, int stop_fd, struct error *err)
{
    struct play_child *c = mem_alloc(sizeof *c + strlen(checkpoint) + 1);

    memcpy(c->checkpoint, checkpoint, strlen(checkpoint) + 1);
    c->open_s = open_s;
    c->step_s = step_s;
    enum status rc = open_child(c, seed, greedy, stop_fd, err);
    if (rc != ST_OK) {
        play_child_close(c);
        c = NULL;
    }
    *ret_child = c;
    return rc;
}

void play_child_close(struct play_child *c)
{
    if (c == NULL)
        return;
    child_end(&c->child);
    mem_free(c);
}

void play_child_size(const struct play_child *c, double *ret_width, double *ret_height)
{
    *ret_width = c->width;
    *ret_height = c->height;
}

enum status play_child_step(struct play_child *c, struct strbuf *draw, struct player_frame *ret_frame,
                            struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;

    *ret_frame = (struct player_frame){0};
    if (!child_send(&c->child, "\n"))
        return child_fail(&c->child, c->checkpoint, "play", c->step_s, err);
    TRY(next_json(c, c->step_s, &json, err));
    (void)json_get_i64(json, "step", &ret_frame->step);
    (void)json_get_i64(json, "episode", &ret_frame->episode);
    (void)json_get_f64(json, "reward", &ret_frame->reward);
    (void)json_get_f64(json, "ep_return", &ret_frame->ep_return);
    (void)json_get_bool(json, "ended", &ret_frame->ended);
    (void)json_get_f64(json, "score", &ret_frame->score);
    (void)json_get_f64(json, "perf", &ret_frame->perf);
    (void)json_get_f64(json, "ep_length", &ret_frame->ep_length);
    const cJSON *shapes = json_get(json, "draw");
    if (cJSON_IsArray(shapes)) {
        MEM_LOCAL char *text = json_print(shapes, false);
        strbuf_add(draw, text);
    }
    return strbuf_status(draw, "a picture", err);
}
