/* env_build.c - `trawl env build`: a header, a source file or a folder of PufferLib's becomes a library.
 * Invariant: the library appears whole or not at all, so that a process that has the old one open keeps it. */
#include "base/os/file.h"
#include "envs/envs.h"
#include "envs/plugin/headers.h"
#include "envs/plugin/library.h"
#include "sweep/cli.h"
#include "sweep/cmd/env/compiler.h"
#include "sweep/cmd/env/env_commands.h"
#include "sweep/cmd/env/env_nvcc.h"

#include <ctype.h>
#include <sys/stat.h>

#define GLUE_MAX 8192u

enum source_kind {
    SOURCE_HEADER,
    SOURCE_C,
    SOURCE_CXX,
    SOURCE_RUST,
    SOURCE_PUFFER, /* a folder with PufferLib 4.0's binding.c */
    SOURCE_PUFFER_HEADER, /* a folder with the newer form's one header */
};

struct build {
    enum source_kind kind;
    char source[PATH_MAX]; /* whole path of the file, or of the folder */
    char name[ENV_LIBRARY_NAME_MAX + 1]; /* of the library's file; of a header also the game's */
    char folder[PATH_MAX]; /* of the headers, while it lasts */
    const char *out, *flags, *gpu;
    char nvcc[PATH_MAX]; /* "": no device code */
    char default_out[ENV_LIBRARY_NAME_MAX + 8];
};

/* ---- what is built ---- */

/* Of a folder the game has its name, of a header the functions too; a source file names its game itself. */
static enum status check_name(const char *name, bool folder, bool header, struct error *err)
{
    static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    bool ok = name[strspn(name, word)] == '\0';

    if (header)
        ok = ok && strchr(name, '-') == NULL && !isdigit((unsigned char)name[0]);
    if (ok || (!folder && !header))
        return ST_OK;
    return FAIL(err, ST_USAGE,
                "env build: the game would be named '%s', after its %s; a name is of a-z 0-9 _%s: rename it", name,
                folder ? "folder" : "file", folder ? " -" : ", which functions like NAME_step begin with");
}

static enum status find_source(struct build *b, const char *path, struct error *err)
{
    char binding[PATH_MAX + 16], header[PATH_MAX + ENV_LIBRARY_NAME_MAX + 8];
    struct stat st;

    if (realpath(path, b->source) == NULL || stat(b->source, &st) != 0)
        return FAIL(err, ST_NOTFOUND, "env build: %s: %s", path, strerror(errno));
    const char *base = strrchr(b->source, '/') + 1;
    size_t n = strcspn(base, ".");
    if (n == 0 || n > ENV_LIBRARY_NAME_MAX)
        return FAIL(err, ST_USAGE, "env build: the game would be named '%.*s'; a name has 1 to %d characters", (int)n,
                    base, ENV_LIBRARY_NAME_MAX);
    snprintf(b->name, sizeof b->name, "%.*s", (int)n, base);
    TRY(check_name(b->name, S_ISDIR(st.st_mode), word_ends_in(base, ".h"), err));
    snprintf(binding, sizeof binding, "%s/binding.c", b->source);
    snprintf(header, sizeof header, "%s/%s.h", b->source, b->name);
    if (S_ISDIR(st.st_mode) && !file_exists(binding) && !file_exists(header))
        return FAIL(
            err, ST_USAGE,
            "env build: %s has no binding.c and no %s.h, so it is not a game written for PufferLib; name the header or "
            "the source file of another game itself",
            path, b->name);
    if (S_ISDIR(st.st_mode))
        b->kind = file_exists(binding) ? SOURCE_PUFFER : SOURCE_PUFFER_HEADER;
    else if (word_ends_in(base, ".h"))
        b->kind = SOURCE_HEADER;
    else if (word_ends_in(base, ".c"))
        b->kind = SOURCE_C;
    else if (word_ends_in(base, ".cc") || word_ends_in(base, ".cpp") || word_ends_in(base, ".cxx"))
        b->kind = SOURCE_CXX;
    else if (word_ends_in(base, ".rs"))
        b->kind = SOURCE_RUST;
    else
        return FAIL(err, ST_USAGE,
                    "env build: %s is neither a .h, .c, .cc, .cpp or .rs file nor the folder of a "
                    "game",
                    path);
    return ST_OK;
}

