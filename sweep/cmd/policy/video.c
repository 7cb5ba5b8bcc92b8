/* video.c - see video.h. Without cairo and giflib at the build it says so. */
#include "sweep/cmd/policy/video.h"

#include "sweep/cli.h"

#ifdef TRAWL_VIDEO
#include "envs/gym/gym.h"
#include "study/setup/setup.h"
#include "sweep/cmd/policy/movie.h"
#include "sweep/cmd/policy/raster.h"
#include "sweep/term.h"

struct video {
    const struct video_settings *set;
    const struct setup *setup;
    const struct env_def *env; /* of Gymnasium: one that gives frames */
    struct kern *kern;
    struct player *player;
    struct env_picture picture;
    struct raster *raster; /* NULL of Gymnasium */
    const uint32_t *pixels; /* (height, width) 0x00RRGGBB of the last picture or frame; borrowed */
    int width, height;
    struct movie *movie;
};

static bool gives_frames(const struct video *v)
{
    return env_is_gym(v->env->name);
}

/* Of the player's state as it is now. */
static enum status draw(struct video *v, struct error *err)
{
    const void *state = player_state(v->player);

    if (gives_frames(v)) {
        const struct gym_frame *frame = state;
        v->pixels = frame->pixels;
        v->width = frame->width, v->height = frame->height;
    } else {
        env_draw(v->env, v->setup->env_settings, state, &v->picture);
        if (v->raster == NULL)
            TRY(raster_create(&v->raster, v->picture.width, v->picture.height, err));
        raster_draw(v->raster, &v->picture);
        v->pixels = raster_pixels(v->raster, &v->width, &v->height);
    }
    return ST_OK;
}

static enum status add_frame(struct video *v, struct error *err)
{
    if (v->movie == NULL)
        TRY(movie_create(&v->movie, v->set->path, v->width, v->height, err));
    return movie_add(v->movie, v->pixels, err);
}

/* An episode; where agents end alone, until as many decisions have ended some as there are agents. */
static enum status play(struct video *v, struct error *err)
{
    struct player_frame frame = {.ended = false};
    struct env_shape shape = {0};
    int64_t i, left;

    TRY(env_def_check(v->env, v->setup->env_settings, 1, &shape, err));
    bool alone = shape.agents_end && shape.n_agents > 1;
    left = alone ? shape.n_agents : 1;
    TRY(draw(v, err));
    TRY(add_frame(v, err));
    for (i = 0; i < v->set->steps && left > 0; i++) {
        TRY(player_step(v->player, &frame, err));
        left -= frame.ended;
        if (!frame.ended || alone || gives_frames(v)) /* else the state is that of the next episode */
            TRY(draw(v, err));
        TRY(add_frame(v, err));
    }
    TRY(movie_finish(v->movie, err));
    if (alone)
        fprintf(term_err(), "wrote %s: %lld steps, %lld of which ended episodes of its agents\n", v->set->path,
                (long long)i, (long long)(shape.n_agents - left));
    else if (left == 0)
        fprintf(term_err(), "wrote %s: an episode of %lld steps, score %g\n", v->set->path, (long long)i, frame.score);
    else
        fprintf(term_err(), "wrote %s: %lld steps of an episode that continues; --video-steps shows more\n",
                v->set->path, (long long)i);
    return ST_OK;
}

enum status video_open(struct error *err)
{
    return raster_open(err);
}

enum status video_check(const struct video_settings *settings, const struct setup *setup, struct error *err)
{
    const struct env_def *env = setup->env;

    if (settings->path == NULL)
        return ST_OK;
    if (settings->steps < 1)
        return FAIL(err, ST_USAGE, "--video-steps %lld: a video has at least 1", (long long)settings->steps);
    if (env_is_gym(env->name))
        TRY(gym_film(env->name, setup->env_settings, &env, err));
    else if (env->draw == NULL)
        return FAIL(err, ST_CONFIG, "--video: %s draws no picture", env->name);
    TRY(movie_check(settings->path, err));
    TRY(video_open(err));
    return check_output(settings->path, OUTPUT_OTHER, NULL, 0, err);
}

static enum status open_player(struct video *v, const char *checkpoint, struct error *err)
{
    const struct kern_settings cpu = {.kind = KERN_CPU, .n_threads = 1};
    const struct setup *s = v->setup;
    struct train_settings train = s->train;

    train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    v->env = s->env;
    if (env_is_gym(v->env->name))
        TRY(gym_film(v->env->name, s->env_settings, &v->env, err));
    TRY(kern_open(&v->kern, &cpu, err));
    return player_create(&v->player, v->kern, v->env, s->env_settings, &s->policy, &train, checkpoint, v->set->seed,
                         v->set->greedy, err);
}

enum status video_make(const char *checkpoint, const struct video_settings *settings, const struct setup *setup,
                       struct error *err)
{
    struct video v = {.set = settings, .setup = setup};

    if (settings->path == NULL)
        return ST_OK;
    enum status rc = open_player(&v, checkpoint, err);
    THEN(rc, play(&v, err));
    movie_destroy(v.movie);
    raster_destroy(v.raster);
    player_destroy(v.player);
    kern_close(v.kern);
    return rc;
}
#else
enum status video_open(struct error *err)
{
    return FAIL(err, ST_USAGE,
                "--video: this trawl was built without cairo and giflib; install libcairo2-dev and "
                "libgif-dev and build it again");
}

enum status video_check(const struct video_settings *settings, const struct setup *setup, struct error *err)
{
    (void)setup;
    return settings->path == NULL ? ST_OK : video_open(err);
}

enum status video_make(const char *checkpoint, const struct video_settings *settings, const struct setup *setup,
                       struct error *err)
{
    (void)checkpoint;
    return video_check(settings, setup, err);
}
#endif
