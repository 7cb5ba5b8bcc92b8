/* hosts.c - see hosts.h and train_hosts_* in trainer.h.
 * Invariants: (1) a process gets a training only after it has given the secret and the same program text; (2) each call
 * is answered once, in order; (3) after a failure on one host the connections are shut and the hosts are of no use any
 * more. */
#include "trainer/team/hosts.h"

#include "base/os/link.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#define MAGIC "TRAWLTM1"
#define GREET_S 5.0 /* that a connection may take to greet */
#define LOOK_S 0.5 /* how often it is looked for those that did not */

struct begin {
    uint64_t n_ranks, first, n, n_threads;
    int32_t kind, unused;
};
struct answer {
    int32_t rc;
    uint8_t let_go, leaves, unused[2];
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
    for (size_t i = 0; i < HOST_GUESTS_MAX; i++)
        hosts->guests[i].fd = -1;
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
    h->leaves = false;
    forget_answer(h);
}

static void guest_leave(struct guest *guest)
{
    if (guest->fd >= 0)
        close(guest->fd);
    guest->fd = -1;
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
    for (size_t i = 0; i < HOST_GUESTS_MAX; i++)
        guest_leave(&hosts->guests[i]);
    if (hosts->listener >= 0)
        close(hosts->listener);
    mem_free(hosts);
}

const char *train_hosts_where(const struct train_hosts *hosts)
{
    return hosts->where;
}

/* 0: it is none. */
static int read_port(const char *text, char end)
{
    char *rest;
    long port = strtol(text, &rest, 10);

    return rest != text && *rest == end && port > 0 && port < 65536 ? (int)port : 0;
}

static enum status split_where(const char *where, char *host, size_t size, int *ret_port, const char **ret_secret,
                               struct error *err)
{
    const char *slash = strchr(where, '/'), *colon = slash;

    while (colon != NULL && colon > where && *colon != ':')
        colon--;
    if (colon == NULL || colon == where || (size_t)(colon - where) >= size || strlen(slash + 1) != 32)
        return FAIL(err, ST_USAGE, "'%.300s' is not HOST:PORT/SECRET, as `trawl train --hosts` prints it", where);
    snprintf(host, size, "%.*s", (int)(colon - where), where);
    *ret_port = read_port(colon + 1, '/');
    *ret_secret = slash + 1;
    return *ret_port > 0 ? ST_OK : FAIL(err, ST_USAGE, "'%.300s' has no port before its secret", where);
}

/* "node1", "node1:40217", ":40217", "[fd00::1]:40217" or "fd00::1". *ret_port: 0 where there is none. */
static enum status split_listen(const char *at, char *host, size_t size, int *ret_port, struct error *err)
{
    const char *colon = strrchr(at, ':'), *bracket = at[0] == '[' ? strchr(at, ']') : NULL;
    bool has_port = colon != NULL && (bracket != NULL ? colon == bracket + 1 : strchr(at, ':') == colon);
    size_t n = bracket != NULL ? (size_t)(bracket - at) - 1 : has_port ? (size_t)(colon - at) : strlen(at);

    *ret_port = has_port ? read_port(colon + 1, '\0') : 0;
    if (n >= size || (has_port && *ret_port == 0) ||
        (at[0] == '[' && !has_port && (bracket == NULL || bracket[1] != '\0')))
        return FAIL(err, ST_USAGE,
                    "--listen '%.300s' is not an ADDRESS, ADDRESS:PORT or :PORT with a port of 1 to 65535", at);
    snprintf(host, size, "%.*s", (int)n, at + (bracket != NULL));
    return ST_OK;
}

enum status train_hosts_listen(struct train_hosts **ret_hosts, size_t n, const char *listen_at, const char *program,
                               struct error *err)
{
    char host[200] = "";
    unsigned char random[16];
    int port = 0;

