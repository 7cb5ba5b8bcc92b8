/* test_report.c - the report in its formats: well formed, whole, escaped, nothing fetched, for odd studies too. */
#include "report_test.h"
#include "web/report/report_priv.h"

static char *write_report(const struct sample *s, enum report_format format)
{
    STRBUF(out, 64u << 20);
    OK(report_write(&s->view, s->store_path, format, &out, err));
    char *text = strdup(out.text);
    return text;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        n++;
    return n;
}

/* Every element is closed in order, attributes are quoted, & starts a known entity: what an XML parser would check. */
static void check_markup(const char *text, bool html)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const char *open[64];
    size_t lengths[64], depth = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '&') {
            bool known = false;
            for (size_t i = 0; i < 5; i++)
                known = known || strncmp(at, entities[i], strlen(entities[i])) == 0;
            assert_true(known);
        }
        if (*at != '<')
            continue;
        if (at[1] == '!') {
            at = strchr(at, '>');
            continue;
        }
        bool closing = at[1] == '/';
        const char *name = at + 1 + closing;
        size_t n = strcspn(name, " />\n");
        assert_true(n > 0);
        bool quoted = false;
        const char *end = name;
        for (; *end != '\0' && (quoted || *end != '>'); end++) {
            if (*end == '"')
                quoted = !quoted;
            assert_false(*end == '<');
        }
        assert_true(*end == '>' && !quoted);
        if (closing) {
            assert_true(depth > 0 && lengths[depth - 1] == n && strncmp(open[depth - 1], name, n) == 0);
            depth--;
        } else if (end[-1] != '/' && !(html && (strncmp(name, "meta", 4) == 0 || strncmp(name, "wbr", 3) == 0))) {
            assert_true(depth < 64);
            open[depth] = name;
            lengths[depth++] = n;
        }
        at = end;
    }
    assert_int_equal(depth, 0);
}

/* No address but the name of the SVG namespace; nothing that a browser would fetch or run. */
static void check_self_contained(const char *text)
{
    assert_int_equal(count(text, "http"), count(text, "http://www.w3.org/2000/svg"));
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<link"));
    assert_null(strstr(text, "src="));
    assert_null(strstr(text, "href="));
    assert_null(strstr(text, "@import"));
    assert_null(strstr(text, "url("));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "=\"inf"));
    assert_null(strstr(text, "-inf"));
}

static void check_all(struct sample *s)
{
    for (int format = REPORT_HTML; format <= REPORT_JSON; format++) {
        char *text = write_report(s, (enum report_format)format);
        if (format == REPORT_HTML || format == REPORT_SVG) {
            check_markup(text, format == REPORT_HTML);
            check_self_contained(text);
        } else if (format == REPORT_CSV) {
            assert_int_equal(count(text, "\r\n"), s->view.n + 1);
        } else {
            cJSON *json;
            OK(json_parse(text, strlen(text), &json, err));
            assert_int_equal(cJSON_GetArraySize(json_get(json, "trials")), s->view.n);
            cJSON_Delete(json);
        }
        free(text);
    }
}

static size_t n_front(const struct sample *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->view.n; i++)
        n += s->view.on_front[i];
    return n;
}

static size_t n_in_state(const struct sample *s, enum trial_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < s->view.n; i++)
        n += s->view.trials[i].state == state;
    return n;
}