/* ---- the folder of headers ---- */

static enum status write_headers(const char *folder, struct error *err)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/envs", folder);
    if (mkdir(path, 0700) != 0)
        return FAIL(err, ST_IO, "env build: %s cannot be created: %s", path, strerror(errno));
    for (size_t i = 0; i < env_n_headers; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, env_headers[i].name);
        TRY(file_write_all(path, env_headers[i].text, strlen(env_headers[i].text), err));
    }
    return ST_OK;
}

/* The source file that a header is compiled by; the header itself is named to the compiler, whatever its path. */
static enum status write_glue(const struct build *b, struct error *err)
{
    char path[PATH_MAX + 64], text[GLUE_MAX];
    int n =
        b->kind == SOURCE_HEADER
            ? snprintf(
                  text, sizeof text,
                  "#ifdef %s\n#error \"'%s' is a macro, so it cannot be a game's name: rename the file and the game\"\n"
                  "#endif\n#define ENV_GAME %s\n#include \"trawl_env.h\"\nTRAWL_ENV(%s_def)\n",
                  b->name, b->name, b->name, b->name)
            : snprintf(text, sizeof text, "#include \"puffer_batch.h\"\n");

    snprintf(path, sizeof path, "%s/glue.c", b->folder);
    return file_write_all(path, text, (size_t)n, err);
}

static bool is_puffers(const struct build *b)
{
    return b->kind == SOURCE_PUFFER || b->kind == SOURCE_PUFFER_HEADER;
}

static bool has_glue(const struct build *b)
{
    return b->kind == SOURCE_HEADER || b->kind == SOURCE_PUFFER_HEADER;
}

static void remove_folder(const char *folder)
{
    static const char *const made[] = {"glue.c", "puffer_game.h", "trawl_env_device.cuh", "device.cu", "device.o",
                                       "glue.o", "nvcc.log"};
    char path[PATH_MAX + 64];

    for (size_t i = 0; i < env_n_headers; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, env_headers[i].name);
        (void)unlink(path);
    }
    for (size_t i = 0; i < COUNT(made); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof path, "%s/envs", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
}

/* ---- the compiler ---- */

static const char *own_or(const char *variable, const char *usual)
{
    const char *own = getenv(variable);
    return own != NULL && own[0] != '\0' ? own : usual;
}

static void fill_rust_args(const struct build *b, const char *out, struct compiler *args)
{
    compiler_add_words(args, own_or("RUSTC", "rustc"));
    /* A panic cannot unwind into C; by this it ends with its message, and not with a backtrace that pushes that out. */
    compiler_add_words(args, "--edition 2021 --crate-type cdylib -O -Cpanic=abort");
    if (TRAWL_CPU_ARCH[0] != '\0')
        compiler_add(args, "-Ctarget-cpu=", TRAWL_CPU_ARCH);
    compiler_add_words(args, b->flags);
    compiler_add(args, "", b->source);
    compiler_add_words(args, "-o");
    compiler_add(args, "", out);
}