    *ret_hosts = NULL;
    if (n < 2 || n > KERN_HOSTS_MAX)
        return FAIL(err, ST_USAGE, "%zu hosts cannot train together; 2 to %d can", n, KERN_HOSTS_MAX);
    if (listen_at != NULL)
        TRY(split_listen(listen_at, host, sizeof host, &port, err));
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return FAIL(err, ST_IO, "the system gives no random bytes: %s", strerror(errno));
    struct train_hosts *hosts = hosts_new(n, 0, program);
    enum status rc = link_listen(host[0] != '\0' ? host : NULL, port, &hosts->listener, &port, err);
    if (rc == ST_OK && host[0] == '\0' && gethostname(host, sizeof host - 1) != 0)
        rc = FAIL(err, ST_IO, "this machine has no name (%s); give --listen an address of it", strerror(errno));
    if (rc != ST_OK) {
        train_hosts_close(hosts);
        return rc;
    }
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(hosts->secret + 2 * i, 3, "%02x", random[i]);
    snprintf(hosts->where, sizeof hosts->where, "%s:%d/%s", host, port, hosts->secret);
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

/* The first place that no host has taken, also none that is still to make its second connection; n: none. */
static size_t free_place(const struct train_hosts *hosts)
{
    size_t i = 1;

    while (i < hosts->n && hosts->v[i].control >= 0)
        i++;
    return i;
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
    if (g->index < 0 && free_place(hosts) == hosts->n) {
        w->index = WELCOME_COMPLETE;
        return "its hosts are complete";
    }
    if (g->index >= (int32_t)hosts->n || g->index == 0 ||
        (g->index > 0 && (hosts->v[g->index].control < 0 || hosts->v[g->index].data >= 0)))
        return "it has no such host";
    return NULL;
}

/* Takes the connection of one that has greeted, or closes it. *ret_host: the host that is here by it; NULL: none. */
static void greet(struct train_hosts *hosts, int fd, struct greeting *g, struct host **ret_host)
{
    struct welcome w = {.index = WELCOME_REFUSED};

    g->program[sizeof g->program - 1] = g->name[sizeof g->name - 1] = '\0';
    const char *against = objection(hosts, g, &w);
    if (against == NULL)
        w.index = g->index >= 0 ? g->index : (int32_t)free_place(hosts);
    else if (against != w.text)
        snprintf(w.text, sizeof w.text, "%s", against);
    if (link_send(fd, &w, sizeof w, NULL) != ST_OK || w.index < 0) {
        close(fd);
        return;
    }
    link_set_patience(fd, g->index < 0 ? LINK_DEAD_S : 0); /* an answer that has begun comes whole, or its host hangs */
    struct host *h = &hosts->v[w.index];
    *(g->index < 0 ? &h->control : &h->data) = fd;
    snprintf(h->name, sizeof h->name, "%s", g->name);
    h->n_gpus = g->n_gpus;
    *ret_host = h->data >= 0 ? h : NULL;
}

/* For a connection that has just come; of too many the one that has been silent for longest makes room. */
static void guest_add(struct train_hosts *hosts, int fd)
{
    struct guest *guest = &hosts->guests[0];

    for (size_t i = 0; i < HOST_GUESTS_MAX; i++)
        if (guest->fd >= 0 && (hosts->guests[i].fd < 0 || hosts->guests[i].until_s < guest->until_s))
            guest = &hosts->guests[i];
    guest_leave(guest);
    *guest = (struct guest){.fd = fd, .until_s = clock_mono_s() + GREET_S};
}

/* Takes what has come of its greeting. */
static void guest_look(struct train_hosts *hosts, struct guest *guest, struct host **ret_host)
{
    ssize_t got =
        recv(guest->fd, (char *)&guest->greeting + guest->got, sizeof guest->greeting - guest->got, MSG_DONTWAIT);

    guest->got += got > 0 ? (size_t)got : 0;
    if (guest->got == sizeof guest->greeting) {
        int fd = guest->fd;
        guest->fd = -1;
        greet(hosts, fd, &guest->greeting, ret_host);
    } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || clock_mono_s() > guest->until_s) {
        guest_leave(guest);
    }
}

/* Waits until something has come from anybody, and for wait_s at most. */
static void wait_for_any(const struct train_hosts *hosts, double wait_s)
{
    struct pollfd fds[1 + KERN_HOSTS_MAX + HOST_GUESTS_MAX] = {{.fd = hosts->listener, .events = POLLIN}};
    nfds_t n = 1;

    for (size_t i = 1; i < hosts->n; i++) /* poll passes over those that are -1 */
        fds[n++] = (struct pollfd){.fd = hosts->v[i].control, .events = POLLIN};
    for (size_t i = 0; i < HOST_GUESTS_MAX; i++)
        fds[n++] = (struct pollfd){.fd = hosts->guests[i].fd, .events = POLLIN};
    (void)poll(fds, n, wait_s > 0 ? (int)ceil(1e3 * wait_s) : 0);
}

