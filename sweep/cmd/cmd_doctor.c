/* cmd_doctor.c - `trawl doctor`: what this build and machine are, and whether a sweep could run here.
 * Invariant: it changes nothing; a finding that would stop a sweep makes it fail, all others are printed. */
#include "base/text/json.h"
#include "base/os/machine.h"
#include "kernels/kernels.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/cmd/policy/video.h"
#include "sweep/supervise/memory_groups.h"
#include "web/http/curl.h"
#include "web/report/report.h"
#include "web/serve/mhd.h"

#include <cblas.h>
#include <gsl/gsl_version.h>
#include <sqlite3.h>
#include <zlib.h>

#include <stdarg.h>

struct finding {
    char key[24];
    char text[512];
};

struct findings {
    struct finding rows[40];
    size_t n;
    bool store_ok;
};

static void PRINTF_LIKE(3, 4) add(struct findings *f, const char *key, const char *fmt, ...)
{
    va_list args;

    if (f->n >= COUNT(f->rows))
        return;
    snprintf(f->rows[f->n].key, sizeof f->rows[f->n].key, "%s", key);
    va_start(args, fmt);
    vsnprintf(f->rows[f->n].text, sizeof f->rows[f->n].text, fmt, args);
    va_end(args);
    f->n++;
}

/* The WAL-reset bug, https://sqlite.org/wal.html#walresetbug: fixed in 3.51.3 and on two older branches. */
static bool has_wal_reset_bug(int version)
{
    return version < 3051003 && !(version >= 3050007 && version < 3051000) &&
           !(version >= 3044006 && version < 3045000);
}

static void look_at_sqlite(struct findings *f)
{
    add(f, "sqlite", "%s%s", sqlite3_libversion(),
        has_wal_reset_bug(sqlite3_libversion_number())
            ? " (has the WAL-reset bug, very rare: do not let other programs write to a store; 3.51.3 is without it)"
            : "");
}

static void look_at_build(struct findings *f)
{
    add(f, "program", "%s", program_text);
#if defined(__clang__)
    add(f, "compiler", "clang %s", __clang_version__);
#else
    add(f, "compiler", "gcc %s", __VERSION__);
#endif
#if defined(__AVX512F__)
    add(f, "vector_unit", "AVX-512");
#elif defined(__AVX2__)
    add(f, "vector_unit", "AVX2");
#else
    add(f, "vector_unit", "baseline of the architecture");
#endif
#if defined(__SANITIZE_ADDRESS__)
    add(f, "sanitizer", "address (slow)");
#endif
    look_at_sqlite(f);
    add(f, "openblas", "%s", openblas_get_config());
    add(f, "gsl", "%s", gsl_version);
    add(f, "cjson", "%s", cJSON_Version());
    add(f, "zlib", "%s", zlibVersion());
}

/* Libraries that are opened when they are first used (base/os/late.h). */
static void look_at_late_libraries(struct findings *f)
{
    static const struct {
        const char *key, *use;
        enum status (*open)(struct error *err);
    } libraries[] = {
        {"librsvg", "reports and charts as PDF and PNG", report_render_open},
        {"libcairo", "trawl eval --video", video_open},
        {"libcurl", "trackers, trawl agent, requests to a server", curl_open},
        {"libpq", "stores in PostgreSQL", store_postgres_open},
        {"libmicrohttpd", "trawl serve", mhd_open},
    };

    for (size_t i = 0; i < COUNT(libraries); i++) {
        struct error why = {0};
        if (libraries[i].open(&why) == ST_OK)
            add(f, libraries[i].key, "found, for %s", libraries[i].use);
        else
            add(f, libraries[i].key, "missing, and with it %s: %s", libraries[i].use, why.text);
    }
}

static void look_at_cuda(struct findings *f)
{
    struct kern_fact facts[16];
    char reason[256];
    bool there = kern_cuda_available(reason, sizeof reason);
    size_t n = kern_cuda_facts(facts, COUNT(facts));

    add(f, "cuda", "%savailable: %s", there ? "" : "not ", reason);
    for (size_t i = 0; i < n; i++)
        add(f, facts[i].key, "%s", facts[i].text);
    if (n == 0)
        add(f, "nccl", "not used: built without CUDA (it joins the GPUs of train.devices)");
    add(f, "device_auto", "train.device = auto takes %s", there ? "cuda" : "cpu");
}

static void look_at_machine(struct findings *f)
{
    struct memory_groups groups;
    char text[256];

    machine_cpu_name(text, sizeof text);
    add(f, "cpu", "%s", text);
    add(f, "cores", "%zu usable of %ld", machine_cores(), sysconf(_SC_NPROCESSORS_ONLN));
    add(f, "memory", "%.1f GiB", (double)machine_memory_bytes() / (1024.0 * 1024 * 1024));
    if (memory_groups_look(&groups, NULL))
        add(f, "worker_memory", "limited by a cgroup of %.200s for each worker", groups.root);
    else
        add(f, "worker_memory", "limited by RLIMIT_DATA: %s", groups.why_not);
    look_at_cuda(f);
}

static void look_at_store(struct findings *f, const char *path)
{
    struct error err = {0};

    struct store *store = NULL;
    bool there = store_may_exist(path);

    f->store_ok = check_writable(path, &err) == ST_OK;
    if (f->store_ok && there)
        f->store_ok = store_open_reader(&store, path, &err) == ST_OK && store_check(store, &err) == ST_OK;
    store_close(store);
    if (store_network_fs(path) != NULL)
        add(f, "store_place", "%s, whose locks and shared memory hold on one machine alone; a local disk is safer",
            store_network_fs(path));
    if (f->store_ok)
        add(f, "store", "%s %scan be written", path, there ? "is whole and " : "");
    else
        add(f, "store", "%s", err.text);
}

static void print_json(const struct findings *f)
{
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "usable_cores", (int64_t)machine_cores());
    json_add_i64(json, "memory_bytes", (int64_t)machine_memory_bytes());
    json_add_bool(json, "store_ok", f->store_ok);
    for (size_t i = 0; i < f->n; i++)
        json_add_str(json, f->rows[i].key, f->rows[i].text);
    cli_print_json(json);
}

enum status cmd_doctor(int argc, char **argv, struct error *err)
{
    struct findings f = {0};
    const char *store = "trawl.db";
    bool json = false;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &store, "FILE", "the store that will be written (trawl.db)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "doctor",
        .synopsis = "trawl doctor [--store FILE] [--json]",
        .about = "Shows the build, its libraries, the processor, memory and accelerator, and whether the store "
                 "is\nintact and can be written. Exit code 1 when a sweep could not run here.",
        .examples = "  trawl doctor\n"
                    "  trawl doctor --store /data/studies.db --json",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    look_at_build(&f);
    look_at_late_libraries(&f);
    look_at_machine(&f);
    look_at_store(&f, store);
    if (json)
        print_json(&f);
    for (size_t i = 0; !json && i < f.n; i++)
        printf("%-13s %s\n", f.rows[i].key, f.rows[i].text);
    if (!f.store_ok)
        return FAIL(err, ST_IO, "%s", f.rows[f.n - 1].text);
    return ST_OK;
}
