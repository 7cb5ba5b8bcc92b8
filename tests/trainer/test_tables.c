/* test_tables.c - option tables, metric table and its document, schedules, result window, memory plan. */
#include "trainer_test.h"

TEST(option_tables)
{
    const struct opt_table *tables[] = {&policy_opt_table, &train_opt_table};

    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < tables[i]->n_defs; k++) {
            const struct opt_def *d = &tables[i]->defs[k];
            OK(config_check_value(d, d->key, d->def, "default", err));
            assert_true(d->offset < tables[i]->settings_size);
            assert_true(strlen(d->help) > 10 && d->help[strlen(d->help) - 1] == '.');
            if (d->scale == OPT_LOG && !(d->sweep_factor > 1.0))
                assert_true(d->sweep_min > 0.0);
            if (d->scale != OPT_FIXED && d->scale != OPT_CATEGORICAL && !(d->sweep_factor > 1.0))
                assert_true(d->sweep_min < d->sweep_max && d->sweep_min >= d->min && d->sweep_max <= d->max);
        }
    }
}

/* What a row says it depends on is an option, and a value that this can have and one that it cannot have are
 * distinguished. */
TEST(rows_depend_on_options)
{
    struct config *config = config_create();
    size_t n = 0;

    OK(config_add_table(config, &policy_opt_table, err));
    OK(config_add_table(config, &train_opt_table, err));
    for (size_t i = 0; i < policy_opt_table.n_defs + train_opt_table.n_defs; i++) {
        const struct opt_def *d = i < policy_opt_table.n_defs ? &policy_opt_table.defs[i]
                                                              : &train_opt_table.defs[i - policy_opt_table.n_defs];
        const char *at = d->depends;
        struct config_condition c;
        while (config_condition_next(&at, &c)) {
            const struct opt_def *parent = config_find_opt(config, c.key);
            bool met = false, unmet = false;
            if (parent == NULL)
                fail_msg("%s depends on %s, which is not an option", d->key, c.key);
            for (double x = 0; x < 8; x++) {
                char value[OPT_STR_MAX];
                double back;
                config_format_value(parent, x, value, sizeof value);
                if (config_parse_value(parent, value, &back, NULL) != ST_OK || back != x)
                    continue; /* no such choice */
                met = met || config_condition_holds(&c, parent, value);
                unmet = unmet || !config_condition_holds(&c, parent, value);
            }
            if (!met || !unmet)
                fail_msg("%s: %.*s is met by %s value of that option", d->key, (int)c.len, c.text,
                         met ? "every" : "no");
            n++;
        }
    }
    assert_true(n >= 10);
    config_destroy(config);
}

TEST(metric_document)
{
    const char *docs = getenv("TRAWL_DOCS");
    char path[4096], row[512];
    MEM_LOCAL char *text = NULL;
    struct train_metrics m = {.env_steps = 7, .perf = 0.25};
    size_t n;

    assert_non_null(docs);
    snprintf(path, sizeof path, "%s/metrics.md", docs);
    OK(file_read_all(path, 1 << 20, &text, &n, err));
    for (size_t i = 0; i < train_n_metric_defs; i++) {
        const struct train_metric_def *d = &train_metric_defs[i];
        snprintf(row, sizeof row, "| `%s` | %s | %s |\n", d->name, d->unit, d->help);
        if (strstr(text, row) == NULL)
            fail_msg("docs/metrics.md lacks the row: %s", row);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(train_metric_defs[j].name, d->name);
            assert_true(train_metric_defs[j].offset != d->offset);
        }
        if (strcmp(d->name, "env_steps") == 0)
            assert_true(train_metric_value(&m, i) == 7.0);
        if (strcmp(d->name, "perf") == 0)
            assert_true(train_metric_value(&m, i) == 0.25);
    }
}

