/* proto.h - newline-delimited JSON over a socket, both ways. A struct proto owns its fd and buffer; one thread
 * receives, and senders take turns by a lock of their own. */
#ifndef SWEEP_LAUNCH_PROTO_H
#define SWEEP_LAUNCH_PROTO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/status.h"

/* controller -> worker
 *   open {config, device, lanes, cores?, memory_bytes?}     device: "auto" (as config says), "cpu", "cuda:1"
 *   run {trial, attempt, number, study, config, metric, owner?, checkpoint_path?, checkpoint_every_s?, checkpoint_end?,
 *        resume_from?, dir}
 *       dir: the folder of a trial that a program trains; owner: of its checkpoints; checkpoint_end: writes one when the trial is done
 *   stop {trial, attempt, checkpoint}
 *   exit
 * worker -> controller
 *   hello {version, pid, device, lanes, kind, threads, vector_units} or hello {version, reason}
 *       kind: "cpu" or "cuda"; threads of each lane
 *   alive {lanes: [{trial, attempt, env_steps, iterations, waits}], memory_bytes, device_memory_bytes}   once a second
 *       waits: for device memory that the worker's other trials hold; that it makes no progress is then no hang
 *   anew {trial, attempt, reason}                           resume_from is missing, damaged or another trial's
 *   training {trial, attempt, env_steps}                    its cost begins, or continues from there
 *   metrics {trial, attempt, env_steps, wall_s, values}     wall_s: its cost so far, by the same method as cost_s
 *   checkpoint {trial, attempt, path, env_steps}
 *   evaluating {trial, attempt, cost_s}                     training has ended; what follows is no part of its cost
 *   result {trial, attempt, state, score, perf, cost_s, device_s, wall_s, env_steps, reason, cost_method, checkpoint?, lost,
 *           start_s, program, device, vector_units, log_tail?, score_se?, eval_episodes?, eval_unfinished?, eval_s?}
 *       wall_s: time since training began; checkpoint: the file that holds the state it ended in; score: the value of
 *       `metric`. eval_...: of a trial that is done
 * trial is the row in the store, number the one that people know. lost: this process can no longer use the device, and
 * ends. With several trials on the device it ends without a result of any: the guilty one is not known. */
#define PROTO_MAX_BYTES (1u << 20)
#define PROTO_VERSION 3

struct proto {
    int fd;
    char *buf; /* (cap) */
    size_t cap, n; /* bytes in buf */
    size_t at, n_line; /* start and size of the last message in buf, until the next call (proto_take_in may move buf) */
    bool closed; /* the peer has closed; nothing whole is left in buf */
    int send_ms; /* how long a peer may take nothing before proto_send fails; 0: for ever */
};
void proto_create(struct proto *proto, int fd);
void proto_destroy(struct proto *proto); /* closes fd */
/* {"type": type} */
cJSON *proto_message(const char *type);
/* Takes message. A closed peer is ST_IO, a peer that takes nothing for send_ms ST_BUSY, a message that is too long
 * ST_LIMIT. */
enum status proto_send(struct proto *proto, cJSON *message, struct error *err) MUST_USE;
/* *ret_message is NULL when nothing came within timeout_ms, a signal came, or the peer closed (proto->closed). */
enum status proto_receive(struct proto *proto, int timeout_ms, cJSON **ret_message, struct error *err) MUST_USE;
/* Reads into buf for a later proto_receive, so that the peer need not wait. */
void proto_take_in(struct proto *proto);

#endif