TEST(every_trial_is_drawn)
{
    SAMPLE *s = sample_make(60);
    char *svg = write_report(s, REPORT_SVG);
    size_t front = n_front(s), done = n_in_state(s, TRIAL_DONE), failed = n_in_state(s, TRIAL_FAILED),
           stopped = n_in_state(s, TRIAL_STOPPED);
    assert_true(front >= 3 && failed > 0 && stopped > 0);
    /* one more of each kind stands in the legend; without models every member was seen once */
    assert_int_equal(count(svg, "class=\"front\""), 2);
    assert_int_equal(count(svg, "class=\"front once\""), front);
    assert_int_equal(count(svg, "r=\"3.5\"") - 1, done - front);
    assert_int_equal(count(svg, "class=\"failed\"") - 1, failed);
    assert_int_equal(count(svg, "class=\"stopped\"") - 1, stopped);
    assert_int_equal(count(svg, "<title>"), 60);
    assert_non_null(strstr(svg, "failed or lost (6)"));
    free(svg);
    MEM_LOCAL char *html = write_report(s, REPORT_HTML);
    assert_int_equal(count(html, "<tr><td>") + count(html, "<tr class=\"special\"><td>"), front);
    assert_int_equal(count(html, "class=\"chart strip\""), SAMPLE_DIM);
    assert_non_null(
        strstr(html, "trawl export breakout --store trawl.db --pick knee -o knee.ini\ntrawl train knee.ini"));
    assert_non_null(strstr(html, "2026-01-01 00:00 UTC"));
    assert_non_null(strstr(html, "learning_<wbr>rate"));
    assert_non_null(strstr(html, "3\xc3\x97 the worker died of signal 9"));
    check_all(s);
}

TEST(odd_studies)
{
    static const size_t sizes[] = {0, 1, 2, 5000};
    for (size_t i = 0; i < 4; i++) {
        SAMPLE *s = sample_make(sizes[i]);
        check_all(s);
    }
    SAMPLE *s = sample_make(12);
    for (int kind = 0; kind < 8; kind++) {
        for (size_t i = 0; i < 12; i++) {
            struct trial *t = &s->view.trials[i];
            t->state = kind == 0 ? TRIAL_FAILED : kind == 1 ? TRIAL_QUEUED : kind == 6 ? TRIAL_STOPPED : TRIAL_DONE;
            t->score = kind < 2 || kind == 6 ? (double)NAN
                       : kind == 2           ? 3.0
                       : kind == 3           ? (i % 2 ? 1e300 : -1e300)
                       : kind == 4           ? 1e-300 * (double)i
                                             : (double)i;
            t->cost_s = kind < 2    ? (double)NAN
                        : kind == 3 ? (i % 2 ? 1e300 : 1e-12)
                        : kind == 5 ? 2.0
                        : kind == 7 ? 1e9 * (double)(i + 1)
                                    : 1.0 + (double)i;
            t->reason = kind == 0 ? NULL : t->reason;
        }
        s->view.study.maximize = kind % 2 == 0;
        sample_judge(s, 12);
        check_all(s);
    }
    /* A space without parameters, a trial without params, numbers that no done trial should have. */
    s->view.search.space.dim = 0;
    s->view.trials[1].params = NULL;
    s->view.trials[2].score = INFINITY;
    s->view.trials[3].cost_s = -1.0;
    s->view.trials[4].finished_ms = INT64_MAX;
    sample_judge(s, 12);
    check_all(s);
    /* Params that are not JSON are damage: said, never shown as empty. */
    for (int format = REPORT_HTML; format <= REPORT_JSON; format++) {
        struct strbuf out;
        strbuf_init(&out, 1 << 24);
        s->view.trials[5].params = (char *)(format % 2 == 0 ? "not json" : "[1]");
        FAILS(report_write(&s->view, s->store_path, (enum report_format)format, &out, err), ST_CORRUPT, "trial 5");
        strbuf_free(&out);
    }
}

/* A choice that no trial had is named as well, not numbered. */
TEST(every_choice_is_named)
{
    SAMPLE *s = sample_make(20);
    struct space_param *p = &s->view.search.space.params[4];
    p->n_choices = 3;
    p->max = 2;
    s->view.search.choices[4][2] = (char *)"never tried";
    char *html = write_report(s, REPORT_HTML), *strip = strstr(html, "Score against train.optimizer");
    assert_non_null(strip);
    for (int c = 0; c < 3; c++)
        assert_non_null(strstr(strip, s->view.search.choices[4][c]));
    free(html);
}

