/* test_file.c - a file is written whole or not at all, whatever fails. */
#include "base/os/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/check.h"
#include "base/fault.h"

static char dir[] = "/tmp/trawl-test-file-XXXXXX";
static char path[sizeof dir + 32]; /* a file in dir */

static int make_dir(void **state)
{
    (void)state;
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir); /* fails when anything was left there */
}

static size_t files_in_dir(void)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    for (struct dirent *entry; (entry = readdir(d)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

static void assert_content(const char *text)
{
    char *bytes;
    size_t n;

    assert_int_equal(file_read_all(path, 1 << 20, &bytes, &n, NULL), ST_OK);
    assert_int_equal(n, strlen(text));
    assert_string_equal(bytes, text);
    mem_free(bytes);
    assert_int_equal(files_in_dir(), 1);
}

TEST(replaces_and_reads_back)
{
    assert_int_equal(file_write_all(path, "", 0, NULL), ST_OK);
    assert_content("");
    assert_int_equal(file_write_all(path, "old", 3, NULL), ST_OK);
    assert_content("old");
    assert_int_equal(file_write_all(path, "newer", 5, NULL), ST_OK);
    assert_content("newer");
}

/* The text says where and that the old content is safe; the old content is. */
static void assert_untouched(enum fault_kind kind, const char *what)
{
    struct error err = {0};

    assert_int_equal(file_write_all(path, "good", 4, NULL), ST_OK);
    fault_arm(kind, 1);
    assert_int_equal(file_write_all(path, "half written", 12, &err), ST_IO);
    assert_true(fault_disarm(kind));
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, what));
    assert_content("good");
}

TEST(a_full_disk_leaves_the_old_file)
{
    assert_untouched(FAULT_WRITE, "No space left");
}

TEST(a_failed_fsync_leaves_the_old_file)
{
    assert_untouched(FAULT_FSYNC, "Input/output error");
}

TEST(a_device_is_written_to_not_replaced)
{
    struct error err = {0};
    struct stat st;

    if (access("/dev/full", W_OK) != 0) {
        print_message("# no /dev/full here: skipped\n");
        skip();
    }
    assert_int_equal(file_write_all("/dev/full", "x", 1, &err), ST_IO);
    assert_non_null(strstr(err.text, "/dev/full"));
    assert_non_null(strstr(err.text, "No space left"));
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(file_write_all("/dev/null", "x", 1, NULL), ST_OK);
}

/* What a killed process left is removed by the next write to the same file; what is young, alive or another's stays. */
TEST(what_a_killed_writer_left_is_removed)
{
    struct {
        char name[sizeof dir + 64];
        bool old, goes;
    } left[5] = {{.old = true, .goes = true}, {.old = false}, {.old = true}, {.old = true}, {.old = true}};
    struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    pid_t gone = fork();

    if (gone == 0)
        _exit(0);
    assert_int_equal(waitpid(gone, NULL, 0), gone);
    snprintf(left[0].name, sizeof left[0].name, "%s.tmp.%ld", path, (long)gone);
    snprintf(left[1].name, sizeof left[1].name, "%s.tmp.0%ld", path, (long)gone); /* young */
    snprintf(left[2].name, sizeof left[2].name, "%s.tmp.%ld", path, (long)getppid()); /* alive */
    snprintf(left[3].name, sizeof left[3].name, "%s2.tmp.%ld", path, (long)gone); /* of another file */
    snprintf(left[4].name, sizeof left[4].name, "%s.tmp.%ldx", path, (long)gone); /* none of ours */
    for (size_t i = 0; i < 5; i++) {
        FILE *f = fopen(left[i].name, "w");
        assert_true(f != NULL && fclose(f) == 0);
        if (left[i].old)
            assert_int_equal(utimensat(AT_FDCWD, left[i].name, long_ago, 0), 0);
    }
    assert_int_equal(file_write_all(path, "x", 1, NULL), ST_OK);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(access(left[i].name, F_OK) != 0, left[i].goes);
        unlink(left[i].name);
    }
    assert_content("x");
}

