/* hosts.c - see hosts.h and train_hosts_* in trainer.h.
 * Invariants: (1) a process gets a training only after it has given the secret and the same program text; (2) each call
 * is answered once, in order; (3) after a failure on one host the connections are shut and the hosts are of no use any
 * more. */
#include "trainer/team/hosts.h"

#include "base/mem.h"
#include "base/os/clock.h"
#include "base/os/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC "TRAWLTM1"
#define GREET_S 5.0 /* that a stranger may keep us waiting */

struct greeting {
    char magic[8], secret[33], program[128], name[HOST_NAME_MAX_BYTES];
    int32_t index; /* -1: of the control connection; else a data connection of that host */
    int32_t n_gpus;
};
struct welcome {
    int32_t index; /* -1: refused */
    char text[400];
};
struct begin {
    uint64_t n_ranks, first, n, n_threads;
    int32_t kind, unused;
};
struct answer {
    int32_t rc, unused;
    uint64_t text_bytes, out_bytes;
};

/* ---- life ---- */

static struct train_hosts *hosts_new(size_t n, size_t own, const char *program)
{
    struct train_hosts *hosts = mem_alloc(sizeof *hosts);

    hosts->n = n;
    hosts->own = own;
    hosts->listener = -1;
    snprintf(hosts->program, sizeof hosts->program, "%s", program);
    for (size_t i = 0; i < KERN_HOSTS_MAX; i++)
        hosts->v[i].control = hosts->v[i].data = -1;
    return hosts;
}

static void forget_answer(struct host *h)
{
    mem_free(h->text);
    mem_free(h->out);
    h->text = h->out = NULL;
}

static void host_leave(struct host *h)
{
    if (h->control >= 0)
        close(h->control);
    if (h->data >= 0)
        close(h->data);
    h->control = h->data = -1;
    forget_answer(h);
}

void train_hosts_close(struct train_hosts *hosts)
{
    const struct host_call end = {.call = HOST_END};

    if (hosts == NULL)
        return;
    for (size_t i = 1; i < KERN_HOSTS_MAX && !hosts->broken; i++)
        if (hosts->v[i].control >= 0)
            (void)!link_send(hosts->v[i].control, &end, sizeof end, NULL);
    for (size_t i = 0; i < KERN_HOSTS_MAX; i++)
        host_leave(&hosts->v[i]);
    if (hosts->listener >= 0)
        close(hosts->listener);
    mem_free(hosts);
}

const char *train_hosts_where(const struct train_hosts *hosts)
{
    return hosts->where;
}

static enum status split_where(const char *where, char *host, size_t size, int *ret_port, const char **ret_secret,
                               struct error *err)
{
    const char *slash = strchr(where, '/'), *colon = slash;
    char *end;

    while (colon != NULL && colon > where && *colon != ':')
        colon--;
    if (colon == NULL || colon == where || (size_t)(colon - where) >= size || strlen(slash + 1) != 32)
        return FAIL(err, ST_USAGE, "'%.300s' is no HOST:PORT/SECRET, as `trawl train --hosts` prints it", where);
    snprintf(host, size, "%.*s", (int)(colon - where), where);
    *ret_port = (int)strtol(colon + 1, &end, 10);
    *ret_secret = slash + 1;
    return end == slash && *ret_port > 0 && *ret_port < 65536
               ? ST_OK
               : FAIL(err, ST_USAGE, "'%.300s' has no port before its secret", where);
}

enum status train_hosts_listen(struct train_hosts **ret_hosts, size_t n, const char *listen_at, const char *program,
                               struct error *err)
{
    char host[200] = "";
    unsigned char random[16];
    struct train_hosts *hosts;
    int port = 0;

    *ret_hosts = NULL;
    if (n < 2 || n > KERN_HOSTS_MAX)
        return FAIL(err, ST_USAGE, "%zu hosts cannot train together; 2 to %d can", n, KERN_HOSTS_MAX);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return FAIL(err, ST_IO, "the system gives no random bytes: %s", strerror(errno));
    hosts = hosts_new(n, 0, program);
    enum status rc = link_listen(listen_at, 0, &hosts->listener, &port, err);
    if (rc == ST_OK && listen_at == NULL && gethostname(host, sizeof host - 1) != 0)
        rc = FAIL(err, ST_IO, "this machine has no name (%s); give --listen an address of it", strerror(errno));
    if (rc != ST_OK) {
        train_hosts_close(hosts);
        return rc;
    }
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(hosts->secret + 2 * i, 3, "%02x", random[i]);
    snprintf(hosts->where, sizeof hosts->where, "%s:%d/%s", listen_at != NULL ? listen_at : host, port, hosts->secret);
    *ret_hosts = hosts;
    return ST_OK;
}

