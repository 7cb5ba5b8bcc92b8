/* test_place.c - locks of an open store, who folds its log, and copies of it. */
#include "tests/store/store_test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Would another process find a lock on the file? */
static bool is_locked(const char *path)
{
    int state = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &whole) != 0 ? 2 : whole.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(pid, &state, 0), pid);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) < 2);
    return WEXITSTATUS(state) == 1;
}

/* A lock file that is removed under its owner lets nobody else in. */
PLACE_TEST(a_removed_lock_file_lets_nobody_in)
{
    struct store *owner = NULL, *other = NULL;
    char lock[PATH_MAX];

    OK(store_open_writer(&owner, place->path, err));
    snprintf(lock, sizeof lock, "%s.lock", place->path);
    assert_int_equal(unlink(lock), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(store_open_writer(&other, place->path, NULL) == ST_BUSY ? 0 : 1);
    int how = -1;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    store_close(owner);
    OK(store_open_writer(&other, place->path, err)); /* free again */
    store_close(other);
}

/* POSIX drops a process's locks on a file when it closes any descriptor of it: nothing may open the file beside
 * SQLite. */
PLACE_TEST(locks_stay)
{
    struct store *writer, *reader;
    int64_t pid;

    OK(store_open_writer(&writer, place->path, err));
    (void)study_make(writer, "s");
    assert_true(is_locked(place->path));
    OK(store_open_reader(&reader, place->path, err));
    assert_true(is_locked(place->path));
    store_close(reader);
    assert_true(store_is_held(place->path, NULL, &pid));
    FAILS(store_open_writer(&reader, place->path, err), ST_BUSY, "in use");
    assert_true(is_locked(place->path));
    store_close(writer);
    assert_false(is_locked(place->path));
}

static int64_t size_of(const char *path, const char *suffix)
{
    char name[160];
    struct stat st;

    snprintf(name, sizeof name, "%s%s", path, suffix);
    return stat(name, &st) == 0 ? (int64_t)st.st_size : 0;
}

PLACE_TEST(only_the_writer_folds)
{
    struct store *writer, *second;
    MEM_LOCAL char *text = malloc(100001);

    memset(text, ' ', 100000);
    memcpy(text, "{}", 2);
    text[100000] = '\0';
    OK(store_open_writer(&writer, place->path, err));
    struct study study = study_make(writer, "s");
    OK(store_open_second(&second, place->path, err));
    int64_t before = size_of(place->path, "");
    for (int i = 0; i < 40; i++) /* 4 MB, a thousand pages */
        OK(store_outbox_add(second, study.id, 0, text, err));
    assert_int_equal(size_of(place->path, ""), before);
    store_fold(second);
    assert_int_equal(size_of(place->path, ""), before);
    store_close(second);
    assert_int_equal(size_of(place->path, ""), before);
    store_fold(writer);
    assert_true(size_of(place->path, "") > before + 4000000);
    store_close(writer);
}

static void forget(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"}; /* readers leave the last two behind */
    char name[160];

    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

PLACE_TEST(copy)
{
    struct store *writer, *copy;
    struct study found;
    char path[128];

    snprintf(path, sizeof path, "%s/c.db", place->dir);
    OK(store_open_writer(&writer, place->path, err));
    (void)study_make(writer, "s");
    OK(store_copy(writer, path, err));
    FAILS(store_copy(writer, path, err), ST_EXISTS, "name another file");
    assert_int_equal(size_of(path, "-wal") + size_of(path, "-shm") + size_of(path, ".part"), 0);
    OK(store_open_reader(&copy, path, err));
    OK(store_check(copy, err));
    OK(store_study_find(copy, "s", &found, err));
    study_free(&found);
    store_close(copy);
    forget(path);

    bool again;
    OK(store_place_check(writer, &again, err));
    assert_int_equal(unlink(place->path), 0);
    (void)study_make(writer, "later"); /* nothing fails, which is why somebody has to look */
    FAILS(store_place_check(writer, &again, err), ST_IO, "was removed or moved");
    MEM_LOCAL char *rescue = NULL;
    OK(store_rescue(writer, &rescue, err));
    OK(store_open_reader(&copy, rescue, err));
    OK(store_study_find(copy, "later", &found, err));
    study_free(&found);
    store_close(copy);
    forget(rescue);
    store_close(writer);
}

PLACE_TEST(let_go)
{
    STORE *writer;

    OK(store_open_writer(&writer, place->path, err));
    struct study study = study_make(writer, "s");
    store_let_go(writer);
    FAILS(store_study_set_priority(writer, study.id, 3, err), ST_BUSY, "another controller has the store");
}

TEST_PROGRAM("store place")
