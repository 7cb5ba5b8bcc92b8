/* test_hosts.c - one training on several hosts (train_hosts_*), which are processes of this machine: the bytes are
 * those of as many devices of one, checkpoints too; a host that ends, fails, refuses, leaves, hangs or is a stranger is
 * named. */
#include "ranks_test.h"

#include "base/os/link.h"
#include "trainer/team/hosts.h"

#include <signal.h>
#include <sys/wait.h>

#define BUILD "trawl test"
#define AT "127.0.0.1"

static char ckpt_path[4096], copy_path[4096];

static char news[TRAIN_NEWS_MAX];

enum manner { FOLLOWS, REFUSES, FAILS, LEAVES }; /* each from its first training on */

static bool at_once(void)
{
    return true;
}

/* A host that joins and follows until there is no training more. exit code 0: it was let go. */
static pid_t join(struct setup *s, const char *where, const char *build, enum manner how)
{
    const struct error no_game = {ST_CONFIG, "no game of that name"};
    struct train_hosts *hosts = NULL;
    struct train_part part;
    char *config;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    s->policy.hidden_size = how == FAILS ? -1 : s->policy.hidden_size;
    enum status rc = train_hosts_join(&hosts, where, build, 0, 20.0, NULL);
    while (rc == ST_OK) {
        rc = train_hosts_next(hosts, &config, &part, NULL);
        if (rc != ST_OK || config == NULL)
            break;
        mem_free(config);
        rc = how == REFUSES ? train_hosts_refuse(hosts, &no_game, NULL)
                            : train_follow(hosts, s->kern, s->def, s->env, &s->policy, &s->train,
                                           how == LEAVES ? at_once : NULL, NULL);
        if (how == LEAVES)
            break;
    }
    train_hosts_close(hosts);
    _exit(rc == ST_OK ? 0 : 1);
}

static void gather(struct train_hosts *hosts, size_t n_missing)
{
    for (int i = 0; i < 600 && train_hosts_missing(hosts) > n_missing; i++)
        OK(train_hosts_wait(hosts, 0.1, news, err));
    assert_int_equal(train_hosts_missing(hosts), n_missing);
}

static void wait_for_news(struct train_hosts *hosts, const char *text)
{
    news[0] = '\0';
    for (int i = 0; i < 600 && strstr(news, text) == NULL; i++)
        OK(train_hosts_wait(hosts, 0.1, news, err));
    assert_non_null(strstr(news, text));
}

static int connect_to(const struct train_hosts *hosts)
{
    int fd = -1;

    OK(link_connect(AT, (int)strtol(strchr(train_hosts_where(hosts), ':') + 1, NULL, 10), 20.0, &fd, err));
    return fd;
}

/* The first connection of a host, and the answer. */
static struct welcome greet(struct train_hosts *hosts, int *ret_fd)
{
    struct greeting g = {.index = -1, .program = BUILD, .name = "half"};
    struct welcome w;

    memcpy(g.magic, "TRAWLTM1", sizeof g.magic);
    snprintf(g.secret, sizeof g.secret, "%s", strchr(train_hosts_where(hosts), '/') + 1);
    *ret_fd = connect_to(hosts);
    OK(link_send(*ret_fd, &g, sizeof g, err));
    for (int i = 0; i < 600 && !link_has_news(*ret_fd, 0.0); i++)
        OK(train_hosts_wait(hosts, 0.1, news, err));
    assert_true(link_has_news(*ret_fd, 0.0));
    OK(link_receive(*ret_fd, &w, sizeof w, err));
    return w;
}

