/* lane_files.c - checkpoints in messages.
 * Invariant: a lane asks for one chunk at a time, so that neither side has to hold what the other does not take. */
#include "sweep/worker/lane_files.h"

#include "base/text/json.h"
#include "sweep/launch/file_chunks.h"
#include "sweep/worker/lane_messages.h"
#include "sweep/worker/lane_pool.h"

#define CHUNK_PATIENCE_S 60

void lane_files_begin(struct lane *lane)
{
    struct lane_trial *t = &lane->trial;

    snprintf(lane->own_checkpoint, sizeof lane->own_checkpoint, "%.*s/%lld-%lld.ckpt", PATH_MAX - 60, lane->pool->dir,
             (long long)t->id, (long long)t->attempt);
    if (t->checkpoint_path != NULL)
        t->checkpoint_path = lane->own_checkpoint;
    if (t->resume_from != NULL)
        t->resume_from = lane->own_checkpoint;
}

enum status lane_files_send(struct lane *lane, struct error *err)
{
    for (int64_t at = 0, size = 1; at < size && !atomic_load(&lane->pool->gone);) {
        cJSON *json = lane_message(lane, "chunk");
        enum status rc = file_chunk_add(json, lane->own_checkpoint, at, &at, &size, err);
        if (rc != ST_OK) {
            cJSON_Delete(json);
            return rc;
        }
        lane_pool_send(lane->pool, json);
    }
    return ST_OK;
}

/* The answer to a "fetch". NULL: none came, or the trial is to stop. */
static cJSON *await_chunk(struct lane *lane)
{
    struct lane_pool *pool = lane->pool;
    struct timespec until = clock_timespec(clock_mono_s() + CHUNK_PATIENCE_S);
    cJSON *chunk;
    int rc = 0;

    pthread_mutex_lock(&pool->lock);
    while (lane->chunk == NULL && rc != ETIMEDOUT && !atomic_load(&lane->stop) && !pool->exit)
        rc = pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
    chunk = lane->chunk;
    lane->chunk = NULL;
    pthread_mutex_unlock(&pool->lock);
    return chunk;
}

enum status lane_files_fetch(struct lane *lane, struct error *err)
{
    MEM_LOCAL struct file_chunks *file = mem_alloc(sizeof *file);
    bool done = false;
    enum status rc = ST_OK;

    for (int64_t at = 0; rc == ST_OK && !done; at = file->at) {
        cJSON *ask = lane_message(lane, "fetch"), *chunk;
        json_add_i64(ask, "at", at);
        lane_pool_send(lane->pool, ask);
        chunk = await_chunk(lane);
        rc = chunk == NULL ? FAIL(err, ST_IO, "its checkpoint did not come from the controller")
                           : file_chunk_take(file, lane->own_checkpoint, chunk, &done, err);
        cJSON_Delete(chunk);
    }
    file_chunks_drop(file);
    return rc;
}

void lane_files_end(struct lane *lane)
{
    (void)unlink(lane->own_checkpoint);
}
