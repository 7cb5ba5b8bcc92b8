/* test_node_slots.c - a trial that a node was given and that its worker cannot get. */

#include "tests/unit_test.h"
#include "sweep/agent/agent_job.h"
#include "sweep/agent/node_slots.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"

/* Its config is longer than a message may be: the trial fails, with the reason, and is not given to the next node. */
TEST(a_trial_that_is_too_long_fails)
{
    MEM_LOCAL char *text = mem_alloc(PROTO_MAX_BYTES + 1);
    struct worker worker = {.state = WORKER_READY, .spec.lanes = 1, .proto = {.in_fd = -1, .out_fd = -1}};
    struct agent_job job = {.state = JOB_GIVEN, .reports = cJSON_CreateArray(), .answer = cJSON_CreateObject()};
    struct node_slot slot = {.lane = &worker.slots[0], .job = &job};
    cJSON *run = cJSON_AddObjectToObject(job.answer, "run");

    memset(text, 'x', PROTO_MAX_BYTES);
    text[PROTO_MAX_BYTES] = '\0';
    worker.slots[0].worker = &worker;
    json_add_str(run, "config", text);
    json_add_str(job.answer, "study", "s");
    json_add_str(cJSON_AddObjectToObject(job.answer, "lease"), "token", "node-1");
    pthread_mutex_init(&job.lock, NULL);
    pthread_cond_init(&job.changed, NULL);
    node_slot_step(&slot, 1);
    assert_int_equal(job.state, JOB_ENDED);
    const cJSON *message = json_get(job.result, "message");
    assert_null(json_get_str(job.result, "state"));
    assert_string_equal(json_get_str(message, "state"), "failed");
    assert_non_null(strstr(json_get_str(message, "reason"), "could not be handed to a worker: a message of "));
    assert_false(worker.slots[0].runs);
    pthread_cond_destroy(&job.changed);
    pthread_mutex_destroy(&job.lock);
    cJSON_Delete(job.result);
    cJSON_Delete(job.answer);
    cJSON_Delete(job.reports);
}

TEST_PROGRAM("sweep/node_slots")