static int exit_code(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct group {
    struct setup s;
    struct train_hosts *hosts;
    struct trainer *t;
    pid_t others[2];
    size_t n_others;
};

/* `devices` on n processes, which are all there. s is filled. how: of the last one. */
static void group_gather(struct group *g, int64_t devices, size_t n, enum manner how)
{
    g->s.train.devices = devices;
    OK(train_hosts_listen(&g->hosts, n, AT, BUILD, err));
    g->n_others = n - 1;
    for (size_t i = 0; i < g->n_others; i++) {
        g->others[i] = join(&g->s, train_hosts_where(g->hosts), BUILD, i + 1 == g->n_others ? how : FOLLOWS);
        gather(g->hosts, g->n_others - i - 1);
    }
}

static enum status group_create(struct group *g, struct error *ret_err)
{
    return trainer_create_on(&g->t, g->hosts, "", g->s.kern, g->s.def, g->s.env, &g->s.policy, &g->s.train, ret_err);
}

static void group_open(struct group *g, int64_t devices, size_t n)
{
    group_gather(g, devices, n, FOLLOWS);
    OK(group_create(g, err));
}

static void group_close(struct group *g)
{
    trainer_destroy(g->t);
    train_hosts_close(g->hosts);
    for (size_t i = 0; i < g->n_others; i++)
        assert_int_equal(exit_code(g->others[i]), 0);
    setup_close(&g->s);
}

/* Two and three hosts, of which one has two devices. */
TEST(same_bytes_as_one_host)
{
    for (size_t v = 0; v < N_VARIANTS; v++) {
        SETUP s;
        struct group g = {0};
        setup_variant(&s, &variants[v]);
        setup_variant(&g.s, &variants[v]);
        TRAINER *one = ranks_trainer(&s, 4);
        group_open(&g, 4, v % 2 == 0 ? 2 : 3);
        iterate(one, 4);
        iterate(g.t, 4);
        OK(ranks_compare(g.t, err));
        assert_same_weights(one, g.t);
        assert_close_trainers(g.t, one, 1e-9, variants[v].game);
        group_close(&g);
    }
}

/* A checkpoint has the agents of all hosts, and is continued by hosts and by one device. */
TEST(checkpoints)
{
    const struct variant *v = &variants[4];
    struct group g = {0}, again = {0};
    SETUP s, single;

    setup_variant(&s, v);
    setup_variant(&single, v);
    setup_variant(&g.s, v);
    setup_variant(&again.s, v);
    TRAINER *straight = ranks_trainer(&s, 4), *one;
    iterate(straight, 3);
    group_open(&g, 4, 2);
    iterate(g.t, 3);
    OK(trainer_save(g.t, ckpt_path, "", err));
    iterate(straight, 3);
    group_close(&g);
    group_open(&again, 4, 2);
    OK(trainer_load(again.t, ckpt_path, err));
    iterate(again.t, 3);
    assert_same_weights(straight, again.t);
    single.policy.hidden_size = 8;
    struct trainer *other = ranks_trainer(&single, 1);
    OK(trainer_save(other, copy_path, "", err));
    trainer_destroy(other);
    FAILS(trainer_load(again.t, copy_path, err), ST_CONFIG, "policy.hidden_size");
    iterate(again.t, 1);
    group_close(&again);
    single.policy.hidden_size = s.policy.hidden_size;
    one = ranks_trainer(&single, 1);
    OK(trainer_load(one, ckpt_path, err));
    iterate(one, 3);
    assert_close_trainers(one, straight, 1e-4, v->game);
}

/* What has become of it is named by the first host, and the others end. */
TEST(a_host_that_is_killed)
{
    struct error why = {0};
    struct group g = {0};
    enum status rc = ST_OK;

    setup_variant(&g.s, &variants[0]);
    group_open(&g, 3, 3);
    iterate(g.t, 2);
    kill(g.others[0], SIGKILL);
    for (int i = 0; i < 100000 && rc == ST_OK; i++)
        rc = trainer_iterate(g.t, &why);
    assert_int_equal(rc, ST_DEVICE);
    assert_non_null(strstr(why.text, "is gone"));
    assert_true(train_hosts_broken(g.hosts) && train_hosts_lost(g.hosts));
    struct error later = {0};
    assert_int_equal(trainer_iterate(g.t, &later), ST_DEVICE);
    trainer_destroy(g.t);
    train_hosts_close(g.hosts);
    assert_int_equal(exit_code(g.others[0]), 128 + SIGKILL);
    assert_int_equal(exit_code(g.others[1]), 1);
    setup_close(&g.s);
}

/* It is named by the first host, and not by another one that waits for the first. */
TEST(a_host_that_hangs)
{
    struct error why = {0};
    struct group g = {0};
    enum status rc = ST_OK;

    setup_variant(&g.s, &variants[0]);
    g.s.train.rank_timeout_s = 10.0; /* the first iterations too: a machine may be slow */
    group_open(&g, 3, 3);
    iterate(g.t, 2);
    kill(g.others[1], SIGSTOP);
    for (int i = 0; i < 100000 && rc == ST_OK; i++)
        rc = trainer_iterate(g.t, &why);
    assert_int_equal(rc, ST_DEVICE);
    assert_non_null(strstr(why.text, "(ranks 2 to 2) has not "));
    assert_non_null(strstr(why.text, "train.rank_timeout_s"));
    kill(g.others[1], SIGCONT);
    trainer_destroy(g.t);
    train_hosts_close(g.hosts);
    assert_int_equal(exit_code(g.others[0]), 1);
    assert_int_equal(exit_code(g.others[1]), 1);
    setup_close(&g.s);
}

/* Its own failure is the reason, and not that of the host that was let go; nothing was lost. */
TEST(a_host_that_fails)
{
    struct error why = {0};
    struct group g = {0};

    setup_variant(&g.s, &variants[0]);
    group_gather(&g, 3, 3, FAILS);
    assert_int_equal(group_create(&g, &why), ST_CONFIG);
    assert_non_null(strstr(why.text, "policy.hidden_size"));
    assert_true(train_hosts_broken(g.hosts) && !train_hosts_lost(g.hosts));
    train_hosts_close(g.hosts);
    assert_int_equal(exit_code(g.others[0]), 1);
    assert_int_equal(exit_code(g.others[1]), 1);
    setup_close(&g.s);
}

/* It is let go with its reason, and another host takes its place beside those that are there. */
TEST(a_host_that_refuses)
{
    struct error why = {0};
    AT_END(group_close) struct group g = {0};

    setup_variant(&g.s, &variants[0]);
    group_gather(&g, 3, 3, REFUSES);
    assert_int_equal(group_create(&g, &why), ST_CONFIG);
    assert_non_null(strstr(why.text, "cannot take part: no game of that name"));
    assert_true(train_hosts_short(g.hosts));
    assert_int_equal(train_hosts_missing(g.hosts), 1);
    assert_int_equal(exit_code(g.others[1]), 1);
    g.others[1] = join(&g.s, train_hosts_where(g.hosts), BUILD, FOLLOWS);
    gather(g.hosts, 0);
    OK(group_create(&g, err));
    iterate(g.t, 2);
}

/* It asks for the end: the training can be saved and closed, and the next one has another host. */
TEST(a_host_that_leaves)
{
    AT_END(group_close) struct group g = {0};

    setup_variant(&g.s, &variants[0]);
    group_gather(&g, 2, 2, LEAVES);
    assert_null(train_hosts_leaving(g.hosts));
    OK(group_create(&g, err));
    iterate(g.t, 1);
    assert_non_null(train_hosts_leaving(g.hosts));
    OK(trainer_save(g.t, ckpt_path, "", err));
    trainer_destroy(g.t);
    assert_int_equal(exit_code(g.others[0]), 0);
    wait_for_news(g.hosts, "has left: 1 of 2 hosts are here, waiting for 1");
    assert_null(train_hosts_leaving(g.hosts));
    g.others[0] = join(&g.s, train_hosts_where(g.hosts), BUILD, FOLLOWS);
    wait_for_news(g.hosts, "has joined: 2 of 2 hosts are here");
    OK(group_create(&g, err));
    OK(trainer_load(g.t, ckpt_path, err));
    iterate(g.t, 1);
}

/* Before the start nothing but its place is lost. */
TEST(a_host_that_is_killed_before_the_start)
{
    struct group g = {0};

    setup_variant(&g.s, &variants[0]);
    g.s.train.devices = 3;
    OK(train_hosts_listen(&g.hosts, 3, AT, BUILD, err));
    g.others[0] = join(&g.s, train_hosts_where(g.hosts), BUILD, FOLLOWS);
    wait_for_news(g.hosts, "has joined: 2 of 3 hosts are here, waiting for 1");
    kill(g.others[0], SIGKILL);
    wait_for_news(g.hosts, "has left: 1 of 3 hosts are here, waiting for 2");
    assert_int_equal(exit_code(g.others[0]), 128 + SIGKILL);
    train_hosts_close(g.hosts);
    setup_close(&g.s);
}

/* Connections that say nothing keep no host waiting, however many there are. */
TEST(silent_connections)
{
    struct group g = {0};
    int fds[24];

    setup_variant(&g.s, &variants[0]);
    g.s.train.devices = 2;
    OK(train_hosts_listen(&g.hosts, 2, AT, BUILD, err));
    for (size_t i = 0; i < COUNT(fds); i++)
        fds[i] = connect_to(g.hosts);
    OK(link_send(fds[23], "TRAWL", 5, err)); /* and one that stops within its greeting */
    g.others[0] = join(&g.s, train_hosts_where(g.hosts), BUILD, FOLLOWS);
    g.n_others = 1;
    gather(g.hosts, 0);
    OK(group_create(&g, err));
    iterate(g.t, 1);
    group_close(&g);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
}

/* The last place is taken from a host's first connection on: another that comes later is refused with that reason. */
TEST(two_hosts_for_one_place)
{
    struct train_hosts *hosts = NULL;
    int first, second;

    OK(train_hosts_listen(&hosts, 2, AT, BUILD, err));
    struct welcome w = greet(hosts, &first);
    assert_int_equal(w.index, 1);
    assert_int_equal(train_hosts_missing(hosts), 1);
    w = greet(hosts, &second);
    assert_int_equal(w.index, WELCOME_COMPLETE);
    assert_string_equal(w.text, "its hosts are complete");
    close(second);
    close(first);
    train_hosts_close(hosts);
}

TEST(listening_at_a_port)
{
    const char *const wrong[] = {"node1:", "node1:0", "node1:70000", "node1:http", "[::1", "[::1]x", "[::1]:x", ":"};
    struct train_hosts *first = NULL, *second = NULL;
    struct error why = {0};
    char at[80];

    for (size_t i = 0; i < COUNT(wrong); i++) {
        error_clear(&why);
        assert_int_equal(train_hosts_listen(&first, 2, wrong[i], BUILD, &why), ST_USAGE);
        assert_non_null(strstr(why.text, wrong[i]));
    }
    for (int i = 0; i < 20 && second == NULL; i++) { /* another process may get the port in between */
        OK(train_hosts_listen(&first, 2, AT, BUILD, err));
        snprintf(at, sizeof at, "%.*s", (int)strcspn(train_hosts_where(first), "/"), train_hosts_where(first));
        error_clear(&why);
        assert_int_equal(train_hosts_listen(&second, 2, at, BUILD, &why), ST_IO);
        assert_non_null(strstr(why.text, strchr(at, ':') + 1));
        train_hosts_close(first);
        (void)!train_hosts_listen(&second, 2, at, BUILD, NULL);
    }
    assert_non_null(second);
    assert_int_equal(strncmp(train_hosts_where(second), at, strlen(at)), 0);
    train_hosts_close(second);
}

/* Neither another secret nor another build gets in, and who comes after them does. */
TEST(strangers)
{
    AT_END(group_close) struct group g = {0};
    char where[512];

    setup_variant(&g.s, &variants[0]);
    g.s.train.devices = 2;
    OK(train_hosts_listen(&g.hosts, 2, AT, BUILD, err));
    snprintf(where, sizeof where, "%s", train_hosts_where(g.hosts));
    char *last = &where[strlen(where) - 1];
    *last = *last == '0' ? '1' : '0';
    pid_t guess = join(&g.s, where, BUILD, FOLLOWS),
          older = join(&g.s, train_hosts_where(g.hosts), "trawl of yesterday", FOLLOWS);
    for (int i = 0; i < 10; i++)
        OK(train_hosts_wait(g.hosts, 0.05, news, err));
    g.others[0] = join(&g.s, train_hosts_where(g.hosts), BUILD, FOLLOWS);
    g.n_others = 1;
    gather(g.hosts, 0);
    OK(group_create(&g, err));
    iterate(g.t, 1);
    assert_int_equal(exit_code(guess), 1);
    assert_int_equal(exit_code(older), 1);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";

    snprintf(ckpt_path, sizeof ckpt_path, "%s/trawl-hosts-%d.ckpt", tmp, (int)getpid());
    snprintf(copy_path, sizeof copy_path, "%s/trawl-hosts-%d-copy.ckpt", tmp, (int)getpid());
    int rc = run_cases("hosts", NULL, NULL);
    unlink(ckpt_path);
    unlink(copy_path);
    return rc;
}
