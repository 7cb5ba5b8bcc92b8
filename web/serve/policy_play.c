/* policy_play.c - a trial's policy playing: the game is stepped on one CPU thread and drawn after each decision. */
#include "web/serve/policy_play.h"

#include "envs/plugin/library.h"
#include "study/setup/setup.h"
#include "web/serve/play_child.h"
#include "web/text/put.h"

struct policy_play {
    struct setup *setup;
    struct kern *kern;
    struct player *player;
    struct play_child *child; /* of a library's game, in place of kern and player */
    struct env_picture picture; /* after the last decision */
};

void policy_play_close(struct policy_play *p)
{
    if (p == NULL)
        return;
    play_child_close(p->child);
    player_destroy(p->player);
    kern_close(p->kern);
    setup_destroy(p->setup);
    mem_free(p);
}

static enum status open_play(struct policy_play *p, const struct trial *trial, const char *checkpoint, int64_t seed,
                             bool greedy, struct error *err)
{
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = 1};

    TRY(trial_setup(trial, &p->setup, err));
    if (env_library_is_described(p->setup->env))
        return play_child_open(&p->child, checkpoint, seed, greedy, err);
    TRY(kern_open(&p->kern, &settings, err));
    struct setup *s = p->setup;
    s->train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    TRY(player_create(&p->player, p->kern, s->env, s->env_settings, &s->policy, &s->train, checkpoint, seed, greedy,
                      err));
    env_draw(s->env, s->env_settings, player_state(p->player), &p->picture);
    return ST_OK;
}

enum status policy_play_open(struct policy_play **ret_play, const struct trial *trial, const char *checkpoint,
                             int64_t seed, bool greedy, struct error *err)
{
    struct policy_play *p = mem_alloc(sizeof *p);
    enum status rc = open_play(p, trial, checkpoint, seed, greedy, err);

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

enum status policy_play_step(struct policy_play *p, struct strbuf *draw, struct player_frame *ret_frame,
                             struct error *err)
{
    if (p->child != NULL)
        return play_child_step(p->child, draw, ret_frame, err);
    TRY(player_step(p->player, ret_frame, err));
    env_draw(p->setup->env, p->setup->env_settings, player_state(p->player), &p->picture);
    strbuf_add(draw, "[");
    for (size_t i = 0; i < p->picture.n; i++) {
        strbuf_add(draw, i > 0 ? "," : "");
        put_mark(draw, &p->picture.marks[i]);
    }
    strbuf_add(draw, "]");
    return strbuf_status(draw, "a picture", err);
}

enum status policy_play_export(struct policy_play *p, struct strbuf *policy, struct strbuf *settings, struct error *err)
{
    if (p->player == NULL || env_find(p->setup->env->name) != p->setup->env || p->setup->policy.frame_stack > 1)
        return FAIL(err, ST_NOTFOUND, "%s is no built-in game, or it sees several frames", p->setup->env->name);
    strbuf_add_n(settings, p->setup->env_settings, p->setup->env->options.settings_size);
    return trainer_export(player_trainer(p->player), POLICY_SAFETENSORS, "policy", policy, err);
}
