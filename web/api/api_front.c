/* api_front.c - /front: the front by rising cost, each point with what is promised of it. */
#include "study/view/promise.h"
#include "web/text/put.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

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

static double trial_or_none(const struct page_study *p, size_t i)
{
    return i < p->view.n ? (double)i : (double)NAN;
}

static void put_front(const struct page_study *p, const size_t *front, size_t n, struct strbuf *out)
{
    const struct study_view *v = &p->view;

    put_json(out, "{'study':%s,'version':%lld,'cost_unit':%s,'direction':%s,'knee_trial':%g,'best_trial':%g",
             v->study.name, (long long)p->version, study_cost_unit(v->search.cost), study_direction(&v->study),
             trial_or_none(p, p->knee), trial_or_none(p, p->best));
    put_json(out, ",'reference':{'cost':%g,'score':%g", v->ref.cost, study_view_score(v, v->ref.score));
    if (study_view_has_third(v))
        put_json(out, ",'objective':%g", outcomes_third(&v->search.outcomes, v->ref.third));
    put_json(out, "},'model':%s,'note':%s,'points':[", page_study_advice_state(p), v->advice.note);
    for (size_t i = 0; i < n; i++) {
        struct promise promise;
        study_view_promise(v, front[i], &promise);
        put_json(out, i > 0 ? ",\n{'trial':%zu,'cost':%g,'score':%g," : "\n{'trial':%zu,'cost':%g,'score':%g,",
                 front[i], study_view_trial_cost(v, &v->trials[front[i]]), v->trials[front[i]].score);
        put_promise(out, &promise);
        if (study_view_has_third(v))
            put_json(out, ",'objective':%g", study_view_expected_third(v, front[i]));
        strbuf_add(out, "}");
    }
    strbuf_add(out, "]}\n");
}

enum status api_front(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);
    size_t n = 0;

    if (p == NULL)
        return err->status;
    MEM_LOCAL size_t *front = mem_array(p->n_front, sizeof *front);
    for (size_t i = 0; i < p->view.n; i++)
        if (p->view.on_front[i])
            front[n++] = i;
    qsort_r(front, n, sizeof *front, by_cost, p);
    put_front(p, front, n, out);
    serve_unlock(s);
    return ST_OK;
}