/* object: glue.o alone is made, which nvcc links. */
static void fill_args(const struct build *b, const char *out, bool object, struct compiler *args)
{
    static const char *const usual[] = {"-fPIC",
                                        "-O3",
                                        "-fopenmp-simd",
                                        "-fno-math-errno",
                                        "-fno-trapping-math",
                                        "-ffp-contract=off", /* the same bytes on every machine */
                                        "-fvisibility=hidden",
                                        "-Wno-missing-field-initializers"};
    char vendor[PATH_MAX + 16], header[ENV_LIBRARY_NAME_MAX + 8];

    compiler_add_words(args, b->kind == SOURCE_CXX ? own_or("CXX", "c++") : own_or("CC", "cc"));
    compiler_add(args, "", object ? "-c" : "-shared");
    for (size_t i = 0; i < COUNT(usual); i++)
        compiler_add(args, "", usual[i]);
    if (TRAWL_CPU_ARCH[0] != '\0')
        compiler_add(args, "-march=", TRAWL_CPU_ARCH);
    compiler_add(args, "-I", b->folder);
    if (is_puffers(b)) {
        compiler_add_words(args, "-w -std=gnu17 -include puffer_first.h");
        compiler_add(args, "-I", b->source);
        snprintf(vendor, sizeof vendor, "%s/../../vendor", b->source);
        compiler_add(args, "-I", vendor);
    } else {
        compiler_add_words(args, b->kind == SOURCE_CXX ? "-Wall" : "-Wall -std=gnu17");
    }
    compiler_add_words(args, b->flags);
    if (b->kind == SOURCE_HEADER)
        compiler_add_words(args, "-include trawl_env.h");
    if (has_glue(b)) {
        compiler_add_words(args, "-include");
        snprintf(header, sizeof header, "/%s.h", b->name);
        compiler_add(args, b->source, b->kind == SOURCE_HEADER ? "" : header);
        compiler_add(args, b->folder, "/glue.c");
    } else {
        compiler_add(args, b->source, b->kind == SOURCE_PUFFER ? "/binding.c" : "");
    }
    compiler_add_words(args, "-o");
    compiler_add(args, "", out);
    if (!object)
        compiler_add_words(args, "-lm");
}

/* The device code of a header, where that is asked for and possible: with it the library is linked by nvcc. */
static enum status compile_device(struct build *b, struct error *err)
{
    const bool insists = strcmp(b->gpu, "yes") == 0;
    struct error why = {0};

    if (strcmp(b->gpu, "no") == 0 || (b->kind != SOURCE_HEADER && !insists))
        return ST_OK;
    if (b->kind != SOURCE_HEADER)
        return FAIL(err, ST_USAGE, "env build: --gpu yes is for a header of the form of `trawl env new`, alone");
    enum status rc = env_nvcc_find(b->nvcc, &why);
    if (rc != ST_OK) {
        b->nvcc[0] = '\0';
        return insists ? FAIL(err, rc, "env build: --gpu yes: %s", why.text) : ST_OK;
    }
    fprintf(stderr, "compiling it for the GPU too, which takes a while (--gpu no leaves that out)\n");
    rc = env_nvcc_compile(b->nvcc, b->source, b->name, b->folder, b->flags, &why);
    if (rc == ST_OK)
        return ST_OK;
    b->nvcc[0] = '\0';
    if (insists)
        return FAIL(err, rc, "%s", why.text);
    fprintf(stderr, "%s; with a GPU the host steps this game\n", why.text);
    return ST_OK;
}

static enum status compile(struct build *b, struct error *err)
{
    char temporary[PATH_MAX], object[PATH_MAX + 16];
    struct compiler args = {.n = 0};

    TRY(compile_device(b, err));
    snprintf(temporary, sizeof temporary, "%s.tmp.%d", b->out, (int)getpid());
    snprintf(object, sizeof object, "%s/glue.o", b->folder);
    if (b->kind == SOURCE_RUST)
        fill_rust_args(b, temporary, &args);
    else
        fill_args(b, b->nvcc[0] != '\0' ? object : temporary, b->nvcc[0] != '\0', &args);
    enum status rc = compiler_run(&args, NULL, err);
    compiler_free(&args);
    if (rc == ST_OK && b->nvcc[0] != '\0')
        rc = env_nvcc_link(b->nvcc, b->folder, temporary, b->flags, err);
    if (rc == ST_OK && rename(temporary, b->out) != 0)
        rc = FAIL(err, ST_IO, "env build: %s cannot be written: %s", b->out, strerror(errno));
    if (rc != ST_OK)
        (void)unlink(temporary);
    return rc;
}

/* ---- the command ---- */

