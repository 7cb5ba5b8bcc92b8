/* serve_play.c - a trial's policy playing, for the pages: the game is stepped on one CPU thread and drawn after each
 * decision. */
#include "base/mem.h"
#include "base/num.h"
#include "envs/draw.h"
#include "kernels/kernels.h"
#include "study/setup.h"
#include "sweep/pages/serve_hooks.h"
#include "trainer/trainer.h"
#include "web/serve/serve.h"

#include <math.h>
#include <stdio.h>

struct policy_play {
    struct setup *setup;
    struct kern *kern;
    struct player *player;
    struct env_picture *picture;
};

void serve_play_close(void *play)
{
    struct policy_play *p = play;

    if (p == NULL)
        return;
    player_destroy(p->player);
    kern_close(p->kern);
    setup_destroy(p->setup);
    mem_free(p->picture);
    mem_free(p);
}

static enum status open_play(struct policy_play *p, const struct trial *trial, const char *checkpoint, int64_t seed,
                             bool greedy, struct error *err)
{
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = 1};
    struct setup *s;

    p->picture = mem_alloc(sizeof *p->picture);
    if (p->picture == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a picture");
    TRY(trial_setup(trial, &p->setup, err));
    TRY(kern_open(&p->kern, &settings, err));
    s = p->setup;
    s->train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    TRY(player_create(&p->player, p->kern, s->env, s->env_settings, &s->policy, &s->train, checkpoint, seed, greedy,
                      err));
    env_draw(s->env, s->env_settings, player_state(p->player), p->picture);
    return ST_OK;
}

enum status serve_play_open(void *ctx, const struct trial *trial, const char *checkpoint, int64_t seed, bool greedy,
                            void **ret_play, struct serve_play_info *ret_info, struct error *err)
{
    struct policy_play *p = mem_alloc(sizeof *p);
    enum status rc;

    (void)ctx;
    *ret_play = NULL;
    if (p == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a game");
    rc = open_play(p, trial, checkpoint, seed, greedy, err);
    if (rc != ST_OK) {
        serve_play_close(p);
        return rc;
    }
    *ret_info = (struct serve_play_info){.width = p->picture->width, .height = p->picture->height};
    snprintf(ret_info->env, sizeof ret_info->env, "%s", p->setup->env->name);
    *ret_play = p;
    return ST_OK;
}

static void put_number(struct strbuf *out, double value)
{
    char buf[NUM_TEXT_MAX];

    strbuf_add(out, ",");
    strbuf_add(out, num_format_f64(isfinite(value) ? rint(value * 100) / 100 : 0.0, buf));
}

/* Texts are made by env_draw: no quotes, no backslashes. */
static void put_mark(struct strbuf *out, const struct env_mark *m)
{
    static const struct {
        const char *word;
        int n;
    } kinds[] = {[ENV_RECT] = {"r", 4}, [ENV_CIRCLE] = {"c", 3}, [ENV_LINE] = {"l", 5}, [ENV_TEXT] = {"t", 3}};

    strbuf_addf(out, "[\"%s\"", kinds[m->kind].word);
    for (int i = 0; i < kinds[m->kind].n; i++)
        put_number(out, m->a[i]);
    if (m->kind == ENV_TEXT)
        strbuf_addf(out, ",%d,%d,\"%s\"]", m->align, (int)m->colour, m->text);
    else
        strbuf_addf(out, ",%d]", (int)m->colour);
}

enum status serve_play_step(void *play, struct strbuf *draw, struct serve_frame *ret_frame, struct error *err)
{
    struct policy_play *p = play;
    struct player_frame frame;

    TRY(player_step(p->player, &frame, err));
    env_draw(p->setup->env, p->setup->env_settings, player_state(p->player), p->picture);
    strbuf_add(draw, "[");
    for (size_t i = 0; i < p->picture->n; i++) {
        strbuf_add(draw, i > 0 ? "," : "");
        put_mark(draw, &p->picture->marks[i]);
    }
    strbuf_add(draw, "]");
    *ret_frame = (struct serve_frame){.step = frame.step,
                                      .episode = frame.episode,
                                      .reward = frame.reward,
                                      .score = frame.ep_return,
                                      .ended = frame.ended,
                                      .ended_score = frame.score,
                                      .ended_perf = frame.perf,
                                      .ended_length = frame.ep_length};
    return strbuf_status(draw, "a picture", err);
}