static void write_news(const struct train_hosts *hosts, const char *name, const char *what, char *ret_news)
{
    size_t missing = train_hosts_missing(hosts);
    int used = snprintf(ret_news, TRAIN_NEWS_MAX, "host %s %s: %zu of %zu hosts are here", name, what,
                        hosts->n - missing, hosts->n);

    if (missing > 0)
        snprintf(ret_news + used, TRAIN_NEWS_MAX - (size_t)used, ", waiting for %zu", missing);
}

/* Some that came have gone again; the first of them that was here is the news. */
static void see_off(struct train_hosts *hosts, char *ret_news)
{
    for (size_t i = 1; i < hosts->n && ret_news[0] == '\0'; i++) {
        struct host *h = &hosts->v[i];
        bool was_here = h->data >= 0;
        if (h->control < 0 || !(h->leaves || link_has_news(h->control, 0)))
            continue;
        host_leave(h);
        if (was_here)
            write_news(hosts, h->name, "has left", ret_news);
    }
}

/* Takes connections that have come, and what guests have sent. *ret_came: the host that is here by it. */
static enum status receive(struct train_hosts *hosts, struct host **ret_came, struct error *err)
{
    int fd;

    TRY(link_accept(hosts->listener, 0, &fd, err));
    if (fd >= 0)
        guest_add(hosts, fd);
    for (size_t i = 0; i < HOST_GUESTS_MAX && *ret_came == NULL; i++)
        if (hosts->guests[i].fd >= 0)
            guest_look(hosts, &hosts->guests[i], ret_came);
    return ST_OK;
}

enum status train_hosts_wait(struct train_hosts *hosts, double wait_s, char *ret_news, struct error *err)
{
    double until_s = clock_mono_s() + wait_s, left_s = wait_s;
    struct host *came = NULL;

    ret_news[0] = '\0';
    do {
        see_off(hosts, ret_news);
        if (ret_news[0] != '\0' || train_hosts_missing(hosts) == 0)
            return ST_OK;
        wait_for_any(hosts, left_s < LOOK_S ? left_s : LOOK_S);
        TRY(receive(hosts, &came, err));
        left_s = until_s - clock_mono_s();
    } while (left_s > 0 && came == NULL);
    if (came != NULL)
        write_news(hosts, came->name, "has joined", ret_news);
    return ST_OK;
}