/* The tables of the front show no value that had no effect: gamma counts with adam alone. */
TEST(a_value_without_effect_is_a_dash)
{
    SAMPLE *s = sample_make(60);
    struct space_param *gamma = &s->view.search.space.params[2];
    struct report report;
    struct strbuf *pages;
    size_t n_pages, n_idle = 0, n_dashes = 0;
    for (int with = 0; with < 2; with++) {
        *gamma = (struct space_param){.key = "train.gamma", .scale = SPACE_LOGIT, .min = 0.8, .max = 0.9999};
        gamma->is_conditional = with == 1;
        gamma->parent = 4;
        gamma->parent_choices = 1; /* the first choice, adam */
        for (size_t i = n_idle = 0; i < s->view.n; i++)
            n_idle += with == 1 && s->view.on_front[i] && strstr(s->params[i], "muon") != NULL;
        char *html = write_report(s, REPORT_HTML);
        assert_int_equal(count(html, "<td>-</td>"), n_idle);
        free(html);
        OK(report_init(&report, &s->view, s->store_path, err));
        OK(report_write_pages(&report, &pages, &n_pages, err));
        for (size_t k = n_dashes = 0; k < n_pages; k++) {
            n_dashes += count(pages[k].text, ">-</text>");
            strbuf_free(&pages[k]);
        }
        assert_int_equal(n_dashes, n_idle);
        mem_free(pages);
        report_free(&report);
    }
    assert_in_range(n_idle, 1, n_front(s) - 1);
}

TEST(foreign_text_is_escaped)
{
    SAMPLE *s = sample_make(20);
    s->view.study.name = (char *)"</title><script>alert('x')</script> & \"q\" \xff\x01 \xc3\xa4";
    s->view.study.metric = (char *)"<b>score</b>";
    s->view.study.method = (char *)"a<b";
    s->view.trials[7].reason = (char *)"<img alt=x> & more";
    s->store_path = "my runs/$HOME.db";
    strcpy(s->view.search.space.params[0].key, "<i>&key");
    s->view.trials[0].params = (char *)"{\"<i>&key\":\"<u>value</u>\",\"train.optimizer\":\"a,\\\"b\\\"\\n\"}";
    memset(s->view.on_front, 0, 20);
    s->view.on_front[0] = true;
    check_all(s);
    MEM_LOCAL char *html = write_report(s, REPORT_HTML), *svg = write_report(s, REPORT_SVG),
                   *csv = write_report(s, REPORT_CSV);
    assert_null(strstr(html, "<img"));
    assert_null(strstr(html, "<u>"));
    assert_non_null(strstr(html, "&lt;u&gt;value&lt;/u&gt;"));
    assert_non_null(strstr(html, "--store &#39;my runs/$HOME.db&#39; --pick"));
    assert_non_null(strstr(html, "&#39;&lt;/title&gt;&lt;script&gt;alert(&#39;\\&#39;&#39;x"));
    assert_non_null(strstr(svg, "\xef\xbf\xbd\xef\xbf\xbd \xc3\xa4"));
    assert_non_null(strstr(csv, ",\"a,\"\"b\"\"\n\"\r\n"));
    assert_non_null(strstr(csv, ",<u>value</u>,"));
}

