/* test_draw.c - pictures of the games: whole games played at random, every shape finite, near the picture and of a
 * known colour. */
#include "envs_test.h"

#include "envs/draw.h"

static void check_picture(const char *name, const struct env_picture *p)
{
    static const int n_numbers[] = {[ENV_RECT] = 4, [ENV_CIRCLE] = 3, [ENV_LINE] = 5, [ENV_TEXT] = 3};

    assert_true(p->width > 0 && p->height > 0 && p->n > 0 && p->n < ENV_PICTURE_MAX);
    for (size_t i = 0; i < p->n; i++) {
        const struct env_mark *m = &p->marks[i];
        assert_true((int)m->colour > ENV_BACKGROUND && m->colour < ENV_COLOURS);
        for (int k = 0; k < n_numbers[m->kind]; k++)
            if (!isfinite(m->a[k]) || m->a[k] < -100 || m->a[k] > 1000)
                fail_msg("%s: shape %zu has the number %g", name, i, m->a[k]);
        assert_true(m->kind != ENV_TEXT || (m->text[0] != '\0' && strpbrk(m->text, "\"\\<") == NULL));
    }
}

TEST(all_games)
{
    struct env_picture picture, first;

    for (size_t g = 0; g < env_count(); g++) {
        const struct env_def *def = env_at(g);
        void *settings = test_settings(def);
        TEST_BATCH t;
        struct rng rng = rng_seed(4);
        bool moved = false;
        test_batch_open(&t, def, settings, 1, 7);
        env_batch_reset(t.batch, NULL, t.obs, t.mask);
        env_draw(def, settings, test_batch_state(&t, 0), &first);
        check_picture(def->name, &first);
        for (int s = 0; s < 3000; s++) {
            test_batch_random_actions(&t, &rng);
            env_batch_step(t.batch, NULL, &t.io);
            env_draw(def, settings, test_batch_state(&t, 0), &picture);
            check_picture(def->name, &picture);
            moved = moved || memcmp(&picture, &first, sizeof picture) != 0;
        }
        if (!moved)
            fail_msg("%s: 3000 steps and the picture never changed", def->name);
        mem_free(settings);
    }
}

TEST(unknown_game)
{
    const struct env_def def = {.name = "chess"};
    struct env_picture picture;

    env_draw(&def, NULL, NULL, &picture);
    assert_int_equal(picture.n, 1);
    assert_string_equal(picture.marks[0].text, "no picture of chess");
}

static void draw_by_settings(const void *settings, const void *state, struct env_picture *picture)
{
    (void)state;
    picture->width = ((const double *)settings)[0];
    picture->height = ((const double *)settings)[1];
    env_draw_rect(picture, 0, 0, 1, 1, ENV_OWN);
}

TEST(a_size_that_is_none)
{
    const double sizes[][2] = {{NAN, 10}, {10, NAN}, {0, 10}, {10, -5}, {INFINITY, 10}, {10, 1e300}},
                 good[2] = {10, 20};
    const struct env_def def = {.name = "chess", .draw = draw_by_settings};
    struct env_picture picture;

    for (size_t i = 0; i < COUNT(sizes); i++) {
        env_draw(&def, sizes[i], NULL, &picture);
        assert_true(picture.width == 320 && picture.height == 120);
        assert_int_equal(picture.n, 1);
        assert_string_equal(picture.marks[0].text, "chess draws without a size");
    }
    env_draw(&def, good, NULL, &picture);
    assert_true(picture.width == 10 && picture.height == 20 && picture.marks[0].kind == ENV_RECT);
}

TEST_PROGRAM("draw")