void hosts_turn_away(struct train_hosts *hosts)
{
    struct host *nobody = NULL;
    double now_s = clock_mono_s();

    if (hosts == NULL || hosts->own > 0 || hosts->broken || train_hosts_missing(hosts) > 0 ||
        now_s - hosts->turned_s < LOOK_S)
        return;
    hosts->turned_s = now_s;
    (void)!receive(hosts, &nobody, NULL); /* no place is free: nobody comes in */
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
        return error_prefix(err, "%s does not answer as a training that waits for hosts would", host);
    w.text[sizeof w.text - 1] = '\0';
    if (w.index < 0)
        return FAIL(err, w.index == WELCOME_COMPLETE ? ST_BUSY : ST_CONFIG, "%s refuses this host: %s", host, w.text);
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

    THEN(rc, knock(hosts, where, index, n_gpus, patience_s, &hosts->v[0].data, &same, err));
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

bool train_hosts_short(const struct train_hosts *hosts)
{
    return hosts != NULL && !hosts->broken && train_hosts_missing(hosts) > 0;
}

bool train_hosts_lost(const struct train_hosts *hosts)
{
    return hosts != NULL && hosts->lost;
}

const char *train_hosts_leaving(const struct train_hosts *hosts)
{
    for (size_t i = 1; hosts != NULL && i < hosts->n; i++)
        if (hosts->v[i].leaves)
            return hosts->v[i].name;
    return NULL;
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

static enum status take_answer(struct host *h, const struct host_call *call, struct error *err)
{
    struct answer a;

    TRY(link_receive(h->control, &a, sizeof a, err));
    if (a.text_bytes > ERROR_TEXT_MAX || a.out_bytes != (a.rc == ST_OK ? h->n * call->out_bytes : 0))
        return FAIL(err, ST_CORRUPT, "an answer of %llu bytes to call %d", (unsigned long long)a.out_bytes,
                    (int)call->call);
    h->text = mem_alloc(a.text_bytes + 1);
    h->out = mem_alloc(a.out_bytes + 1);
    TRY(link_receive(h->control, h->text, a.text_bytes, err));
    TRY(link_receive(h->control, h->out, a.out_bytes, err));
    h->rc = (enum status)a.rc;
    h->let_go = a.let_go != 0;
    h->leaves = a.leaves != 0;
    h->answered = true;
    return ST_OK;
}

static enum status await_answer(struct host *h, const struct host_call *call, double until_s, struct error *err)
{
    while (!h->answered) {
        double left_s = until_s - clock_mono_s();
        if (left_s <= 0)
            return FAIL(err, ST_DEVICE, "host %s does not answer (train.rank_timeout_s)", h->name);
        if (link_has_news(h->control, left_s) && take_answer(h, call, err) != ST_OK)
            return is_gone(h, err);
    }
    return h->rc == ST_OK ? ST_OK : FAIL(err, h->rc, "host %s cannot take part: %s", h->name, h->text);
}

/* A call that no rank takes part in, to every host that has a part and is there; parts: (hosts), NULL: none. A host
 * that fails is let go; err: the first one's reason. */
static enum status ask_each(struct train_hosts *hosts, const struct host_call *call, const char *text,
                            const struct begin *parts, double patience_s, struct error *err)
{
    double until_s = clock_mono_s() + patience_s;
    enum status rc = ST_OK;

    for (int round = 0; round < 2; round++)
        for (size_t i = 1; i < hosts->n; i++) {
            struct host *h = &hosts->v[i];
            if (h->n == 0 || h->control < 0)
                continue;
            enum status did = round == 0 ? send_call(h, call, text, parts != NULL ? &parts[i] : NULL, err)
                                         : await_answer(h, call, until_s, err);
            if (did != ST_OK)
                host_leave(h);
            rc = rc == ST_OK ? did : rc;
        }
    return rc;
}

enum status hosts_begin(struct train_hosts *hosts, size_t n_ranks, const struct kern *kern, const char *config,
                        double patience_s, struct error *err)
{
    const struct host_call call = {
        .call = HOST_BEGIN, .text_bytes = strlen(config) + 1, .in_bytes = sizeof(struct begin)};
    const struct host_call close = {.call = HOST_CLOSE};
    struct begin parts[KERN_HOSTS_MAX];

    if (hosts->broken || train_hosts_missing(hosts) > 0)
        return FAIL(err, ST_DEVICE, "%zu of %zu hosts are not there", train_hosts_missing(hosts), hosts->n);
    hosts->n_ranks = n_ranks;
    TRY(deal(hosts, n_ranks, kern_kind(kern), hosts_gpus_here(kern), err));
    for (size_t i = 1; i < hosts->n; i++)
        parts[i] = (struct begin){
            n_ranks, hosts->v[i].first, hosts->v[i].n, kern_n_threads(kern), (int32_t)kern_kind(kern), 0};
    enum status rc = ask_each(hosts, &call, config, parts, patience_s, err);
    if (rc != ST_OK)
        (void)!ask_each(hosts, &close, NULL, NULL, patience_s, NULL);
    return rc;
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

bool hosts_failure(const struct train_hosts *hosts, struct error *ret_why, bool *ret_let_go)
{
    const struct host *found = NULL;

    for (size_t i = 1; i < hosts->n; i++) {
        const struct host *h = &hosts->v[i];
        if (h->n > 0 && h->answered && h->rc != ST_OK && (found == NULL || found->let_go))
            found = h;
    }
    if (found == NULL)
        return false;
    FAIL(ret_why, found->rc, "host %s: %s", found->name, found->text);
    *ret_let_go = found->let_go;
    return true;
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

bool train_hosts_called(const struct train_hosts *hosts, double wait_s)
{
    return link_has_news(hosts->v[0].control, wait_s);
}

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
    struct answer a = {.rc = (int32_t)rc,
                       .let_go = hosts->let_go,
                       .leaves = hosts->leaves,
                       .text_bytes = strlen(why),
                       .out_bytes = rc == ST_OK ? out_bytes : 0};
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
