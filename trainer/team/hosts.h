/* hosts.h - the connections between the processes of one training (private to trainer/). Two to each other process: one
 * on which the first process calls and is answered, one for what ranks exchange (struct kern_span).
 * A call is a struct host_call with its text and its bytes; an answer a struct host_answer with its text and its
 * bytes. */
#pragma once

#include "trainer/trainer.h"

#define HOST_NAME_MAX_BYTES 64

struct host {
    int control, data; /* -1: nobody is there */
    char name[HOST_NAME_MAX_BYTES];
    int n_gpus;
    size_t first, n; /* its ranks of the training that runs; n 0: it has no part */
    bool answered; /* the call that runs */
    enum status rc; /* of its answer, */
    char *text; /* owned: why it failed, */
    char *out; /* owned: and what it gave; (n, out_bytes) */
};

struct train_hosts {
    size_t n; /* processes, with this one */
    size_t own; /* this one; 0 leads */
    int listener; /* -1: it does not lead */
    char secret[33], where[320], program[128];
    struct host v[KERN_HOSTS_MAX]; /* of one that leads all but v[0], of another one v[0] */
    struct kern_span span;
    size_t n_ranks; /* of the training */
    bool broken; /* of no use any more */
};

struct host_call {
    int32_t call, meets; /* enum rank_call, or one of those below */
    uint64_t text_bytes, in_bytes, out_bytes; /* with its end; what is sent; what each rank gives */
};
enum { HOST_BEGIN = 1000, HOST_CLOSE, HOST_END }; /* of a training (two), and of all; the last has no answer */

size_t hosts_gpus_here(const struct kern *kern); /* that a training may use, from kern on; 0 on a CPU */
/* Deals the ranks out and has every host begin. kern: the first device. */
enum status hosts_begin(struct train_hosts *hosts, size_t n_ranks, const struct kern *kern, const char *config,
                        struct error *err) MUST_USE;
/* Asks every host that has a part, and waits for no answer. text, in: (call->text_bytes, in_bytes). ST_IO. */
enum status hosts_call(struct train_hosts *hosts, const struct host_call *call, const char *text, const void *in,
                       struct error *err) MUST_USE;
/* Takes what has come: answers; of a process that follows, the end of the first one. ST_IO: a host is gone. */
enum status hosts_look(struct train_hosts *hosts, double wait_s, const struct host_call *call,
                       struct error *err) MUST_USE;
/* Has one answered that it failed? Of several the first that does not merely wait for another (RANK_LET_GO). */
bool hosts_failure(const struct train_hosts *hosts, struct error *ret_why);
#define RANK_LET_GO "another rank failed"
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
/* Why the call failed (rc, why), or what its ranks gave: out (out_bytes). */
enum status hosts_answer(struct train_hosts *hosts, enum status rc, const char *why, const void *out, size_t out_bytes,
                         struct error *err) MUST_USE;
