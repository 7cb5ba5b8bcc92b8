/* test_control.c - the socket of a controller: who is heard, what is answered, and that no bytes harm it. */

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "tests/check.h"
#include "base/text/json.h"
#include "study/setup/limits.h"
#include "sweep/control/socket/control_address.h"
#include "sweep/control/socket/control_client.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/socket/control_server.h"

struct place {
    char dir[TEMP_FOLDER_MAX], store[96], socket[112];
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);

    temp_folder_make(p->dir);
    snprintf(p->store, sizeof p->store, "%s/s.db", p->dir);
    snprintf(p->socket, sizeof p->socket, "%s.sock", p->store);
    FILE *f = fopen(p->store, "w");
    *state = p;
    return f != NULL && fclose(f) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
    struct place *p = *state;

    temp_folder_remove(p->dir);
    free(p);
    return 0;
}

/* Answers with what was asked; "fail" fails. */
static enum status echo(void *ctx, const cJSON *request, cJSON *answer, struct error *err)
{
    const char *word = json_get_str(request, "command");

    ++*(int *)ctx;
    if (word != NULL && strcmp(word, "fail") == 0)
        return FAIL(err, ST_NOTFOUND, "no such thing");
    json_add_str(answer, "text", word);
    return ST_OK;
}

static struct control_server *serve_at(const char *store, int *n)
{
    struct control_server *s = NULL;

    OK(control_server_create(&s, store, echo, n, err));
    return s;
}

static int connect_raw(const char *store)
{
    struct control_address a[CONTROL_ADDRESSES];
    size_t n;

    OK(control_addresses(store, a, &n, err));
    for (size_t i = 0; i < n; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (control_address_connect(&a[i], fd))
            return fd;
        close(fd);
    }
    return -1;
}

static void serve_all(struct control_server *s)
{
    struct pollfd p = {.fd = control_server_fd(s), .events = POLLIN};

    while (poll(&p, 1, 0) == 1)
        control_server_serve(s);
}