static enum status build(struct build *b, struct error *err)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(b->folder, sizeof b->folder, "%s/trawl-env-XXXXXX", tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    if (mkdtemp(b->folder) == NULL)
        return FAIL(err, ST_IO, "env build: no temporary folder %s: %s; set TMPDIR", b->folder, strerror(errno));
    enum status rc = write_headers(b->folder, err);
    if (rc == ST_OK && has_glue(b))
        rc = write_glue(b, err);
    if (rc == ST_OK && is_puffers(b))
        rc = env_puffer_write(b->source, b->name, b->folder, err);
    THEN(rc, compile(b, err));
    remove_folder(b->folder);
    return rc;
}

/* A look at what was built, by a child: it says whether it can be used. */
static enum status show(const struct build *b, struct error *err)
{
    char path[PATH_MAX], named[PATH_MAX + 2];
    const struct env_def *def;

    if (realpath(b->out, path) == NULL)
        return FAIL(err, ST_IO, "env build: %s: %s", b->out, strerror(errno));
    TRY(env_open(path, &def, err));
    snprintf(named, sizeof named, "%s%s", strchr(b->out, '/') != NULL ? "" : "./", b->out);
    printf("%s: game %s, %zu option%s%s; next: trawl env check %s\n", b->out, def->name, def->options.n_defs,
           def->options.n_defs == 1 ? "" : "s", b->nvcc[0] != '\0' ? ", GPU code" : "", SHELL_WORD(named));
    return ST_OK;
}

enum status env_build(int argc, char **argv, struct error *err)
{
    struct build b = {.gpu = "auto"};
    const struct cli_opt opts[] = {
        {"output", 'o', CLI_TEXT, &b.out, "FILE", "the library (the game's name with .so, in the current folder)"},
        {"flags", 0, CLI_TEXT, &b.flags, "TEXT",
         "further words for the compiler, quoted as for sh: --flags '-lfoo -I\"my headers\"'"},
        {"gpu", 0, CLI_TEXT, &b.gpu, "WHEN", "compile GAME.h for the GPU too: auto (if nvcc is installed), yes, no"},
    };
    const struct cli cli = {
        .name = "env build",
        .synopsis = "trawl env build GAME.h|GAME.c|GAME.cc|GAME.rs|FOLDER [-o FILE] [--flags TEXT] [--gpu WHEN]",
        .about =
            "Compiles a game into a library, whose path then goes wherever a game's name goes. GAME.h is a header\n"
            "as `trawl env new` writes it; GAME.c, GAME.cc or GAME.rs is a file of your own that exports\n"
            "trawl_env() (trawl_env.h says how). FOLDER holds a game written for PufferLib: its binding.c\n"
            "(4.0), or its FOLDER.h with puf_step (the newer form), is compiled unchanged, and its drawing\ndoes "
            "nothing. The compilers are cc, c++ and rustc, or what CC, CXX and RUSTC name; if nvcc is\ninstalled "
            "(NVCC names one), GAME.h is compiled for the GPU too, and runs there like a built-in game.\nAll others "
            "are stepped by the host.",
        .examples = "  trawl env build my_game.h\n"
                    "  trawl env build PufferLib/ocean/snake && trawl train ./snake.so PufferLib/config/snake.ini",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a header, a source file or a folder"),
    };

    CLI_PARSE(cli, words);
    TRY(find_source(&b, words.v[0], err));
    snprintf(b.default_out, sizeof b.default_out, "%s.so", b.name);
    b.out = b.out != NULL ? b.out : b.default_out;
    if (strcmp(b.gpu, "auto") != 0 && strcmp(b.gpu, "yes") != 0 && strcmp(b.gpu, "no") != 0)
        return FAIL(err, ST_USAGE, "env build: --gpu %s; auto, yes or no", b.gpu);
    if (!compiler_words_are_whole(b.flags))
        return FAIL(err, ST_USAGE, "env build: --flags %.300s: a quote has no end", b.flags);
    if (!env_is_library(b.out))
        return FAIL(err, ST_USAGE, "env build: -o %s must end with .so", b.out);
    TRY(build(&b, err));
    return show(&b, err);
}