TEST(schedule)
{
    struct train_settings s = {.total_timesteps = 1000,
                               .learning_rate = 0.1,
                               .min_lr_ratio = 0.2,
                               .anneal_lr = true,
                               .decay_share = 1.0,
                               .prio_alpha = 0.5,
                               .prio_beta0 = 0.4};
    struct kern_hyper h;
    double carry = 0.0;
    int64_t total = 0;

    schedule_hyper(&s, 0, &h);
    assert_float_equal(h.lr, 0.1, 1e-7);
    assert_float_equal(h.prio_beta, 0.4, 1e-7);
    schedule_hyper(&s, 500, &h);
    assert_float_equal(h.lr, 0.06, 1e-7); /* half-way between 0.1 and 0.02 */
    assert_float_equal(h.prio_beta, 0.55, 1e-7);
    schedule_hyper(&s, 5000, &h); /* past the end: stays there */
    assert_float_equal(h.lr, 0.02, 1e-7);
    s.decay_share = 0.25; /* held until 750 */
    schedule_hyper(&s, 750, &h);
    assert_float_equal(h.lr, 0.1, 1e-7);
    assert_float_equal(h.prio_beta, 0.4, 1e-7);
    schedule_hyper(&s, 875, &h);
    assert_float_equal(h.lr, 0.06, 1e-7);
    assert_float_equal(h.prio_beta, 0.55, 1e-7);
    schedule_hyper(&s, 1000, &h);
    assert_float_equal(h.lr, 0.02, 1e-7);
    s.decay_share = 0.0;
    schedule_hyper(&s, 1000, &h);
    assert_float_equal(h.lr, 0.1, 1e-7);
    s.anneal_lr = false;
    schedule_hyper(&s, 900, &h);
    assert_float_equal(h.lr, 0.1, 1e-7);
    s.decay_steps = 500.0, s.prio_beta0 = 0.4;
    schedule_hyper(&s, 0, &h);
    assert_float_equal(h.lr, 0.1, 1e-7);
    schedule_hyper(&s, 500, &h);
    assert_float_equal(h.lr, 0.025, 1e-7);
    schedule_hyper(&s, 4500, &h); /* the end of the run means nothing */
    assert_float_equal(h.lr, 0.001, 1e-7);
    assert_float_equal(h.prio_beta, 0.4, 1e-7);

    s = (struct train_settings){.replay_ratio = 1.3, .total_agents = 10, .horizon = 8, .minibatch_size = 40};
    for (int i = 1; i <= 100; i++) { /* 2.6 minibatches a rollout */
        int64_t n = schedule_minibatches(&s, 8, &carry);
        assert_true(n == 2 || n == 3);
        total += n;
        assert_true(fabs((double)total - 2.6 * i) <= 0.5 + 1e-9);
    }
    s.replay_ratio = 0.1;
    carry = 0.0;
    total = 0;
    for (int i = 0; i < 50; i++)
        total += schedule_minibatches(&s, 8, &carry);
    assert_int_equal(total, 10);
    s = (struct train_settings){.replay_ratio =
                                    1.4242098997083206, /* PufferLib's breakout: 5 of 5.7 minibatches, always */
                                .replay_rounding = TRAIN_ROUNDING_FLOOR,
                                .total_agents = 4096,
                                .horizon = 64,
                                .minibatch_size = 65536};
    carry = 0.0;
    for (int i = 0; i < 50; i++)
        assert_int_equal(schedule_minibatches(&s, 64, &carry), 5);
    s = (struct train_settings){.total_agents = 10, .horizon = 8, .minibatch_size = 40};
    s.replay_ratio = 3.0; /* 6 minibatches a rollout of 8 steps, one to 4/3 steps also where it is shorter */
    carry = 0.0;
    assert_int_equal(schedule_minibatches(&s, 4, &carry), 3);
    assert_int_equal(schedule_minibatches(&s, 1, &carry), 1);
    assert_float_equal(carry, -0.25, 1e-12);
}

TEST(last_rollout)
{
    struct train_settings s = {.total_timesteps = 1000, .total_agents = 12, .horizon = 8};

    assert_int_equal(schedule_horizon(&s, 0), 8);
    assert_int_equal(schedule_horizon(&s, 904), 8); /* 96 are left */
    assert_int_equal(schedule_horizon(&s, 905), 7);
    assert_int_equal(schedule_horizon(&s, 960), 3); /* 40 are left, 36 can be played */
    assert_int_equal(schedule_horizon(&s, 988), 1);
    assert_int_equal(schedule_horizon(&s, 989), 0);
    assert_int_equal(schedule_horizon(&s, 1000), 0);
    assert_int_equal(schedule_horizon(&s, 5000), 0); /* a checkpoint of a longer run */
    s.total_timesteps = INT64_MAX;
    assert_int_equal(schedule_horizon(&s, 0), 8);
}

TEST(window)
{
    MEM_LOCAL struct window *w = calloc(1, sizeof *w);
    struct env_log log = {.episodes = 1.0};
    struct kern_stats stats = {.n_tokens = 4.0, .n_minibatches = 1.0}, none = {0};
    struct window_sum sum;

    window_sum(w, 0, &sum);
    assert_true(sum.log.episodes == 0.0);
    for (int i = 1; i <= 100; i++) { /* small: exactly the last tenth */
        log.score = i;
        stats.entropy = 4 * i;
        window_add(w, i, 3 * i, &log, &stats);
    }
    window_sum(w, 100, &sum);
    assert_true(sum.stats.entropy == 4 * 955.0 && sum.stats.n_tokens == 40.0 && sum.updates == 30);
    assert_true(sum.log.episodes == 10.0);
    assert_true(sum.log.score == 955.0); /* 91 + ... + 100 */
    for (int i = 101; i <= 20000; i++) { /* large: merged, still a tenth give or take a bucket */
        log.score = i;
        stats.entropy = 4 * i;
        window_add(w, i, 3 * i, &log, &stats);
    }
    window_sum(w, 20000, &sum);
    assert_float_equal(sum.stats.entropy / sum.stats.n_tokens, 19000.0, 60.0);
    assert_true(sum.updates == 3 * (int64_t)sum.stats.n_minibatches);
    assert_true(sum.log.episodes >= 2000.0 && sum.log.episodes <= 2100.0);
    assert_float_equal(sum.log.score / sum.log.episodes, 19000.0, 60.0);
    log = (struct env_log){0};
    for (int i = 20001; i <= 40000; i++) /* nothing ends any more: widened until there is something */
        window_add(w, i, 60000, &log, &none);
    window_sum(w, 40000, &sum);
    assert_true(sum.stats.n_minibatches > 0.0 && sum.stats.n_minibatches <= 128.0);
    assert_true(sum.log.episodes > 0.0 && sum.log.episodes <= 128.0);
}

TEST(plan)
{
    struct plan plan = {0};
    char text[48];

    plan_add(&plan, NULL, "a", 4, 10, 10, 1);
    assert_int_equal(plan.total, 400);
    plan_add(&plan, NULL, "b", 4, SIZE_MAX / 2, 3, 1);
    assert_true(plan.total == SIZE_MAX);
    plan_add(&plan, NULL, "c", 1, 1, 1, 1);
    assert_true(plan.total == SIZE_MAX);
    plan_format_bytes(812345678901u, text, sizeof text);
    assert_string_equal(text, "812 GB");
    plan_format_bytes(17, text, sizeof text);
    assert_string_equal(text, "17 bytes");
}

TEST_PROGRAM("tables")
