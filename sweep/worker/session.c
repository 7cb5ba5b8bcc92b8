/* session.c - a device and a trainer for a setup; the device stays open between runs on it. */
#include "sweep/worker/session.h"

#include "base/os/machine.h"
#include "study/setup/setup.h"

/* The formulas are the same on every CPU, the bytes are not. */
static void log_units(const struct session *session, const struct setup *setup)
{
    const char *want = setup->train.vector_units, *have = kern_vector_units(session->kern);

    if (want[0] != '\0' && have[0] != '\0' && strcmp(want, have) != 0)
        log_warn("this run was made with the vector units %s, here they are %s: the same bytes cannot come out", want,
                 have);
}

#define WARM_ITERATIONS 2 /* plain, and recorded */

void session_expect_one(const struct setup *setup)
{
    if (env_find(setup->env->name) == setup->env) /* others are stepped on the host, with streams of their own */
        kern_expect_streams(1);
}

static int64_t ranks_here(const struct session *session, const struct train_settings *train)
{
    return session->ranks_here > 0 ? session->ranks_here : train->devices;
}

/* Several devices share the threads, those of a CPU or, of games that the host steps, those beside GPUs: what the
 * config gives to all devices, or the cores that are here to those that are. */
static size_t threads_of_rank(const struct train_settings *train, int64_t n_here)
{
    size_t n = train->threads > 0 ? (size_t)(train->threads / train->devices) : machine_cores() / (size_t)n_here;

    if (train->devices <= 1)
        return (size_t)train->threads;
    return n > 0 ? n : 1;
}

size_t session_threads(const struct session *session)
{
    return kern_n_threads(session->kern) * (session->ranks > 1 ? (size_t)session->ranks : 1);
}

/* Will cuBLASLt be needed? A guess from before the device is open, which costs 0.1 s of a start where it is wrong. */
static bool has_large_layers(const struct setup *setup)
{
    int64_t gates = setup->policy.core == POLICY_CORE_LSTM ? 4 : 3; /* a MinGRU's 3 of small layers are still small */

    return gates * setup->policy.hidden_size > 3 * KERN_SMALL_LAYER || setup->train.precision == TRAIN_F32 ||
           setup->policy.encoder == POLICY_ENCODER_CONV;
}

enum status session_open_device(struct session *session, const struct setup *setup, struct error *err)
{
    int64_t n = ranks_here(session, &setup->train);

    trainer_destroy(session->trainer); /* it borrows the device */
    session->trainer = NULL;
    if (session->kern != NULL && (session->device != setup->train.device || session->threads != setup->train.threads ||
                                  (kern_kind(session->kern) == KERN_CPU &&
                                   (session->ranks != setup->train.devices || session->ranks_were != n)))) {
        trainer_cache_destroy(session->cache);
        session->cache = NULL;
        kern_close(session->kern);
        session->kern = NULL;
    }
    if (session->kern == NULL) {
        struct kern_settings settings = {.kind = (enum kern_kind)setup->train.device,
                                         .n_threads = threads_of_rank(&setup->train, n),
                                         .ordinal = session->ordinal,
                                         .n_ordinals = session->n_gpus,
                                         .patience_s = setup->train.device_timeout_s,
                                         .large_layers = has_large_layers(setup)};
        TRY(kern_open(&session->kern, &settings, err));
        session->device = setup->train.device;
        session->threads = setup->train.threads;
        session->ranks = setup->train.devices;
        session->ranks_were = n;
        log_units(session, setup);
        if (kern_can_record(session->kern)) /* on a CPU nothing is expensive to create, and memory may be short */
            session->cache = trainer_cache_create();
    }
    return ST_OK;
}

static enum status await_hosts(const struct session *session, struct error *err)
{
    struct train_hosts *hosts = session->hosts;
    char news[TRAIN_NEWS_MAX];
    enum status rc;