/* ---- processes that join ---- */

size_t train_hosts_missing(const struct train_hosts *hosts)
{
    size_t n = 0;

    for (size_t i = 1; i < hosts->n; i++)
        n += hosts->v[i].data < 0;
    return n;
}

/* What there is against a process that greets; NULL: nothing. */
static const char *objection(struct train_hosts *hosts, const struct greeting *g, struct welcome *w)
{
    unsigned differs = 0;

    for (size_t i = 0; i < sizeof hosts->secret; i++)
        differs |= (unsigned)(g->secret[i] ^ hosts->secret[i]);
    if (memcmp(g->magic, MAGIC, sizeof g->magic) != 0 || differs != 0)
        return "the secret is of another training; copy the line again";
    if (strncmp(g->program, hosts->program, sizeof g->program) != 0) {
        snprintf(w->text, sizeof w->text, "it runs %.127s, and this host %.127s; all hosts need the same build",
                 hosts->program, g->program);
        return w->text;
    }
    if (g->index < 0 && train_hosts_missing(hosts) == 0)
        return "its hosts are complete";
    if (g->index >= (int32_t)hosts->n || g->index == 0 ||
        (g->index > 0 && (hosts->v[g->index].control < 0 || hosts->v[g->index].data >= 0)))
        return "it has no such host";
    return NULL;
}

/* One connection; a stranger's is closed. */
static void greet(struct train_hosts *hosts, int fd)
{
    struct greeting g;
    struct welcome w = {.index = -1};
    struct host *h = NULL;

    link_set_patience(fd, GREET_S);
    if (link_receive(fd, &g, sizeof g, NULL) != ST_OK) {
        close(fd);
        return;
    }
    g.program[sizeof g.program - 1] = g.name[sizeof g.name - 1] = '\0';
    const char *against = objection(hosts, &g, &w);
    if (against == NULL && g.index >= 0) {
        w.index = g.index;
    } else if (against == NULL) {
        for (size_t i = hosts->n - 1; i > 0; i--)
            if (hosts->v[i].control < 0)
                w.index = (int32_t)i;
    } else if (against != w.text) {
        snprintf(w.text, sizeof w.text, "%s", against);
    }
    if (link_send(fd, &w, sizeof w, NULL) != ST_OK || w.index < 0) {
        close(fd);
        return;
    }
    link_set_patience(fd, g.index < 0 ? LINK_DEAD_S : 0); /* an answer that has begun comes whole, or its host hangs */
    h = &hosts->v[w.index];
    *(g.index < 0 ? &h->control : &h->data) = fd;
    snprintf(h->name, sizeof h->name, "%s", g.name);
    h->n_gpus = g.n_gpus;
}

enum status train_hosts_wait(struct train_hosts *hosts, double wait_s, struct error *err)
{
    double until_s = clock_mono_s() + wait_s, left_s;
    int fd;

    do {
        for (size_t i = 1; i < hosts->n; i++) /* some that came have gone again */
            if (hosts->v[i].control >= 0 && link_has_news(hosts->v[i].control, 0))
                host_leave(&hosts->v[i]);
        if (train_hosts_missing(hosts) == 0)
            return ST_OK;
        left_s = until_s - clock_mono_s();
        TRY(link_accept(hosts->listener, left_s > 0 ? left_s : 0, &fd, err));
        if (fd >= 0)
            greet(hosts, fd);
    } while (left_s > 0);
    return ST_OK;
}