/* What the server says to these bytes, all of it. */
static size_t say(struct control_server *s, int fd, const void *bytes, size_t n, char *ret, size_t size)
{
    if (send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return 0;
    serve_all(s);
    ssize_t got = recv(fd, ret, size - 1, MSG_DONTWAIT);
    ret[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

#define CONTROL_TEST(name) TEST_ON(name, struct place *p, setup, teardown)

CONTROL_TEST(requests_are_answered)
{
    char text[4096];
    int n = 0;
    struct control_server *s = serve_at(p->store, &n);
    struct stat st;
    int fd = connect_raw(p->store);

    assert_string_equal(control_server_address(s), p->socket);
    assert_int_equal(stat(p->socket, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    say(s, fd, "{\"command\":\"hi\"}\n", 17, text, sizeof text);
    assert_non_null(strstr(text, "\"text\":\"hi\""));
    assert_non_null(strstr(text, "\"ok\":true"));
    say(s, fd, "{\"command\":\"fail\"}\n", 19, text, sizeof text);
    assert_non_null(strstr(text, "\"ok\":false"));
    assert_non_null(strstr(text, "no such thing"));
    assert_int_equal(say(s, fd, "{\"command\":", 11, text, sizeof text), 0); /* half a line is waited for */
    say(s, fd, "\"a\"}\n{\"command\":\"b\"}\n", 21, text, sizeof text);
    assert_non_null(strstr(text, "\"text\":\"a\""));
    assert_non_null(strstr(text, "\"text\":\"b\""));
    assert_int_equal(n, 4);
    close(fd);
    serve_all(s);
    control_server_destroy(s);
    assert_int_not_equal(access(p->socket, F_OK), 0);
}

CONTROL_TEST(garbage_harms_nobody)
{
    static const char *const lines[] = {"",
                                        "{",
                                        "[]",
                                        "3",
                                        "null",
                                        "{\"command\":3}",
                                        "\xff\xfe",
                                        "{\"a\":\"\\ud800\"}",
                                        "{\"command\":\"stop\\u0000x\"}"};
    char text[8192], bytes[4096];
    struct rng rng = {.key = 7};
    int n = 0;
    struct control_server *s = serve_at(p->store, &n);

    for (size_t i = 0; i < COUNT(lines); i++) {
        int fd = connect_raw(p->store);
        snprintf(bytes, sizeof bytes, "%s\n", lines[i]);
        say(s, fd, bytes, strlen(bytes), text, sizeof text);
        assert_non_null(strstr(text, i == 5 ? "\"ok\":true" : "\"ok\":false"));
        close(fd);
    }
    for (int round = 0; round < 400; round++) { /* bytes, pieces of JSON, connections that break in the middle */
        static const char alphabet[] = "{}[]\",:\n\\u0command19.-eE truefalsn\0\x80\xff";
        int fd = connect_raw(p->store);
        assert_true(fd >= 0);
        for (int k = 0; k < 4; k++) {
            size_t size = rng_u32(&rng) % sizeof bytes;
            for (size_t i = 0; i < size; i++)
                bytes[i] = round % 2 ? (char)rng_u32(&rng) : alphabet[rng_u32(&rng) % (sizeof alphabet - 1)];
            say(s, fd, bytes, size, text, sizeof text);
        }
        close(fd);
        serve_all(s);
    }
    int fd = connect_raw(p->store); /* and it still answers */
    say(s, fd, "{\"command\":\"hi\"}\n", 17, text, sizeof text);
    assert_non_null(strstr(text, "\"text\":\"hi\""));
    close(fd);
    control_server_destroy(s);
}

CONTROL_TEST(a_line_without_end_is_cut)
{
    char *bytes = malloc(1 << 16), text[4096];
    int n = 0;
    struct control_server *s = serve_at(p->store, &n);
    int fd = connect_raw(p->store);
    bool dropped = false;
    size_t sent = 0;

    memset(bytes, 'x', 1 << 16);
    while (!dropped && sent < 4 * CONTROL_REQUEST_MAX) {
        ssize_t got = send(fd, bytes, 1 << 16, MSG_NOSIGNAL | MSG_DONTWAIT);
        dropped = got < 0 && errno == EPIPE;
        sent += got > 0 ? (size_t)got : 0;
        serve_all(s);
    }
    assert_true(dropped);
    assert_true(recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0 && strstr(text, "too long") != NULL);
    assert_int_equal(n, 0);
    close(fd);
    free(bytes);
    control_server_destroy(s);
}

CONTROL_TEST(who_is_silent_for_longest_makes_room)
{
    int fds[CONTROL_CLIENTS_MAX + 4], n = 0;
    struct control_server *s = serve_at(p->store, &n);
    char text[256];

    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = connect_raw(p->store);
        serve_all(s);
        assert_true(say(s, fds[0], "{\"command\":\"hi\"}\n", 17, text, sizeof text) > 0); /* it is heard all the time */
    }
    for (size_t i = 0; i < COUNT(fds); i++) /* the first is there; the next four have gone */
        assert_int_equal(say(s, fds[i], "{\"command\":\"hi\"}\n", 17, text, sizeof text) > 0, i == 0 || i > 4);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    serve_all(s);
    fds[0] = connect_raw(p->store);
    assert_true(say(s, fds[0], "{\"command\":\"hi\"}\n", 17, text, sizeof text) >
                0); /* and all places are free again */
    close(fds[0]);
    control_server_destroy(s);
}

CONTROL_TEST(a_socket_left_behind_is_replaced)
{
    struct control_address a[CONTROL_ADDRESSES];
    cJSON *answer = NULL;
    bool reached;
    size_t count;
    int n = 0, fd = socket(AF_UNIX, SOCK_STREAM, 0);

    OK(control_addresses(p->store, a, &count, err));
    assert_true(control_address_bind(&a[0], fd));
    close(fd); /* the file stays, as after kill -9 */
    FAILS(control_call(p->store, cJSON_CreateObject(), &answer, &reached, err), ST_NOTFOUND, "no controller");
    assert_false(reached);
    struct control_server *s = serve_at(p->store, &n);
    assert_string_equal(control_server_address(s), p->socket);
    fd = connect_raw(p->store);
    assert_true(fd >= 0);
    close(fd);
    control_server_destroy(s);
}

CONTROL_TEST(another_file_is_left_alone)
{
    FILE *f = fopen(p->socket, "w");
    int n = 0;

    fputs("precious", f);
    fclose(f);
    struct control_server *s = serve_at(p->store, &n);
    assert_string_not_equal(control_server_address(s), p->socket);
    int fd = connect_raw(p->store);
    assert_true(fd >= 0);
    close(fd);
    control_server_destroy(s);
    assert_int_equal(access(p->socket, F_OK), 0);
}

/* Paths that no sockaddr_un can hold, also by way of a symbolic link: the socket lies beside the store all the same.
 * Where the store's name alone is too long, it is in $XDG_RUNTIME_DIR, or has an abstract name. */
CONTROL_TEST(long_paths_have_a_socket_too)
{
    char dir[256], store[512], alias[128], socket_path[520];
    struct control_address a[CONTROL_ADDRESSES], b[CONTROL_ADDRESSES];
    size_t n_a, n_b;
    int n = 0;

    for (int long_name = 0; long_name < 2; long_name++) {
        setenv("XDG_RUNTIME_DIR", p->dir, 1);
        snprintf(dir, sizeof dir, "%s/%0120d", p->dir, long_name);
        snprintf(store, sizeof store, "%s/%0*d.db", dir, long_name ? 100 : 1, 7);
        snprintf(alias, sizeof alias, "%s/alias%d", p->dir, long_name);
        snprintf(socket_path, sizeof socket_path, "%s.sock", store);
        assert_int_equal(mkdir(dir, 0700), 0);
        FILE *f = fopen(store, "w");
        assert_true(f != NULL && fclose(f) == 0);
        assert_int_equal(symlink(store, alias), 0);
        OK(control_addresses(store, a, &n_a, err));
        OK(control_addresses(alias, b, &n_b, err));
        assert_int_equal(n_a, long_name ? 2 : 3);
        assert_int_equal(n_b, n_a);
        for (size_t i = 0; i < n_a; i++)
            assert_string_equal(a[i].text, b[i].text);
        for (int runtime = 1; runtime >= 0; runtime--) {
            if (!runtime)
                unsetenv("XDG_RUNTIME_DIR");
            struct control_server *s = serve_at(store, &n);
            assert_int_equal(access(socket_path, F_OK) == 0, !long_name);
            assert_int_equal(control_server_address(s)[0] == '@', long_name && !runtime);
            int fd = connect_raw(alias);
            assert_true(fd >= 0);
            close(fd);
            control_server_destroy(s);
            assert_int_not_equal(access(socket_path, F_OK), 0);
        }
        unlink(alias);
        unlink(store);
        rmdir(dir);
    }
}

static struct control_server *threaded;
static atomic_bool over;

static void *serve_thread(void *ctx)
{
    struct pollfd p = {.fd = control_server_fd(threaded), .events = POLLIN};

    (void)ctx;
    while (!atomic_load(&over))
        if (poll(&p, 1, 10) == 1)
            control_server_serve(threaded);
    return NULL;
}

CONTROL_TEST(a_call_gets_its_answer)
{
    pthread_t thread;
    cJSON *answer = NULL, *request = cJSON_CreateObject();
    char *big = calloc(1, 1000001);
    bool reached;
    int n = 0;

    threaded = serve_at(p->store, &n);
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&thread, NULL, serve_thread, NULL), 0);
    json_add_str(request, "command", "hello");
    OK(control_call(p->store, request, &answer, &reached, err));
    assert_string_equal(json_get_str(answer, "text"), "hello");
    cJSON_Delete(answer);
    request = cJSON_CreateObject();
    json_add_str(request, "command", "fail");
    FAILS(control_call(p->store, request, &answer, &reached, err), ST_NOTFOUND, "no such thing");
    assert_true(reached);
    request = cJSON_CreateObject();
    memset(big, 'y', 1000000); /* a long request, as a whole config is */
    json_add_str(request, "config", big);
    json_add_str(request, "command", "long");
    OK(control_call(p->store, request, &answer, &reached, err));
    assert_string_equal(json_get_str(answer, "text"), "long");
    cJSON_Delete(answer);
    free(big);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    control_server_destroy(threaded);
}

TEST_WITH(commands_are_checked, setup, teardown)
{
    static const char *const bad[] = {
        "{}",
        "{\"command\":\"explode\",\"study\":\"a\"}",
        "{\"command\":\"stop\"}",
        "{\"command\":\"stop\",\"study\":\"\"}",
        "{\"command\":\"stop\",\"study\":3}",
        "{\"command\":\"add\",\"study\":\"a\"}",
        "{\"command\":\"add\",\"study\":\"a\",\"trials\":-1}",
        "{\"command\":\"add\",\"study\":\"a\",\"trials\":99999999}",
        "{\"command\":\"add\",\"study\":\"a\",\"budget_s\":\"nan\"}",
        "{\"command\":\"add\",\"study\":\"a\",\"budget_s\":\"inf\"}",
        "{\"command\":\"add\",\"study\":\"a\",\"trials\":\"5\"}",
        "{\"command\":\"add\",\"study\":\"a\",\"budget_s\":\"60\"}",
        "{\"command\":\"pause\",\"study\":\"a\",\"now\":\"true\"}",
        "{\"command\":\"priority\",\"study\":\"a\",\"priority\":\"3\"}",
        "{\"command\":\"priority\",\"study\":\"a\",\"priority\":0}",
        "{\"command\":\"priority\",\"study\":\"a\",\"priority\":101}",
    };
    struct control_command c = {.kind = CONTROL_ADD, .study = "night", .trials = 5, .budget_s = 1.5, .priority = 3}, d;
    cJSON *json = control_command_to_json(&c);

    OK(control_command_from_json(json, &d, err));
    cJSON_Delete(json);
    assert_true(d.kind == c.kind && strcmp(d.study, c.study) == 0 && d.trials == 5 && d.budget_s == 1.5);
    for (size_t i = 0; i < COUNT(bad); i++) {
        OK(json_parse(bad[i], strlen(bad[i]), &json, err));
        FAILS(control_command_from_json(json, &d, err), ST_USAGE, "");
        cJSON_Delete(json);
    }
}

/* What one process writes of its limits another one reads, and what a request leaves out stays. */
TEST_WITH(limits_are_the_same_on_both_sides, setup, teardown)
{
    const struct limits all = {.trials_max = 7,
                               .budget_s = 1.5,
                               .wall_max_s = 60,
                               .device_max_s = 0.25,
                               .has_target = true,
                               .target_score = -3,
                               .gain_min = 0.125,
                               .priority = 9};
    static const char *const bad[] = {
        "{\"trials_max\":-1}",        "{\"trials_max\":9999999}",  "{\"budget_s\":\"inf\"}",
        "{\"wall_max_s\":-1}",        "{\"device_max_s\":\"1h\"}", "{\"priority\":0}",
        "{\"target_score\":\"nan\"}", "{\"gain_min\":-0.5}",       "{\"has_target\":1}"};
    struct limits got = {.priority = 1};
    cJSON *json = cJSON_CreateObject();

    limits_add_json(json, &all);
    OK(limits_take_json(json, &got, err));
    cJSON_Delete(json);
    assert_true(got.trials_max == 7 && got.budget_s == 1.5 && got.wall_max_s == 60 && got.device_max_s == 0.25);
    assert_true(got.has_target && got.target_score == -3 && got.gain_min == 0.125 && got.priority == 9);
    for (size_t i = 0; i < COUNT(bad); i++) {
        OK(json_parse(bad[i], strlen(bad[i]), &json, err));
        FAILS(limits_take_json(json, &got, err), ST_USAGE, "");
        cJSON_Delete(json);
    }
    OK(json_parse("{\"budget_s\":2}", 14, &json, err));
    OK(limits_take_json(json, &got, err));
    cJSON_Delete(json);
    assert_true(got.trials_max == 7 && got.budget_s == 2 && got.has_target && got.priority == 9);
}

TEST_PROGRAM("control")