TEST(csv_has_every_column)
{
    SAMPLE *s = sample_make(9);
    s->view.trials[3].score = 0.1;
    s->view.trials[3].params =
        (char *)"{\"train.learning_rate\":0.1,\"train.gamma\":0.99,\"policy.hidden\":64,\"train.optimizer\":\"muon\"}";
    sample_judge(s, 9);
    s->view.trials[4].params = (char *)"{\"train.learning_rate\":-0.25,\"train.optimizer\":\"=1+1\"}";
    s->view.trials[4].device = (char *)"@cpu";
    s->view.trials[4].reason = (char *)"=HYPERLINK(\"http://x.example\",\"here\")";
    MEM_LOCAL char *csv = write_report(s, REPORT_CSV);
    const char *head =
        "number,state,score,perf,cost_s,device_s,env_steps,seed,attempt,origin,on_front,device,reason,created_ms,"
        "started_ms,"
        "finished_ms,n_seeds,seeds_mean,score_mean,score_lo,score_hi,start_s,score_se,eval_episodes,dropped,"
        "train.learning_rate,train.total_steps,train.gamma,"
        "policy.hidden,train.optimizer\r\n";
    assert_int_equal(strncmp(csv, head, strlen(head)), 0);
    assert_non_null(strstr(csv, "\r\n3,done,0.1,"));
    assert_non_null(strstr(csv, ",0.1,,0.99,64,muon\r\n")); /* a missing value and an unknown number are empty */
    assert_non_null(strstr(csv, "\r\n7,failed,,,"));
    assert_non_null(strstr(csv, ",'@cpu,\"'=HYPERLINK(\"\"http://x.example\"\",\"\"here\"\")\",")); /* no formulas */
    assert_non_null(strstr(csv, ",-0.25,,,,'=1+1\r\n"));
}

TEST(json_is_what_show_promises)
{
    static const char *const keys[] = {"number",   "state",      "params",     "score",      "perf",
                                       "cost_s",   "env_steps",  "seed",       "origin",     "reason",
                                       "on_front", "created_ms", "started_ms", "finished_ms"};
    SAMPLE *s = sample_make(30);
    JSON_LOCAL cJSON *json = NULL;
    double value;
    int64_t number;
    bool flag;
    s->view.trials[2].perf = INFINITY;
    s->view.trials[5].finished_ms = 0;
    OK(report_to_json(&s->view, &json, err));
    const cJSON *study = json_get(json, "study"), *trials = json_get(json, "trials");
    size_t knee = pareto_knee(&s->view.history);
    assert_true(json->child == study);
    assert_string_equal(json_get_str(study, "name"), "breakout");
    assert_string_equal(json_get_str(study, "direction"), "maximize");
    assert_true(json_get_f64(study, "hypervolume", &value) &&
                value == pareto_hypervolume(&s->view.history, &s->view.ref));
    assert_true(json_get_i64(study, "knee", &number) && number == (int64_t)knee);
    for (int i = 0; i < 30; i++) {
        const cJSON *trial = cJSON_GetArrayItem(trials, i);
        for (size_t k = 0; k < COUNT(keys); k++)
            assert_true(cJSON_HasObjectItem(trial, keys[k]));
        assert_true(json_get_i64(trial, "number", &number) && number == i);
        assert_true(json_get_bool(trial, "on_front", &flag) && flag == s->view.on_front[i]);
        assert_string_equal(json_get_str(trial, "state"), trial_state_name(s->view.trials[i].state));
        assert_true(json_get_f64(json_get(trial, "params"), "train.learning_rate", &value) && value == s->view.x[i][0]);
        if (s->view.trials[i].state == TRIAL_DONE)
            assert_true(json_get_f64(trial, "score", &value) && value == s->view.trials[i].score);
    }
    assert_true(cJSON_IsNull(json_get(cJSON_GetArrayItem(trials, 7), "score")));
    assert_true(cJSON_IsNull(json_get(cJSON_GetArrayItem(trials, 5), "finished_ms")));
    assert_true(json_get_f64(cJSON_GetArrayItem(trials, 2), "perf", &value) && isinf(value));
}

