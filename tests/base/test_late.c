/* test_late.c - libraries that are opened when they are first used, and what a missing one or an old one says. */
#include "base/os/late.h"
#include "tests/check.h"

#include <dlfcn.h>
#include <zlib.h>

#define ZLIB_EACH(F)                                                                                                   \
    F(, zlibVersion)                                                                                                   \
    F(, crc32)

static struct {
    ZLIB_EACH(LATE_CALL)
} z;

TEST(opens_once_and_calls)
{
    struct late_library zlib = {"libz.so.1", "zlib1g", ZLIB_EACH(LATE_NAME), &z, false, NULL};

    assert_int_equal(late_open(&zlib, NULL), ST_OK);
    assert_true(zlib.open);
    assert_int_equal(z.crc32(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
    assert_string_equal(z.zlibVersion(), zlibVersion());
    memset(&z, 0, sizeof z);
    assert_int_equal(late_open(&zlib, NULL), ST_OK);
    assert_null(z.crc32); /* it is left alone */
}

TEST(looks_in_its_folder_next)
{
    TEMP_FOLDER(folder);
    char path[64];
    struct late_library zlib = {"libtrawl-z.so.1", "zlib1g", ZLIB_EACH(LATE_NAME), &z, false, folder};
    Dl_info info;

    assert_int_equal(late_open(&zlib, NULL), ST_IO);
    assert_int_not_equal(dladdr((void *)(uintptr_t)zlibVersion, &info), 0);
    snprintf(path, sizeof path, "%s/libtrawl-z.so.1", folder);
    assert_int_equal(symlink(info.dli_fname, path), 0);
    assert_int_equal(late_open(&zlib, NULL), ST_OK);
    assert_string_equal(z.zlibVersion(), zlibVersion());
}

TEST(names_the_package_of_a_missing_one)
{
    struct late_library none = {"libtrawl-none.so.9", "libtrawl-none9", ZLIB_EACH(LATE_NAME), &z, false, NULL};
    struct error err = {0};

    for (int i = 0; i < 2; i++) {
        error_clear(&err);
        assert_int_equal(late_open(&none, &err), ST_IO);
        assert_non_null(strstr(err.text, "libtrawl-none.so.9"));
        assert_non_null(strstr(err.text, "install the package libtrawl-none9"));
    }
    assert_false(none.open);
}

TEST(names_a_missing_function)
{
    struct late_library old = {"libz.so.1", "zlib1g", ZLIB_EACH(LATE_NAME) "crc33\0", &(void *[3]){NULL}, false, NULL};
    struct error err = {0};

    assert_int_equal(late_open(&old, &err), ST_IO);
    assert_non_null(strstr(err.text, "libz.so.1 has no crc33"));
    assert_false(old.open);
}

TEST_PROGRAM("late")
