/* proto.h - newline-delimited JSON over a pair of descriptors, which may be one socket. A struct proto owns descriptors
 * and buffer; one thread receives, and senders take turns by a lock of their own. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* controller -> worker
 *   open {config, device, lanes, share?, cores?, memory_bytes?, hosts?, listen?}
 *       device: "auto" (as the config has it), "cpu", "cuda:1"; share: [i, n], the part of its host's cores; hosts: how
 *       many train a trial of more devices than are here, this one with them; listen: its address for the others
 *   run {trial, attempt, number, study, config, metric, owner?, checkpoint_path?, checkpoint_every_s?, checkpoint_end?,
 *        resume_from?, resume_bytes?, branches?, dir}
 *       branches: [env_steps, ...] ascending, at which the run is evaluated on its way
 *       dir: the folder of a trial that a program trains; needs_step, own_cost: what its reports must have; owner: of
 *       its checkpoints; checkpoint_end: writes one when the trial is done; resume_bytes: size of the file resume_from.
 *       A remote worker has its own files: of these paths it takes only that they are given
 *   chunk {trial, attempt, at, data} or chunk {trial, attempt, reason}    the answer to fetch; data: base64
 *   stop {trial, attempt, checkpoint}
 *   ping                                                    to a remote worker, every few seconds
 *   exit
 * worker -> controller
 *   greeting {version, program, schema, host, cores, gpus?}   its first message, before "open"; gpus: if it is remote
 *   hello {pid, device, lanes, kind, threads, vector_units, meets?} or hello {reason, other_game}
 *       kind: "cpu" or "cuda"; threads of each lane; meets: what other hosts give to `trawl join`
 *   alive {lanes: [{trial, attempt, env_steps, iterations, waits}], memory_bytes, device_memory_bytes}   once a second
 *       waits: for device memory that the worker's other trials hold; that it makes no progress is then no hang
 *   again {trial, attempt, reason}                          from zero: resume_from is missing, damaged or another's
 *   training {trial, attempt, env_steps}                    its cost begins, or continues from there
 *   metrics {trial, attempt, env_steps, wall_s, values}     wall_s: its cost so far, by the same method as cost_s
 *   fetch {trial, attempt, at}                              a remote worker needs its checkpoint from this byte on
 *   chunk {trial, attempt, at, size, data}                  of a remote worker's checkpoint of size bytes, in order
 *   checkpoint {trial, attempt, path, env_steps}            the file, or all chunks of it, are whole
 *   branch {...}                                            like result, of the run at one of branches; it continues
 *   evaluating {trial, attempt, cost_s, branch}             training has ended; what follows is not part of its cost
 *       branch: of a branch; training continues with the message `branch`
 *   result {trial, attempt, state, score, perf, cost_s, device_s, wall_s, env_steps, reason, cost_method, checkpoint?,
 *           lost, apart, other_game, start_s, program, device, vector_units, log_tail?, score_se?,
 *           eval_episodes?, eval_unfinished?, eval_s?, outcomes? {name: value, ...}}
 *       wall_s: time since training began; checkpoint: the file that holds the state it ended in; score: the value of
 *       `metric`; eval_...: of a trial that is done; outcomes: every metric at the end of the run, as it would be the
 *       score (of a program: its last reports are)
 *   leaving {reason}                                        a signal: its trials are saved and stopped, then it ends
 * trial is the row in the store, number the one that people know. lost: this process can no longer use the device, and
 * ends. With several trials on the device it ends without a result of any: the guilty one is not known. apart: another
 * host of the training is gone, and the trial is not to blame. other_game: the game's library is of another build than
 * the study's, which no trial survives. */
#define PROTO_MAX_BYTES (1u << 20)
#define PROTO_CHUNK_BYTES (96u << 10) /* of a file in one message: a socket holds it as text */
#define PROTO_VERSION 6

struct proto {
    int in_fd, out_fd; /* the same: a socket */
    char *buf; /* (cap) */
    size_t cap, n; /* bytes in buf */
    size_t at, n_line; /* start and size of the last message in buf, until the next call (proto_take_in may move buf) */
    bool closed; /* the peer has closed; nothing whole is left in buf */
    int send_ms; /* how long a peer may take nothing before proto_send fails; 0: for ever */
    const char *chatter; /* until a message has come, other lines are logged under this name; NULL: they are errors */
};
void proto_create(struct proto *proto, int in_fd, int out_fd); /* both no longer block */
void proto_destroy(struct proto *proto); /* closes them */
/* {"type": type} */
cJSON *proto_message(const char *type);
/* Takes message. A closed peer is ST_IO, a peer that takes nothing for send_ms ST_BUSY, a message that is too long
 * ST_LIMIT. */
enum status proto_send(struct proto *proto, cJSON *message, struct error *err) MUST_USE;
/* *ret_message is NULL when nothing came within timeout_ms, a signal came, or the peer closed (proto->closed). */
enum status proto_receive(struct proto *proto, int timeout_ms, cJSON **ret_message, struct error *err) MUST_USE;
/* Reads into buf for a later proto_receive, so that the peer need not wait. */
void proto_take_in(struct proto *proto);