static enum status knock(const struct train_hosts *hosts, const char *where, int index, int n_gpus, double patience_s,
                         int *ret_fd, int *ret_index, struct error *err)
{
    struct greeting g = {.index = index, .n_gpus = n_gpus};
    char host[200];
    const char *secret = "";
    struct welcome w;
    int port = 0;

    TRY(split_where(where, host, sizeof host, &port, &secret, err));
    memcpy(g.magic, MAGIC, sizeof g.magic);
    snprintf(g.secret, sizeof g.secret, "%s", secret);
    snprintf(g.program, sizeof g.program, "%s", hosts->program);
    (void)gethostname(g.name, sizeof g.name - 1);
    TRY(link_connect(host, port, patience_s, ret_fd, err));
    link_set_patience(*ret_fd, patience_s);
    if (link_send(*ret_fd, &g, sizeof g, err) != ST_OK || link_receive(*ret_fd, &w, sizeof w, err) != ST_OK)
        return error_prefix(err, "%s does not answer as a training does", host);
    w.text[sizeof w.text - 1] = '\0';
    if (w.index < 0)
        return FAIL(err, ST_CONFIG, "%s refuses this host: %s", host, w.text);
    link_set_patience(*ret_fd, 0);
    *ret_index = w.index;
    return ST_OK;
}

enum status train_hosts_join(struct train_hosts **ret_hosts, const char *where, const char *program, int n_gpus,
                             double patience_s, struct error *err)
{
    struct train_hosts *hosts = hosts_new(1, 1, program);
    int index = -1, same;
    enum status rc = knock(hosts, where, -1, n_gpus, patience_s, &hosts->v[0].control, &index, err);

    if (rc == ST_OK)
        rc = knock(hosts, where, index, n_gpus, patience_s, &hosts->v[0].data, &same, err);
    if (rc != ST_OK) {
        train_hosts_close(hosts);
        *ret_hosts = NULL;
        return rc;
    }
    hosts->own = (size_t)index;
    snprintf(hosts->v[0].name, sizeof hosts->v[0].name, "%.*s", (int)strcspn(where, "/"), where);
    hosts->v[0].n = 1;
    *ret_hosts = hosts;
    return ST_OK;
}

/* ---- calls, by the first one ---- */

size_t train_hosts_share(const struct train_hosts *hosts, size_t n_ranks)
{
    return n_ranks / hosts->n + (n_ranks % hosts->n > 0);
}

bool train_hosts_broken(const struct train_hosts *hosts)
{
    return hosts != NULL && hosts->broken;
}

bool train_hosts_wanted(const struct train_hosts *hosts, size_t n_ranks, const struct kern *kern)
{
    return kern != NULL && (kern_kind(kern) == KERN_CUDA ? n_ranks > hosts_gpus_here(kern) : n_ranks >= hosts->n);
}

size_t hosts_gpus_here(const struct kern *kern)
{
    const struct kern_settings *s = &kern->settings;
    int there = kern_cuda_count() - s->ordinal;

    return kern_kind(kern) != KERN_CUDA || there <= 0 ? 0 : s->n_ordinals > 0 ? (size_t)s->n_ordinals : (size_t)there;
}

/* On CPUs alike, on GPUs each host its own until all ranks have one. */
static enum status deal(struct train_hosts *hosts, size_t n_ranks, enum kern_kind kind, size_t n_gpus,
                        struct error *err)
{
    size_t first = 0, most = n_gpus;

    hosts->span = (struct kern_span){0};
    for (size_t i = 0; i < hosts->n; i++) {
        struct host *h = &hosts->v[i];
        size_t left = n_ranks - first, own = n_ranks / hosts->n + (i < n_ranks % hosts->n);
        if (kind == KERN_CUDA)
            own = i == 0 ? n_gpus : (size_t)h->n_gpus;
        h->first = first;
        h->n = own < left ? own : left;
        first += h->n;
        most += i > 0 ? (size_t)h->n_gpus : 0;
        if (i == 0)
            hosts->span.n = h->n;
        else if (h->n > 0)
            hosts->span.links[hosts->span.n_links++] = (struct kern_link){h->data, h->first, h->n};
    }
    if (first < n_ranks)
        return FAIL(err, ST_CONFIG, "train.devices is %zu, and the %zu hosts have %zu GPUs together; lower it", n_ranks,
                    hosts->n, most);
    return ST_OK;
}

static enum status is_gone(struct host *h, struct error *err)
{
    return error_prefix(err, "host %s is gone", h->name);
}