/* fontconfig keeps what it has read of the fonts until the process ends, out of LeakSanitizer's sight. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfontconfig\n";
}

/* Numbers and words of a promise, in the study's direction. */
TEST(a_promise_in_words)
{
    const struct gp_trial row = {.state = GP_TRIAL_DONE, .score = -3.0, .cost = 0.5};
    const struct gp_belief belief = {.score = -3.5,
                                     .log_cost = log(0.34),
                                     .log_cost_sd = 0.1,
                                     .noise_sd = 0.2,
                                     .n_seeds = 4,
                                     .mean = -3.4,
                                     .lo = -4.0,
                                     .hi = -3.25};
    struct trial trial = {.start_s = 0.21};
    char text[PROMISE_TEXT_MAX];
    struct promise p;

    promise_make(&belief, &row, &trial, false, &p); /* minimised: the row's and the belief's signs are turned */
    assert_string_equal(promise_text(&p, text), "3.5, 95 % 3.25 to 4 (4 seeds, mean 3.4)");
    assert_string_equal(promise_cost_text(&p, SEARCH_COST_WALL, text),
                        "340 ms in a warm worker, 550 ms from process start");
    assert_string_equal(promise_cost_text(&p, SEARCH_COST_DEVICE, text), "340 ms");
    assert_true(p.cost_lo < 0.34 && p.cost_hi > 0.34);
    promise_make(NULL, &row, &trial, true, &p); /* no model: its one run, and no interval */
    assert_string_equal(promise_text(&p, text), "-3 (seen once)");
    assert_true(!p.is_known && isnan(p.lo) && isnan(p.hi));
    trial.start_s = NAN;
    promise_make(NULL, &row, &trial, true, &p);
    assert_string_equal(promise_cost_text(&p, SEARCH_COST_WALL, text), "500 ms");
    assert_string_equal(promise_cost_text(&p, SEARCH_COST_STEPS, text), "0.5 steps");
}

/* A study that counts env steps: its front, ranges and texts are of steps. */
TEST(costs_may_be_steps)
{
    SAMPLE *s = sample_make(40);
    AT_END(report_free) struct report report = {0};

    for (size_t i = 0; i < 40; i++) {
        s->view.trials[i].env_steps = (int64_t)(1000 * (1 + i));
        s->view.trials[i].cost_s = 1.0; /* the clock says nothing */
        s->view.trials[i].propose_s = i == 0 ? (double)NAN : 0.01 * (double)i;
    }
    sample_judge(s, 40);
    for (size_t i = 0; i < 40; i++)
        s->view.gp[i].cost = (double)s->view.trials[i].env_steps;
    pareto_front(&s->view.history, NULL, s->view.on_front);
    pareto_reference(&s->view.history, &s->view.ref);
    s->view.search.cost = SEARCH_COST_STEPS;
    OK(report_init(&report, &s->view, s->store_path, err));
    assert_true(report.n_front > 1 && report.cost_lo >= 1000.0 && report.cost_hi > 10000.0);
    for (size_t i = 1; i < report.n_front; i++)
        assert_true(s->view.trials[report.front[i - 1]].env_steps < s->view.trials[report.front[i]].env_steps);
    MEM_LOCAL char *html = write_report(s, REPORT_HTML);
    check_markup(html, true);
    assert_non_null(strstr(html, "env steps of a trial"));
    assert_non_null(strstr(html, "Choosing a trial took 200 ms (median), at most 390 ms."));
    assert_null(strstr(html, "cost 1 s"));
}

/* A page holds what the report has: front, two of progress, importance, a strip for each parameter. */
TEST(paper_has_every_chart)
{
    static const size_t sizes[] = {0, 1, 60, 400};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        SAMPLE *s = sample_make(sizes[i]);
        struct gp_insight *insight = &s->view.advice;
        struct report report;
        struct strbuf *pages;
        size_t n_pages, n_charts = 0;
        gp_insight_init(insight, &s->view.search.space, &s->view.history, 1);
        s->view.has_insight = true;
        OK(report_init(&report, &s->view, s->store_path, err));
        OK(report_write_pages(&report, &pages, &n_pages, err));
        for (size_t k = 0; k < n_pages; k++) {
            check_markup(pages[k].text, false);
            check_self_contained(pages[k].text);
            assert_null(strstr(pages[k].text, "var(")); /* the renderer knows no variables */
            assert_null(strstr(pages[k].text, "@media"));
            n_charts += count(pages[k].text, "<svg") / 2; /* each in a frame of its own */
            strbuf_free(&pages[k]);
        }
        mem_free(pages);
        assert_int_equal(n_charts, 3 + (insight->note == NULL) + (report.n_plotted > 0 ? SAMPLE_DIM : 0));
        assert_in_range(n_pages, 1, 12);
        char *html = write_report(s, REPORT_HTML), *svg = write_report(s, REPORT_SVG);
        check_markup(html, true);
        check_markup(svg, false);
        assert_int_equal(count(svg, "class=\"interval\""), insight->note == NULL ? 3 * report.n_front + 1 : 0);
        assert_non_null(strstr(html, "What matters"));
        assert_int_equal(count(html, "Take trial"), insight->note == NULL && insight->recommended < insight->n);
        if (i == 2) { /* as if the front leaned on a bound */
            insight->edges[0] = (struct gp_edge){1, 3, 4, 0.5};
            char *warned = write_report(s, REPORT_HTML);
            assert_non_null(strstr(warned, "3 of 4 trials that the model expects on the front lie at its upper bound"));
            assert_non_null(strstr(warned, "upper bound 0.1; try max = 0.5"));
            free(warned);
        }
        free(html);
        free(svg);
        report_free(&report);
    }
}