/* A writer that takes its time: the reader sees an open pipe without bytes. */
static int write_slowly(const char *to)
{
    int fd = open(to, O_WRONLY | O_CLOEXEC);
    bool ok =
        fd >= 0 && usleep(50000) == 0 && write(fd, "one", 3) == 3 && usleep(50000) == 0 && write(fd, " two", 4) == 4;

    return ok ? 0 : 1;
}

/* Nobody waits at a pipe that stands where a file should. */
TEST(a_pipe_is_not_waited_for)
{
    char *bytes;
    size_t n;

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    FAILS(file_read_regular(path, 100, &bytes, &n, err), ST_IO, "is not a file but a pipe");
    FAILS(file_write_all(path, "x", 1, err), ST_IO, "a pipe that nobody reads");
    FAILS(file_read_all(path, 100, &bytes, &n, err), ST_IO, "a pipe that nobody writes to");
    pid_t writer = fork();
    if (writer == 0)
        _exit(write_slowly(path));
    OK(file_read_all(path, 100, &bytes, &n, err));
    assert_string_equal(bytes, "one two");
    mem_free(bytes);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    unlink(path);
}

TEST(refuses_what_cannot_be_written)
{
    char longer[9000];

    FAILS(file_write_all("/no/such/folder/file", "x", 1, err), ST_IO, "/no/such/folder/file");
    assert_int_equal(file_write_all(dir, "x", 1, NULL), ST_IO); /* a folder */
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(file_write_all(longer, "x", 1, NULL), ST_IO);
}

TEST(reads_up_to_the_limit)
{
    struct error err = {0};
    char *bytes;
    size_t n;

    assert_int_equal(file_write_all(path, "0123456789", 10, NULL), ST_OK);
    assert_int_equal(file_read_all(path, 10, &bytes, &n, NULL), ST_OK);
    assert_int_equal(n, 10);
    mem_free(bytes);
    assert_int_equal(file_read_all(path, 9, &bytes, &n, &err), ST_LIMIT);
    assert_null(bytes);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(file_read_all("/dev/zero", 100000, &bytes, &n, NULL), ST_LIMIT); /* endless, size unknown */
    assert_null(bytes);
    assert_int_equal(file_read_all("/proc/self/status", 1 << 20, &bytes, &n, NULL), ST_OK); /* says size 0 */
    assert_true(n > 100 && strlen(bytes) == n);
    mem_free(bytes);
}

TEST(says_what_cannot_be_read)
{
    struct error why = {0};
    char *bytes;
    size_t n;

    assert_int_equal(file_read_all("/no/such/file", 10, &bytes, &n, &why), ST_IO);
    assert_non_null(strstr(why.text, "/no/such/file"));
    assert_non_null(strstr(why.text, "No such file"));
    error_clear(&why);
    FAILS(file_read_all(dir, 10, &bytes, &n, err), ST_IO, "folder");
}

TEST(folders_are_made_with_those_above)
{
    char at[sizeof dir + 64];
    struct stat st;

    snprintf(at, sizeof at, "%s/one/two//three/", dir);
    OK(file_make_folders(at, 0700, err));
    OK(file_make_folders(at, 0700, err)); /* they are there */
    assert_int_equal(stat(at, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0700);
    OK(file_write_all(path, "x", 1, err));
    snprintf(at, sizeof at, "%s/under", path);
    FAILS(file_make_folders(at, 0700, err), ST_IO, "/under: the folder cannot be created");
    for (const char *const *under = (const char *const[]){"one/two/three", "one/two", "one", NULL}; *under != NULL;
         under++) {
        snprintf(at, sizeof at, "%s/%s", dir, *under);
        assert_int_equal(rmdir(at), 0);
    }
}

TEST(crc_is_the_standard_one)
{
    assert_int_equal(file_crc32(0, "123456789", 9), 0xCBF43926); /* check value of CRC-32/ISO-HDLC */
    assert_int_equal(file_crc32(file_crc32(0, "1234", 4), "56789", 5), 0xCBF43926);
    assert_int_equal(file_crc32(0, "", 0), 0);
}

TEST_PROGRAM_WITH("file", make_dir, remove_dir)