static enum status send_call(struct host *h, const struct host_call *call, const char *text, const void *in,
                             struct error *err)
{
    h->answered = false;
    forget_answer(h);
    if (link_send(h->control, call, sizeof *call, err) != ST_OK ||
        link_send(h->control, text, call->text_bytes, err) != ST_OK ||
        link_send(h->control, in, call->in_bytes, err) != ST_OK)
        return is_gone(h, err);
    return ST_OK;
}

enum status hosts_call(struct train_hosts *hosts, const struct host_call *call, const char *text, const void *in,
                       struct error *err)
{
    for (size_t i = 1; i < hosts->n; i++)
        if (hosts->v[i].n > 0)
            TRY(send_call(&hosts->v[i], call, text, in, err));
    return ST_OK;
}

enum status hosts_begin(struct train_hosts *hosts, size_t n_ranks, const struct kern *kern, const char *config,
                        struct error *err)
{
    struct host_call call = {.call = HOST_BEGIN, .text_bytes = strlen(config) + 1, .in_bytes = sizeof(struct begin)};

    if (hosts->broken || train_hosts_missing(hosts) > 0)
        return FAIL(err, ST_DEVICE, "%zu of %zu hosts are not there", train_hosts_missing(hosts), hosts->n);
    hosts->n_ranks = n_ranks;
    TRY(deal(hosts, n_ranks, kern_kind(kern), hosts_gpus_here(kern), err));
    for (size_t i = 1; i < hosts->n; i++) {
        struct begin b = {n_ranks, hosts->v[i].first, hosts->v[i].n, kern_n_threads(kern), (int32_t)kern_kind(kern), 0};
        if (b.n > 0)
            TRY(send_call(&hosts->v[i], &call, config, &b, err));
    }
    return ST_OK;
}

static enum status take_answer(struct host *h, const struct host_call *call, struct error *err)
{
    struct answer a;

    TRY(link_receive(h->control, &a, sizeof a, err));
    if (a.text_bytes > ERROR_TEXT_MAX || (a.out_bytes != 0 && a.out_bytes != h->n * call->out_bytes))
        return FAIL(err, ST_CORRUPT, "an answer of %llu bytes to call %d", (unsigned long long)a.out_bytes,
                    (int)call->call);
    h->text = mem_alloc(a.text_bytes + 1);
    h->out = mem_alloc(a.out_bytes + 1);
    TRY(link_receive(h->control, h->text, a.text_bytes, err));
    TRY(link_receive(h->control, h->out, a.out_bytes, err));
    h->rc = (enum status)a.rc;
    h->answered = true;
    return ST_OK;
}

enum status hosts_look(struct train_hosts *hosts, double wait_s, const struct host_call *call, struct error *err)
{
    if (hosts->own > 0) /* nothing is due while a call runs */
        return link_has_news(hosts->v[0].control, 0)
                   ? FAIL(err, ST_IO, "host %s has ended the training; its output says why", hosts->v[0].name)
                   : ST_OK;
    for (size_t i = 1; i < hosts->n; i++) {
        struct host *h = &hosts->v[i];
        if (h->n == 0 || h->answered || !link_has_news(h->control, wait_s))
            continue;
        if (take_answer(h, call, err) != ST_OK)
            return is_gone(h, err);
    }
    return ST_OK;
}

bool hosts_have_answered(const struct train_hosts *hosts)
{
    for (size_t i = 1; i < hosts->n; i++)
        if (hosts->v[i].n > 0 && !hosts->v[i].answered)
            return false;
    return true;
}

bool hosts_failure(const struct train_hosts *hosts, struct error *ret_why)
{
    const struct host *found = NULL;

    for (size_t i = 1; i < hosts->n; i++) {
        const struct host *h = &hosts->v[i];
        if (h->n > 0 && h->answered && h->rc != ST_OK && (found == NULL || strstr(found->text, RANK_LET_GO) != NULL))
            found = h;
    }
    if (found != NULL)
        FAIL(ret_why, found->rc, "host %s: %s", found->name, found->text);
    return found != NULL;
}

void hosts_take_out(struct train_hosts *hosts, void *out, size_t out_bytes)
{
    for (size_t i = 1; i < hosts->n && out_bytes > 0; i++)
        if (hosts->v[i].n > 0)
            memcpy((char *)out + hosts->v[i].first * out_bytes, hosts->v[i].out, hosts->v[i].n * out_bytes);
}

