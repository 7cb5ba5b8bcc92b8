/* api_front.c - /front: the front by rising cost, each point with the model's interval when there is a model. */
#include "web/serve_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_cost(const void *pa, const void *pb, void *ctx)
{
    const struct view *v = ctx;
    size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    double ca = v->rows[a].cost, cb = v->rows[b].cost;

    return ca != cb ? (ca > cb) - (ca < cb) : (a > b) - (a < b);
}

static void put_trial_or_null(struct strbuf *out, const struct view *v, size_t i)
{
    if (i < v->n)
        strbuf_addf(out, "%zu", i);
    else
        strbuf_add(out, "null");
}

static void put_front(const struct view *v, const size_t *front, size_t n, const struct model_belief *beliefs,
                      struct strbuf *out)
{
    strbuf_add(out, "{\"study\":");
    put_str(out, v->study.name);
    strbuf_addf(out,
                ",\"version\":%lld,\"cost_unit\":\"%s\",\"direction\":\"%s\",\"knee_trial\":", (long long)v->version,
                v->cost_is_steps ? "steps" : "s", v->study.maximize ? "maximize" : "minimize");
    put_trial_or_null(out, v, v->knee);
    strbuf_add(out, ",\"best_trial\":");
    put_trial_or_null(out, v, v->best);
    strbuf_add(out, ",\"reference\":{\"cost\":");
    put_f64(out, v->ref.cost);
    strbuf_add(out, ",\"score\":");
    put_f64(out, view_score(v, v->ref.score));
    strbuf_addf(out, "},\"model\":\"%s\",\"points\":[", model_state_name(n > 0 ? beliefs[0].state : MODEL_NONE));
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s{\"trial\":%zu,\"cost\":", i > 0 ? ",\n" : "\n", front[i]);
        put_f64(out, view_cost(v, front[i]));
        strbuf_add(out, ",\"score\":");
        put_f64(out, v->trials[front[i]].score);
        put_model_belief(out, &beliefs[i], v->study.maximize);
        strbuf_add(out, "}");
    }
    strbuf_add(out, "]}\n");
}

/* The front's trials (n), owned by the caller; the study's model version. */
static enum status take_front(struct serve *s, const struct request *r, size_t **ret_front, size_t *ret_n,
                              int64_t *ret_settled, struct error *err)
{
    struct view *v = serve_lock_view(s, r->study, err);
    size_t *front, n = 0;

    if (v == NULL)
        return err->status;
    front = mem_array(v->n_front, sizeof *front);
    for (size_t i = 0; front != NULL && i < v->n; i++)
        if (v->on_front[i])
            front[n++] = i;
    if (front != NULL)
        qsort_r(front, n, sizeof *front, by_cost, v);
    *ret_settled = v->settled;
    serve_unlock(s);
    *ret_front = front;
    *ret_n = n;
    return front != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a front");
}

enum status api_front(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                      struct error *err)
{
    struct model_belief *beliefs;
    struct view *v;
    size_t *front = NULL, n = 0;
    int64_t settled = 0;

    (void)answer;
    TRY(take_front(s, r, &front, &n, &settled, err));
    beliefs = mem_array(n, sizeof *beliefs);
    if (beliefs == NULL) {
        mem_free(front);
        return FAIL(err, ST_NOMEM, "out of memory for a front");
    }
    models_belief(s, r->study, settled, front, n, beliefs);
    v = serve_lock_view(s, r->study,
                        err); /* trials only come, so the front's are still there, unless the study is new */
    size_t kept = 0;
    for (size_t i = 0; v != NULL && i < n; i++)
        kept += front[i] < v->n;
    if (v != NULL && kept == n)
        put_front(v, front, n, beliefs, out);
    if (v != NULL)
        serve_unlock(s);
    mem_free(front);
    mem_free(beliefs);
    if (v == NULL)
        return err->status;
    return kept == n ? ST_OK : FAIL(err, ST_BUSY, "the study has just been replaced; ask again");
}
