/* hosts.h - the connections between the processes of one training (private to trainer/). Two to each other process: one
 * on which the first process calls and is answered, one for what ranks exchange (struct kern_span).
 * A call is a struct host_call with its text and its bytes; an answer a struct host_answer with its text and its
 * bytes. */
#pragma once

#include "trainer/trainer.h"

#define HOST_NAME_MAX_BYTES 64
#define HOST_GUESTS_MAX 16

struct greeting {
    char magic[8], secret[33], program[128], name[HOST_NAME_MAX_BYTES];
    int32_t index; /* -1: of the control connection; else a data connection of that host */
    int32_t n_gpus;
};

struct welcome { /* the answer to a greeting */
    int32_t index; /* its host, or one of those below */
    char text[400]; /* why it is one of those below */
};
enum { WELCOME_REFUSED = -1, WELCOME_COMPLETE = -2 }; /* now and later; now */

struct guest { /* a connection that has not greeted yet */
    int fd; /* -1: none */
    size_t got; /* bytes of greeting */
    double until_s;
    struct greeting greeting;
};

struct host {
    int control, data; /* -1: nobody is there */
    bool leaves; /* it asks for the end of the training */
    char name[HOST_NAME_MAX_BYTES];
    int n_gpus;
    size_t first, n; /* its ranks of the training that runs; n 0: it has no part */
    bool answered; /* the call that runs */
    bool let_go; /* it failed because another one did, */
    enum status rc; /* of its answer, */
    char *text; /* owned: why it failed, */
    char *out; /* owned: and what it gave; (n, out_bytes) */
};

struct train_hosts {
    size_t n; /* processes, with this one */
    size_t own; /* this one; 0 leads */
    int listener; /* -1: it does not lead */
    char secret[33], where[320], program[128];
    struct guest guests[HOST_GUESTS_MAX];
    struct host v[KERN_HOSTS_MAX]; /* of one that leads all but v[0], of another one v[0] */
    struct kern_span span;
    size_t n_ranks; /* of the training */
    bool leaves; /* this one, which follows, asks for the end */
    bool let_go; /* what failed last here failed because another rank or host did */
    bool broken; /* of no use any more, */
    bool lost; /* since a host is gone or silent */
    double turned_s; /* when hosts_turn_away looked last */
};

struct host_call {
    int32_t call, meets; /* enum rank_call, or one of those below */
    uint64_t text_bytes, in_bytes, out_bytes; /* with its end; what is sent; what each rank gives */
};
/* Of a training: can you, with this config? then your ranks meet; its end. Of all, without an answer: the end. */
enum { HOST_BEGIN = 1000, HOST_OPEN, HOST_CLOSE, HOST_END };

size_t hosts_gpus_here(const struct kern *kern); /* that a training may use, from kern on; 0 on a CPU */
/* Deals the ranks out and asks every host whether it can take its part, for patience_s at most. kern: the first device.
 * A host that refuses, is gone or does not answer is let go, which err names, and the others wait for the next begin. */
enum status hosts_begin(struct train_hosts *hosts, size_t n_ranks, const struct kern *kern, const char *config,
                        double patience_s, struct error *err) MUST_USE;
/* Of the first host, while a training runs (NULL: on one host): others that try to join learn that it is complete.
 * Looks now and then only. */
void hosts_turn_away(struct train_hosts *hosts);
/* Asks every host that has a part, and waits for no answer. text, in: (call->text_bytes, in_bytes). ST_IO. */
enum status hosts_call(struct train_hosts *hosts, const struct host_call *call, const char *text, const void *in,
                       struct error *err) MUST_USE;
/* Takes what has come: answers; of a process that follows, the end of the first one. ST_IO: a host is gone. */
enum status hosts_look(struct train_hosts *hosts, double wait_s, const struct host_call *call,
                       struct error *err) MUST_USE;
/* Has one answered that it failed? Of several the first that was not merely let go after another's failure. */
bool hosts_failure(const struct train_hosts *hosts, struct error *ret_why, bool *ret_let_go);
bool hosts_have_answered(const struct train_hosts *hosts);
/* What they gave, to the places of their ranks: out (all ranks, out_bytes). */
void hosts_take_out(struct train_hosts *hosts, void *out, size_t out_bytes);
/* "host b (ranks 2 to 3) has"; awaited: the link that an exchange waits for, -1: all that have not answered. */
void hosts_missing_text(const struct train_hosts *hosts, int awaited, char *buf, size_t size);
void hosts_break(struct train_hosts *hosts); /* the others' waits end */

/* ---- of one that follows ---- */
/* Waits for it. *ret_text, *ret_in: the caller's (mem_free), also after a failure; NULL or what there is. ST_IO: the
 * first host is gone. */
enum status hosts_next_call(struct train_hosts *hosts, struct host_call *call, char **ret_text, char **ret_in,
                            struct error *err) MUST_USE;
/* Why the call failed (rc, why, let_go), or what its ranks gave: out (out_bytes). */
enum status hosts_answer(struct train_hosts *hosts, enum status rc, const char *why, const void *out, size_t out_bytes,
                         struct error *err) MUST_USE;