void hosts_missing_text(const struct train_hosts *hosts, int awaited, char *buf, size_t size)
{
    size_t used = 0, n = 0;

    buf[0] = '\0';
    if (hosts->own > 0)
        snprintf(buf, size, "host %s has", hosts->v[0].name);
    for (size_t i = 1; i < hosts->n && hosts->own == 0 && used < size; i++) {
        const struct host *h = &hosts->v[i];
        bool is_it = awaited >= 0 ? hosts->span.links[awaited].first == h->first : !h->answered;
        if (h->n > 0 && is_it)
            used += (size_t)snprintf(buf + used, size - used, "%shost %s (ranks %zu to %zu) has", n++ > 0 ? ", " : "",
                                     h->name, h->first, h->first + h->n - 1);
    }
}

void hosts_break(struct train_hosts *hosts)
{
    hosts->broken = true;
    for (size_t i = 0; i < KERN_HOSTS_MAX; i++)
        if (hosts->v[i].control >= 0)
            (void)shutdown(hosts->v[i].control, SHUT_RDWR);
}

/* ---- calls, on the others ---- */

enum status hosts_next_call(struct train_hosts *hosts, struct host_call *call, char **ret_text, char **ret_in,
                            struct error *err)
{
    int fd = hosts->v[0].control;

    *ret_text = *ret_in = NULL;
    if (link_receive(fd, call, sizeof *call, err) != ST_OK)
        return is_gone(&hosts->v[0], err);
    *ret_text = mem_try_alloc(call->text_bytes + 1);
    *ret_in = mem_try_alloc(call->in_bytes + 1);
    if (*ret_text == NULL || *ret_in == NULL)
        return FAIL(err, ST_NOMEM, "no memory for %llu bytes from host %s", (unsigned long long)call->in_bytes,
                    hosts->v[0].name);
    if (link_receive(fd, *ret_text, call->text_bytes, err) != ST_OK ||
        link_receive(fd, *ret_in, call->in_bytes, err) != ST_OK)
        return is_gone(&hosts->v[0], err);
    return ST_OK;
}

enum status hosts_answer(struct train_hosts *hosts, enum status rc, const char *why, const void *out, size_t out_bytes,
                         struct error *err)
{
    struct answer a = {.rc = (int32_t)rc, .text_bytes = strlen(why), .out_bytes = rc == ST_OK ? out_bytes : 0};
    int fd = hosts->v[0].control;

    if (link_send(fd, &a, sizeof a, err) != ST_OK || link_send(fd, why, a.text_bytes, err) != ST_OK ||
        link_send(fd, out, a.out_bytes, err) != ST_OK)
        return is_gone(&hosts->v[0], err);
    return ST_OK;
}

enum status train_hosts_next(struct train_hosts *hosts, char **ret_config, struct train_part *ret_part,
                             struct error *err)
{
    struct host_call call;
    struct begin b;
    char *in;

    *ret_config = NULL;
    enum status rc = hosts_next_call(hosts, &call, ret_config, &in, err);
    if (rc == ST_OK && call.call == HOST_END) {
        mem_free(in);
        mem_free(*ret_config);
        *ret_config = NULL;
        return ST_OK;
    }
    if (rc == ST_OK && (call.call != HOST_BEGIN || call.in_bytes != sizeof b))
        rc = FAIL(err, ST_CORRUPT, "host %s calls %d where a training begins", hosts->v[0].name, (int)call.call);
    if (rc == ST_OK) {
        memcpy(&b, in, sizeof b);
        hosts->n_ranks = b.n_ranks;
        hosts->span = (struct kern_span){.first = b.first, .n = b.n, .n_links = 1};
        hosts->span.links[0] = (struct kern_link){.fd = hosts->v[0].data};
        *ret_part = (struct train_part){(enum kern_kind)b.kind, b.n_threads, b.first, b.n, b.n_ranks};
    }
    mem_free(in);
    if (rc != ST_OK) {
        mem_free(*ret_config);
        *ret_config = NULL;
    }
    return rc;
}

enum status train_hosts_refuse(struct train_hosts *hosts, const struct error *why, struct error *err)
{
    return hosts_answer(hosts, why->status, why->text, NULL, 0, err);
}