TEST(pictures_are_pictures)
{
    SAMPLE *s = sample_make(60);
    STRBUF(out, 64u << 20);
    if (report_render_open(NULL) != ST_OK) {
        FAILS(report_write(&s->view, s->store_path, REPORT_PDF, &out, err), ST_USAGE, "librsvg");
    } else {
        OK(report_write(&s->view, s->store_path, REPORT_PDF, &out, err));
        assert_true(out.len > 10000 && memcmp(out.text, "%PDF-", 5) == 0);
        strbuf_clear(&out);
        OK(report_write(&s->view, s->store_path, REPORT_PNG, &out, err));
        assert_true(out.len > 10000 && memcmp(out.text, "\x89PNG\r\n", 6) == 0);
    }
}

static char *write_figure(struct sample *s, enum report_figure kind, enum report_format format, double width_pt)
{
    struct study_view *view = &s->view;
    const struct figure figure = {.kind = kind, .format = format, .width_pt = width_pt};
    STRBUF(out, 64u << 20);

    OK(report_write_figure(&view, 1, &figure, &out, err));
    char *text = mem_alloc(out.len + 1); /* a picture has zeros inside */
    memcpy(text, out.text, out.len);
    return text;
}

/* Points of the smallest letters, as the renderer sees them: pixels of the style at the scale of the whole. */
static double smallest_letters(const char *svg)
{
    double units = atof(strstr(svg, "viewBox=\"0 0 ") + strlen("viewBox=\"0 0 ")), smallest = 1e9;
    double points = atof(strstr(svg, " width=\"") + strlen(" width=\""));

    for (const char *at = strstr(svg, "font"); at != NULL; at = strstr(at + 1, "font")) {
        double size = strncmp(at, "font:", 5) == 0         ? atof(at + 5)
                      : strncmp(at, "font-size:", 10) == 0 ? atof(at + 10)
                                                           : 0;
        if (size > 0 && size < smallest)
            smallest = size;
    }
    return smallest * points / units;
}

