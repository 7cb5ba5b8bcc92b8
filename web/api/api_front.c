/* api_front.c - /front: the front by rising cost, each point with what is promised of it. */
#include "base/mem.h"
#include "base/status.h"
#include "base/text/strbuf.h"
#include "study/view/promise.h"
#include "web/serve/answer_cache.h"
#include "web/serve/data/json_text.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double cost_of(const struct page_study *p, size_t i)
{
    struct promise promise;

    study_view_promise(&p->view, i, &promise);
    return promise.cost;
}

static int by_cost(const void *pa, const void *pb, void *ctx)
{
    const struct page_study *p = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double ca = cost_of(p, a), cb = cost_of(p, b);

    return ca != cb ? (ca > cb) - (ca < cb) : (a > b) - (a < b);
}

static void put_trial_or_null(struct strbuf *out, const struct page_study *p, size_t i)
{
    if (i < p->view.n)
        strbuf_addf(out, "%zu", i);
    else
        strbuf_add(out, "null");
}

static void put_objective(const struct study_view *v, size_t i, struct strbuf *out)
{
    if (!study_view_has_third(v))
        return;
    strbuf_add(out, ",\"objective\":");
    put_f64(out, study_view_expected_third(v, i));
}

static void put_front(const struct page_study *p, const size_t *front, size_t n, struct strbuf *out)
{
    strbuf_add(out, "{\"study\":");
    put_str(out, p->view.study.name);
    strbuf_addf(out,
                ",\"version\":%lld,\"cost_unit\":\"%s\",\"direction\":\"%s\",\"knee_trial\":", (long long)p->version,
                study_cost_unit(p->view.search.cost), study_direction(&p->view.study));
    put_trial_or_null(out, p, p->knee);
    strbuf_add(out, ",\"best_trial\":");
    put_trial_or_null(out, p, p->best);
    strbuf_add(out, ",\"reference\":{\"cost\":");
    put_f64(out, p->view.ref.cost);
    strbuf_add(out, ",\"score\":");
    put_f64(out, study_view_score(&p->view, p->view.ref.score));
    if (study_view_has_third(&p->view)) {
        strbuf_add(out, ",\"objective\":");
        put_f64(out, outcomes_third(&p->view.search.outcomes, p->view.ref.third));
    }
    strbuf_addf(out, "},\"model\":\"%s\",\"note\":", page_study_advice_state(p));
    put_str(out, p->view.advice.note);
    strbuf_add(out, ",\"points\":[");
    for (size_t i = 0; i < n; i++) {
        struct promise promise;
        study_view_promise(&p->view, front[i], &promise);
        strbuf_addf(out, "%s{\"trial\":%zu,\"cost\":", i > 0 ? ",\n" : "\n", front[i]);
        put_f64(out, study_view_trial_cost(&p->view, &p->view.trials[front[i]]));
        strbuf_add(out, ",\"score\":");
        put_f64(out, p->view.trials[front[i]].score);
        put_promise(out, &promise);
        put_objective(&p->view, front[i], out);
        strbuf_add(out, "}");
    }
    strbuf_add(out, "]}\n");
}

enum status api_front(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                      struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);
    size_t *front, n = 0;

    (void)answer;
    if (p == NULL)
        return err->status;
    front = mem_array(p->n_front, sizeof *front);
    for (size_t i = 0; i < p->view.n; i++)
        if (p->view.on_front[i])
            front[n++] = i;
    qsort_r(front, n, sizeof *front, by_cost, p);
    put_front(p, front, n, out);
    serve_unlock(s);
    mem_free(front);
    return ST_OK;
}
