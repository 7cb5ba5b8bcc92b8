/* test_lane_pool.c - the threads of a worker among each other; what it is for shows under ThreadSanitizer. */
#include <signal.h>
#include <sys/socket.h>

#include "tests/check.h"
#include "study/setup/setup.h"
#include "sweep/worker/lane_pool.h"

static const char config_text[] = "[env]\nname = squared\nn = 1\n"
                                  "[policy]\ncore = none\nhidden_size = 8\n"
                                  "[train]\ntotal_agents = 16\nhorizon = 16\nminibatch_size = 256\nthreads = 1\n"
                                  "device = cpu\n";

static void *drain(void *arg)
{
    const int *fd = arg;
    char buf[65536];

    usleep(300000); /* the pool is being closed meanwhile, which waits for nothing else */
    while (recv(*fd, buf, sizeof buf, 0) > 0)
        ;
    return NULL;
}

/* The controller takes nothing, so the heartbeat is in the middle of a message when the pool is closed. */
TEST(lanes_outlive_the_heartbeat)
{
    MEM_LOCAL struct lane_pool *pool = mem_alloc(sizeof *pool);
    struct setup *setup = NULL;
    pthread_t drainer;
    char junk[4096];
    int fds[2];

    assert_non_null(pool);
    memset(junk, ' ', sizeof junk);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pool->device = -1;
    lane_pool_create(pool, fds[0], fds[0]);
    OK(setup_create(&setup, err));
    OK(config_load_text(setup->config, "test", config_text, err));
    OK(setup_finish(setup, err));
    OK(lane_pool_open(pool, setup, 2, err));
    while (send(fds[0], junk, sizeof junk, MSG_DONTWAIT) > 0)
        ;
    OK(lane_pool_start_heartbeat(pool, err));
    while (pthread_mutex_trylock(&pool->send_lock) ==
           0) { /* until its first message is on the way and does not get through */
        pthread_mutex_unlock(&pool->send_lock);
        usleep(10000);
    }
    assert_int_equal(pthread_create(&drainer, NULL, drain, &fds[1]), 0);
    lane_pool_destroy(pool);
    pthread_join(drainer, NULL);
    close(fds[1]);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as in the program */
    return run_cases("sweep lane_pool", NULL, NULL);
}
