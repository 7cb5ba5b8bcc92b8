/* video.c - see video.h. Without cairo and giflib at the build it says so. */
#include "sweep/cmd/policy/video.h"

#include "sweep/cli.h"

#ifdef TRAWL_VIDEO
#include "envs/envs.h"
#include "study/setup/setup.h"
#include "sweep/cmd/policy/checkpoint_player.h"
#include "sweep/cmd/policy/movie.h"
#include "sweep/cmd/policy/raster.h"
#include "trainer/trainer.h"

struct video {
    const struct video_settings *set;
    struct checkpoint_player game;
    struct env_picture picture;
    struct raster *raster;
    struct movie *movie;
};

static void draw(struct video *v)
{
    const struct setup *s = v->game.setup;

    env_draw(s->env, s->env_settings, player_state(v->game.player), &v->picture);
    if (v->raster != NULL)
        raster_draw(v->raster, &v->picture);
}

static enum status add_frame(struct video *v, struct error *err)
{
    int width, height;
    const uint32_t *pixels = raster_pixels(v->raster, &width, &height);

    if (v->movie == NULL)
        TRY(movie_create(&v->movie, v->set->path, width, height, err));
    return movie_add(v->movie, pixels, err);
}

/* An episode; where agents end alone, until as many decisions have ended some as there are agents. */
static enum status play(struct video *v, struct error *err)
{
    struct player_frame frame = {.ended = false};
    struct env_shape shape = {0};
    int64_t i, left;
    bool alone;

    TRY(env_def_check(v->game.setup->env, v->game.setup->env_settings, 1, &shape, err));
    alone = shape.agents_end && shape.n_agents > 1;
    left = alone ? shape.n_agents : 1;
    draw(v); /* for its size */
    TRY(raster_create(&v->raster, v->picture.width, v->picture.height, err));
    draw(v);
    TRY(add_frame(v, err));
    for (i = 0; i < v->set->steps && left > 0; i++) {
        TRY(player_step(v->game.player, &frame, err));
        left -= frame.ended;
        if (!frame.ended || alone) /* else the state is that of the next episode */
            draw(v);
        TRY(add_frame(v, err));
    }
    TRY(movie_finish(v->movie, err));
    if (alone)
        fprintf(stderr, "wrote %s: %lld steps, %lld of which ended episodes of its agents\n", v->set->path,
                (long long)i, (long long)(shape.n_agents - left));
    else if (left == 0)
        fprintf(stderr, "wrote %s: an episode of %lld steps, score %g\n", v->set->path, (long long)i, frame.score);
    else
        fprintf(stderr, "wrote %s: %lld steps of an episode that continues; --video-steps shows more\n", v->set->path,
                (long long)i);
    return ST_OK;
}

enum status video_open(struct error *err)
{
    return raster_open(err);
}

enum status video_check(const struct video_settings *settings, const struct env_def *env, struct error *err)
{
    if (settings->path == NULL)
        return ST_OK;
    if (settings->steps < 1)
        return FAIL(err, ST_USAGE, "--video-steps %lld: a video has at least 1", (long long)settings->steps);
    if (env->draw == NULL)
        return FAIL(err, ST_CONFIG, "--video: %s draws no picture", env->name);
    TRY(movie_check(settings->path, err));
    TRY(video_open(err));
    return check_output(settings->path, OUTPUT_OTHER, NULL, 0, err);
}

enum status video_make(const char *checkpoint, const struct video_settings *settings, struct error *err)
{
    struct video v = {.set = settings};
    enum status rc;

    if (settings->path == NULL)
        return ST_OK;
    rc = checkpoint_player_open(&v.game, checkpoint, settings->seed, settings->greedy, err);
    THEN(rc, play(&v, err));
    movie_destroy(v.movie);
    raster_destroy(v.raster);
    checkpoint_player_close(&v.game);
    return rc;
}
#else
enum status video_open(struct error *err)
{
    return FAIL(err, ST_USAGE,
                "--video: this trawl was built without cairo and giflib; install libcairo2-dev and "
                "libgif-dev and build it again");
}

enum status video_check(const struct video_settings *settings, const struct env_def *env, struct error *err)
{
    (void)env;
    return settings->path == NULL ? ST_OK : video_open(err);
}

enum status video_make(const char *checkpoint, const struct video_settings *settings, struct error *err)
{
    (void)checkpoint;
    return video_check(settings, NULL, err);
}
#endif