/* Of the width that was asked for, with letters of 7 pt, without a ground, variables or a thing to fetch. */
TEST(figures_fit_a_column)
{
    static const double widths[] = {FIGURE_MIN_PT, 237.6, 500.3};
    SAMPLE *s = sample_make(60);
    size_t n_done = n_in_state(s, TRIAL_DONE);
    gp_insight_init(&s->view.advice, &s->view.search.space, &s->view.history, 1);
    s->view.has_insight = true;
    for (int i = 0; i < 9; i++) {
        enum report_figure kind = i % 3 == 0 ? FIGURE_FRONT : i % 3 == 1 ? FIGURE_IMPORTANCE : FIGURE_PARALLEL;
        char *svg = write_figure(s, kind, REPORT_SVG, widths[i / 3]), width[64], number[HUMAN_TEXT_MAX];
        check_markup(svg, false);
        check_self_contained(svg);
        assert_null(strstr(svg, "var("));
        assert_null(strstr(svg, "class=\"paper\""));
        assert_null(strstr(svg, "<title>"));
        snprintf(width, sizeof width, " width=\"%spt\"", text_number(widths[i / 3], number));
        assert_non_null(strstr(svg, width));
        assert_true(smallest_letters(svg) >= 7.0 && smallest_letters(svg) < 8.0);
        if (kind == FIGURE_FRONT)
            assert_non_null(strstr(svg, "cost of a trial in seconds, log scale"));
        if (kind == FIGURE_IMPORTANCE)
            assert_int_equal(count(svg, "class=\"whisker\""), 2 * SAMPLE_DIM);
        if (kind == FIGURE_PARALLEL) /* one of each in the legend */
            assert_int_equal(count(svg, "class=\"other\"") + count(svg, "class=\"member\"") +
                                 count(svg, "class=\"chosen\""),
                             n_done + 3);
        mem_free(svg);
    }
    if (report_render_open(NULL) == ST_OK) {
        char *pdf = write_figure(s, FIGURE_FRONT, REPORT_PDF, 237.6),
             *png = write_figure(s, FIGURE_FRONT, REPORT_PNG, 237.6);
        assert_memory_equal(pdf, "%PDF-", 5);
        assert_memory_equal(png, "\x89PNG\r\n", 6);
        assert_memory_equal(png + 16, "\0\0\x03\xde", 4); /* 3.3 inches of 300 dots */
        mem_free(pdf);
        mem_free(png);
    }
}

/* A row for each member and each parameter, all of one length, and nothing that LaTeX would take for a command. */
TEST(the_front_is_a_table_of_latex)
{
    SAMPLE *s = sample_make(60);
    s->view.study.name = (char *)"50% of_a&b #1 {x}\\input";
    s->view.study.metric = (char *)"score^2";
    s->view.search.space.params[0].min = 2e-7;
    MEM_LOCAL char *tex = write_figure(s, FIGURE_FRONT, REPORT_TEX, 237.6);
    assert_non_null(strstr(tex, "50\\% of\\_a\\&b \\#1 \\{x\\}\\textbackslash{}input"));
    assert_non_null(strstr(tex, "score\\textasciicircum{}2"));
    assert_non_null(strstr(tex, "learning\\_rate} &"));
    assert_non_null(strstr(tex, "    train.learning\\_rate & log & $2 \\times 10^{-7}$ & $0.1$ \\\\\n"));
    size_t n_rows = 0;
    char *search = strstr(tex, "\\midrule") + 1;
    for (char *line = strtok(search, "\n"); line != NULL && strstr(line, "bottomrule") == NULL;
         line = strtok(NULL, "\n")) {
        if (strncmp(line, "    ", 4) != 0)
            continue;
        assert_int_equal(count(line, " & "), 4 + SAMPLE_DIM);
        n_rows++;
    }
    assert_int_equal(n_rows, n_front(s));
}

TEST(a_figure_of_nothing_is_refused)
{
    SAMPLE *s = sample_make(0);
    struct study_view *view = &s->view;
    STRBUF(out, 1 << 20);
    for (int kind = FIGURE_FRONT; kind <= FIGURE_PARALLEL; kind++) {
        const struct figure figure = {.kind = (enum report_figure)kind, .format = REPORT_SVG, .width_pt = 240};
        FAILS(report_write_figure(&view, 1, &figure, &out, err), kind == FIGURE_ATTAINMENT ? ST_USAGE : ST_NOTFOUND,
              kind == FIGURE_ATTAINMENT ? "name two studies or more" : "breakout");
        assert_int_equal(out.len, 0);
    }
}

TEST(a_limit_is_a_status)
{
    SAMPLE *s = sample_make(12);
    STRBUF(small, 1000);
    FAILS(report_write(&s->view, s->store_path, REPORT_HTML, &small, err), ST_LIMIT, "the report");
}

TEST_PROGRAM("report")