    do {
        rc = train_hosts_wait(hosts, 0.1, news, err);
        if (news[0] != '\0' && session->by_hand && train_hosts_missing(hosts) > 0)
            log_info("%s; join with: trawl join %s", news, train_hosts_where(hosts));
        else if (news[0] != '\0')
            log_info("%s", news);
        if (rc == ST_OK && train_hosts_missing(hosts) > 0 && session->stop_waiting(session->ctx))
            rc = FAIL(err, ST_INTERRUPTED, "interrupted; hosts still missing: %zu", train_hosts_missing(hosts));
    } while (rc == ST_OK && train_hosts_missing(hosts) > 0);
    return rc;
}

enum status session_gather(struct session *session, struct train_hosts *hosts, int64_t n_ranks,
                           bool (*stop_waiting)(void *ctx), void *ctx, struct error *err)
{
    session->hosts = hosts;
    session->ranks_here = (int64_t)train_hosts_share(hosts, (size_t)n_ranks);
    session->stop_waiting = stop_waiting;
    session->ctx = ctx;
    return await_hosts(session, err);
}

static enum status open_on_hosts(struct session *session, const struct setup *setup, struct error *err)
{
    struct error why = {0};
    char *config = NULL;
    enum status rc;

    TRY(setup_to_ini(setup, &config, err));
    for (;;) {
        rc = trainer_create_on(&session->trainer, session->hosts, config, session->kern, setup->env,
                               setup->env_settings, &setup->policy, &setup->train, &why);
        if (rc == ST_OK || !train_hosts_short(session->hosts))
            break;
        log_warn("%s; waiting for another host%s%s", why.text, session->by_hand ? ": trawl join " : "",
                 session->by_hand ? train_hosts_where(session->hosts) : "");
        error_clear(&why);
        rc = await_hosts(session, &why);
        if (rc != ST_OK)
            break;
    }
    mem_free(config);
    return rc == ST_OK ? rc : FAIL(err, rc, "%s", why.text);
}

enum status session_open(struct session *session, const struct setup *setup, struct error *err)
{
    if (session->kern == NULL)
        session_expect_one(setup);
    TRY(session_open_device(session, setup, err));
    if (session->hosts != NULL)
        return open_on_hosts(session, setup, err);
    return trainer_create_cached(&session->trainer, session->cache, session->kern, setup->env, setup->env_settings,
                                 &setup->policy, &setup->train, err);
}

enum status session_begin(struct session *session, const struct setup *setup, struct error *err)
{
    if (setup->train.from_policy[0] == '\0')
        return ST_OK;
    return trainer_begin_from(session->trainer, setup->train.from_policy, err);
}

void session_warm_up(struct session *session, const struct setup *setup)
{
    struct error why = {0};

    if (session->cache == NULL || setup->train.devices > 1) /* several devices leave nothing to later trainers */
        return;
    enum status rc = session_open(session, setup, &why);
    for (int i = 0; rc == ST_OK && i < WARM_ITERATIONS; i++)
        rc = trainer_iterate(session->trainer, &why);
    THEN(rc, trainer_sync(session->trainer, &why));
    if (rc != ST_OK)
        log_debug("the device was not warmed up: %s", why.text);
    trainer_destroy(session->trainer);
    session->trainer = NULL;
}

void session_close(struct session *session)
{
    trainer_destroy(session->trainer);
    trainer_cache_destroy(session->cache);
    kern_close(session->kern);
    session->trainer = NULL;
    session->cache = NULL;
    session->kern = NULL;
}

cJSON *session_profile_json(const double phase_s[PHASE_COUNT])
{
    cJSON *json = cJSON_CreateObject();
    double sum = 0;

    for (int i = 0; i < PHASE_COUNT; i++)
        sum += phase_s[i];
    for (int i = 0; i < PHASE_COUNT; i++) {
        cJSON *phase = cJSON_CreateObject();
        json_add_f64(phase, "ms", phase_s[i] * 1e3);
        json_add_f64(phase, "percent", sum > 0 ? 100 * phase_s[i] / sum : 0);
        json_add(json, train_phase_name((enum train_phase)i), phase);
    }
    return json;
}
