/* pq.h - the functions of libpq, which is opened when a store is first in a database. */
#pragma once

#include "base/os/late.h"

#include <libpq-fe.h>

#define PQ_EACH(F)                                                                                                     \
    F(PQ, clear)                                                                                                       \
    F(PQ, cmdStatus)                                                                                                   \
    F(PQ, cmdTuples)                                                                                                   \
    F(PQ, conndefaults)                                                                                                \
    F(PQ, connectdbParams)                                                                                             \
    F(PQ, conninfoFree)                                                                                                \
    F(PQ, conninfoParse)                                                                                               \
    F(PQ, consumeInput)                                                                                                \
    F(PQ, db)                                                                                                          \
    F(PQ, enterPipelineMode)                                                                                           \
    F(PQ, errorMessage)                                                                                                \
    F(PQ, escapeLiteral)                                                                                               \
    F(PQ, exec)                                                                                                        \
    F(PQ, execPrepared)                                                                                                \
    F(PQ, exitPipelineMode)                                                                                            \
    F(PQ, finish)                                                                                                      \
    F(PQ, fname)                                                                                                       \
    F(PQ, freemem)                                                                                                     \
    F(PQ, ftype)                                                                                                       \
    F(PQ, getResult)                                                                                                   \
    F(PQ, getisnull)                                                                                                   \
    F(PQ, getlength)                                                                                                   \
    F(PQ, getvalue)                                                                                                    \
    F(PQ, host)                                                                                                        \
    F(PQ, nfields)                                                                                                     \
    F(PQ, notifies)                                                                                                    \
    F(PQ, ntuples)                                                                                                     \
    F(PQ, parameterStatus)                                                                                             \
    F(PQ, pipelineSync)                                                                                                \
    F(PQ, port)                                                                                                        \
    F(PQ, prepare)                                                                                                     \
    F(PQ, resultErrorField)                                                                                            \
    F(PQ, resultStatus)                                                                                                \
    F(PQ, sendQueryPrepared)                                                                                           \
    F(PQ, serverVersion)                                                                                               \
    F(PQ, setNoticeProcessor)                                                                                          \
    F(PQ, socket)                                                                                                      \
    F(PQ, status)                                                                                                      \
    F(PQ, transactionStatus)
struct pq_calls {
    PQ_EACH(LATE_CALL)
};

extern struct pq_calls pq;
enum status pq_open(struct error *err) MUST_USE; /* before any call */
