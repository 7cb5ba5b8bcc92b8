/* api_front.c - /front: the front by rising cost, each point with what is promised of it. */
#include "base/mem.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "study/promise.h"
#include "web/serve/answer_cache.h"
#include "web/serve/json_text.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/served_study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double cost_of(const struct view *v, size_t i)
{
    struct promise p;

    view_promise(v, i, &p);
    return p.cost;
}

static int by_cost(const void *pa, const void *pb, void *ctx)
{
    const struct view *v = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double ca = cost_of(v, a), cb = cost_of(v, b);

    return ca != cb ? (ca > cb) - (ca < cb) : (a > b) - (a < b);
}

static void put_trial_or_null(struct strbuf *out, const struct view *v, size_t i)
{
    if (i < v->n)
        strbuf_addf(out, "%zu", i);
    else
        strbuf_add(out, "null");
}

static void put_front(const struct view *v, const size_t *front, size_t n, struct strbuf *out)
{
    strbuf_add(out, "{\"study\":");
    put_str(out, v->study.name);
    strbuf_addf(out,
                ",\"version\":%lld,\"cost_unit\":\"%s\",\"direction\":\"%s\",\"knee_trial\":", (long long)v->version,
                v->cost == SEARCH_COST_STEPS ? "steps" : "s", v->study.maximize ? "maximize" : "minimize");
    put_trial_or_null(out, v, v->knee);
    strbuf_add(out, ",\"best_trial\":");
    put_trial_or_null(out, v, v->best);
    strbuf_add(out, ",\"reference\":{\"cost\":");
    put_f64(out, v->ref.cost);
    strbuf_add(out, ",\"score\":");
    put_f64(out, view_score(v, v->ref.score));
    strbuf_addf(out, "},\"model\":\"%s\",\"note\":", view_advice_state(v));
    put_str(out, v->advice.note);
    strbuf_add(out, ",\"points\":[");
    for (size_t i = 0; i < n; i++) {
        struct promise p;
        view_promise(v, front[i], &p);
        strbuf_addf(out, "%s{\"trial\":%zu,\"cost\":", i > 0 ? ",\n" : "\n", front[i]);
        put_f64(out, view_cost(v, front[i]));
        strbuf_add(out, ",\"score\":");
        put_f64(out, v->trials[front[i]].score);
        put_promise(out, &p);
        strbuf_add(out, "}");
    }
    strbuf_add(out, "]}\n");
}

enum status api_front(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                      struct error *err)
{
    struct view *v = serve_lock_view(s, r->study, err);
    size_t *front, n = 0;

    (void)answer;
    if (v == NULL)
        return err->status;
    front = mem_array(v->n_front, sizeof *front);
    for (size_t i = 0; front != NULL && i < v->n; i++)
        if (v->on_front[i])
            front[n++] = i;
    if (front != NULL) {
        qsort_r(front, n, sizeof *front, by_cost, v);
        put_front(v, front, n, out);
    }
    serve_unlock(s);
    mem_free(front);
    return front != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a front");
}
