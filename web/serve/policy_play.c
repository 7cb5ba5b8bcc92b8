/* policy_play.c - a trial's policy playing: the game is stepped on one CPU thread and drawn after each decision. Of an
 * environment of Gymnasium a picture is the frame that it renders, as a GIF of what differs from the one before. */
#include "web/serve/policy_play.h"

#include "base/text/base64.h"
#include "envs/gym/gym.h"
#include "envs/plugin/library.h"
#include "study/setup/setup.h"
#include "web/serve/gif_movie.h"
#include "web/serve/play_child.h"
#include "web/text/put.h"

#define GIF_MAX_BYTES (1400u << 10) /* of a frame; of noise it has some 600 KB */
#define GIF_FPS 25 /* which a picture alone has no use for */
/* A library's game. */
#define OPEN_S 20
#define STEP_S 5
/* Python has limits of its own, whose messages say where it was: it starts twice, and makes and resets one instance. */
#define PYTHON_OPEN_S 300
#define PYTHON_STEP_S 10

struct policy_play {
    struct setup *setup;
    struct kern *kern;
    struct player *player;
    struct play_child *child; /* of a game that plays elsewhere, instead of kern and player */
    struct env_picture picture; /* after the last decision; of frames its size alone */
    struct gif_movie *gif; /* of frames; NULL: it draws itself */
    struct strbuf bytes; /* what gif writes: its head, and the last frame */
    size_t head_bytes;
};

void policy_play_close(struct policy_play *p)
{
    if (p == NULL)
        return;
    play_child_close(p->child);
    gif_movie_destroy(p->gif);
    strbuf_free(&p->bytes);
    player_destroy(p->player);
    kern_close(p->kern);
    setup_destroy(p->setup);
    mem_free(p);
}

static enum status open_child(struct policy_play *p, const char *checkpoint, int64_t seed, bool greedy, int stop_fd,
                              struct error *err)
{
    const struct setup *s = p->setup;
    double open_s = OPEN_S, step_s = STEP_S;

    if (env_is_gym(s->env->name)) {
        double timeout_s = ((const struct gym_settings *)s->env_settings)->timeout_s;
        open_s = PYTHON_OPEN_S + 2 * timeout_s;
        step_s = PYTHON_STEP_S + timeout_s;
    }
    return play_child_open(&p->child, checkpoint, seed, greedy, open_s, step_s, stop_fd, err);
}

/* The size of the pictures, which frames keep. */
static enum status begin_picture(struct policy_play *p, struct error *err)
{
    const void *state = player_state(p->player);

    if (!env_is_gym(p->setup->env->name)) {
        env_draw(p->setup->env, p->setup->env_settings, state, &p->picture);
        return ST_OK;
    }
    const struct gym_frame *frame = state;
    p->picture.width = frame->width, p->picture.height = frame->height;
    strbuf_init(&p->bytes, GIF_MAX_BYTES);
    TRY(gif_movie_create(&p->gif, &p->bytes, frame->width, frame->height, GIF_FPS, err));
    p->head_bytes = p->bytes.len;
    return ST_OK;
}

static enum status open_play(struct policy_play *p, const struct trial *trial, const char *checkpoint, int64_t seed,
                             bool greedy, int stop_fd, struct error *err)
{
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = 1};

    TRY(trial_setup(trial, &p->setup, err));
    struct setup *s = p->setup;
    if (env_plays_elsewhere(s->env))
        return open_child(p, checkpoint, seed, greedy, stop_fd, err);
    const struct env_def *env = s->env;
    if (env_is_gym(env->name))
        TRY(gym_film(env->name, s->env_settings, &env, err));
    TRY(kern_open(&p->kern, &settings, err));
    s->train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    TRY(player_create(&p->player, p->kern, env, s->env_settings, &s->policy, &s->train, checkpoint, seed, greedy, err));
    return begin_picture(p, err);
}

enum status policy_play_open(struct policy_play **ret_play, const struct trial *trial, const char *checkpoint,
                             int64_t seed, bool greedy, int stop_fd, struct error *err)
{
    struct policy_play *p = mem_alloc(sizeof *p);
    enum status rc = open_play(p, trial, checkpoint, seed, greedy, stop_fd, err);

    *ret_play = NULL;
    if (rc != ST_OK) {
        policy_play_close(p);
        return rc;
    }
    *ret_play = p;
    return ST_OK;
}

const char *policy_play_env(const struct policy_play *p)
{
    return p->setup->env->name;
}

void policy_play_size(const struct policy_play *p, double *ret_width, double *ret_height)
{
    *ret_width = p->picture.width;
    *ret_height = p->picture.height;
    if (p->child != NULL)
        play_child_size(p->child, ret_width, ret_height);
}

static void put_mark(struct strbuf *out, const struct env_mark *m)
{
    static const struct {
        const char *word;
        int n;
    } kinds[] = {[ENV_RECT] = {"r", 4}, [ENV_CIRCLE] = {"c", 3}, [ENV_LINE] = {"l", 5}, [ENV_TEXT] = {"t", 3}};

    put_json(out, "[%s", kinds[m->kind].word);
    for (int i = 0; i < kinds[m->kind].n; i++)
        put_json(out, ",%g", isfinite(m->a[i]) ? rint(m->a[i] * 100) / 100 : 0.0);
    if (m->kind == ENV_TEXT)
        put_json(out, ",%d,%d,%s]", m->align, (int)m->colour, m->text);
    else
        put_json(out, ",%d]", (int)m->colour);
}

/* The frame as a GIF of its own, whose pixels are clear where the one before stays: its head, a frame, a semicolon. */
static enum status put_frame(struct policy_play *p, struct strbuf *draw, struct error *err)
{
    const struct gym_frame *frame = player_state(p->player);

    p->bytes.len = p->head_bytes;
    TRY(gif_movie_add(p->gif, frame->pixels, err));
    strbuf_add(&p->bytes, ";");
    TRY(strbuf_status(&p->bytes, "a frame", err));
    MEM_LOCAL char *text = mem_alloc(BASE64_TEXT_BYTES(p->bytes.len));
    base64_encode(p->bytes.text, p->bytes.len, text);
    put_json(draw, "['i',%s]", text);
    return ST_OK;
}

enum status policy_play_step(struct policy_play *p, struct strbuf *draw, struct player_frame *ret_frame,
                             struct error *err)
{
    if (p->child != NULL)
        return play_child_step(p->child, draw, ret_frame, err);
    TRY(player_step(p->player, ret_frame, err));
    strbuf_add(draw, "[");
    if (p->gif != NULL) {
        TRY(put_frame(p, draw, err));
    } else {
        env_draw(p->setup->env, p->setup->env_settings, player_state(p->player), &p->picture);
        for (size_t i = 0; i < p->picture.n; i++) {
            strbuf_add(draw, i > 0 ? "," : "");
            put_mark(draw, &p->picture.marks[i]);
        }
    }
    strbuf_add(draw, "]");
    return strbuf_status(draw, "a picture", err);
}

enum status policy_play_export(struct policy_play *p, struct strbuf *policy, struct strbuf *settings, struct error *err)
{
    if (p->player == NULL || env_find(p->setup->env->name) != p->setup->env || p->setup->policy.frame_stack > 1)
        return FAIL(err, ST_NOTFOUND, "%s is not a built-in game, or it sees several frames", p->setup->env->name);
    strbuf_add_n(settings, p->setup->env_settings, p->setup->env->options.settings_size);
    return trainer_export(player_trainer(p->player), POLICY_SAFETENSORS, "policy", policy, err);
}
