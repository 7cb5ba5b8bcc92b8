/* test_file_chunks.c - a file goes through messages whole, or not at all. */

#include "base/os/file.h"
#include "base/text/json.h"
#include "sweep/launch/file_chunks.h"
#include "sweep/launch/proto.h"
#include "tests/check.h"

static char folder[TEMP_FOLDER_MAX], from[96], to[96];

static int set_up(void **state)
{
    (void)state;
    temp_folder_make(folder);
    snprintf(from, sizeof from, "%s/from", folder);
    snprintf(to, sizeof to, "%s/to", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

static size_t n_files(void)
{
    char command[128];
    unsigned n = 0;

    snprintf(command, sizeof command, "ls %s | wc -l", folder);
    FILE *pipe = popen(command, "r");
    assert_true(pipe != NULL && fscanf(pipe, "%u", &n) == 1);
    pclose(pipe);
    return n;
}

static void write_bytes(size_t n)
{
    MEM_LOCAL uint8_t *bytes = mem_alloc(n + 1);

    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 251);
    OK(file_write_all(from, bytes, n, err));
}

static cJSON *chunk_at(int64_t at, int64_t *ret_next)
{
    cJSON *json = proto_message("chunk");
    int64_t size;

    OK(file_chunk_add(json, from, at, ret_next, &size, err));
    return json;
}

TEST_WITH(a_file_of_any_size_arrives, set_up, tear_down)
{
    static const size_t sizes[] = {
        0, 1, PROTO_CHUNK_BYTES - 1, PROTO_CHUNK_BYTES, PROTO_CHUNK_BYTES + 1, 3 * PROTO_CHUNK_BYTES + 7};
    MEM_LOCAL struct file_chunks *file = mem_alloc(sizeof *file);

    for (size_t i = 0; i < COUNT(sizes); i++) {
        char *a = NULL, *b = NULL;
        size_t n_a, n_b;
        int64_t at = 0;
        bool done = false;
        write_bytes(sizes[i]);
        while (!done) {
            cJSON *json = chunk_at(at, &at);
            assert_true(strlen(json_get_str(json, "data")) < PROTO_MAX_BYTES / 2);
            OK(file_chunk_take(file, to, json, &done, err));
            cJSON_Delete(json);
        }
        OK(file_read_all(from, 1 << 24, &a, &n_a, err));
        OK(file_read_all(to, 1 << 24, &b, &n_b, err));
        assert_int_equal(n_a, sizes[i]);
        assert_int_equal(n_b, sizes[i]);
        assert_memory_equal(a, b, n_a);
        mem_free(a);
        mem_free(b);
    }
    assert_int_equal(n_files(), 2);
}

/* A chunk that is lost, repeated or torn leaves what was there before, and the next whole file counts again. */
TEST_WITH(half_a_file_is_none, set_up, tear_down)
{
    MEM_LOCAL struct file_chunks *file = mem_alloc(sizeof *file);
    int64_t second, third, end;
    bool done;

    OK(file_write_all(to, "before", 6, err));
    write_bytes(2 * PROTO_CHUNK_BYTES + 5);
    cJSON *chunks[] = {chunk_at(0, &second), chunk_at(second, &third), chunk_at(third, &end)};
    JSON_LOCAL cJSON *torn = cJSON_Duplicate(chunks[1], true);
    strcpy(json_get(torn, "data")->valuestring + 100, "*");
    const cJSON *const bad[] = {chunks[2], torn};
    for (size_t i = 0; i < 2; i++) {
        OK(file_chunk_take(file, to, chunks[0], &done, err));
        assert_int_equal(n_files(), 3); /* with the half */
        FAILS(file_chunk_take(file, to, bad[i], &done, err), ST_CORRUPT, to);
        assert_int_equal(n_files(), 2);
        FAILS(file_chunk_take(file, to, chunks[1], &done, err), ST_CORRUPT, "bytes from");
    }
    MEM_LOCAL char *bytes = NULL;
    size_t n;
    OK(file_read_all(to, 1 << 24, &bytes, &n, err));
    assert_string_equal(bytes, "before");
    OK(file_chunk_take(file, to, chunks[0], &done, err));
    OK(file_chunk_take(file, to, chunks[0], &done, err)); /* begun again */
    OK(file_chunk_take(file, to, chunks[1], &done, err));
    assert_false(done);
    OK(file_chunk_take(file, to, chunks[2], &done, err));
    assert_true(done);
    for (size_t i = 0; i < 3; i++)
        cJSON_Delete(chunks[i]);
}

TEST_WITH(a_missing_file_names_itself, set_up, tear_down)
{
    MEM_LOCAL struct file_chunks *file = mem_alloc(sizeof *file);
    JSON_LOCAL cJSON *json = proto_message("chunk");
    int64_t next, size;
    bool done;

    FAILS(file_chunk_add(json, from, 0, &next, &size, err), ST_IO, from);
    json_add_str(json, "reason", "it is gone");
    FAILS(file_chunk_take(file, to, json, &done, err), ST_IO, "it is gone");
}

TEST_PROGRAM("sweep/file_chunks")
