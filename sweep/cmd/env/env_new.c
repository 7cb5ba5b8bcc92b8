/* env_new.c - `trawl env new`: a small whole game and a config, to be changed into another game. */
#include "base/os/file.h"
#include "envs/plugin/headers.h"
#include "envs/plugin/library.h"
#include "sweep/cli.h"
#include "sweep/cmd/env/env_commands.h"

#include <ctype.h>

#define TEXT_MAX 65536u

/* The texts are held by the program; @ is the game's name. */
static const char *held_text(const char *name)
{
    for (size_t i = 0; i < env_n_headers; i++)
        if (strcmp(env_headers[i].name, name) == 0)
            return env_headers[i].text;
    return "";
}

/* A name is also a part of identifiers of C, which a macro would replace. */
static enum status check_name(const char *name, struct error *err)
{
    static const char *const macros[] = {"bool", "true", "false", "linux", "unix", "errno"};
    size_t n = strlen(name);
    bool ok = n >= 1 && n <= ENV_LIBRARY_NAME_MAX && islower((unsigned char)name[0]);

    for (size_t i = 0; i < n; i++)
        ok = ok && (islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) || name[i] == '_');
    if (!ok)
        return FAIL(err, ST_USAGE, "env new: '%s' is not a name for a game; a letter, then up to %d of a-z 0-9 _", name,
                    ENV_LIBRARY_NAME_MAX - 1);
    for (size_t i = 0; i < COUNT(macros); i++)
        if (strcmp(name, macros[i]) == 0)
            return FAIL(err, ST_USAGE, "env new: '%s' is a macro of C or of its headers; choose another name", name);
    if (strcmp(name, "trawl_env") == 0)
        return FAIL(err, ST_USAGE, "env new: trawl_env.h is the header that games include; choose another name");
    return ST_OK;
}

static enum status check_free(const char *name, const char *extension, struct error *err)
{
    char path[ENV_LIBRARY_NAME_MAX + 8];

    snprintf(path, sizeof path, "%s%s", name, extension);
    if (file_exists(path))
        return FAIL(err, ST_EXISTS, "env new: %s already exists; choose another name, or move it away", path);
    return ST_OK;
}

static enum status write_file(const char *name, const char *extension, const char *text, struct error *err)
{
    char path[ENV_LIBRARY_NAME_MAX + 8];

    snprintf(path, sizeof path, "%s%s", name, extension);
    STRBUF(sb, TEXT_MAX);
    for (const char *from = text; *from != '\0';) {
        size_t n = strcspn(from, "@");
        strbuf_add_n(&sb, from, n);
        if (from[n] == '@')
            strbuf_add(&sb, name);
        from += n + (from[n] == '@');
    }
    TRY(strbuf_status(&sb, path, err));
    return file_write_all(path, sb.text, sb.len, err);
}

enum status env_new(int argc, char **argv, struct error *err)
{
    const struct cli cli = {
        .name = "env new",
        .synopsis = "trawl env new NAME",
        .about = "Writes NAME.h, a small complete game whose comments explain each part, and NAME.ini, a config "
                 "that\ntrains and sweeps it, into the current folder. Existing files are not replaced.",
        .examples = "  trawl env new my_game && trawl env build my_game.h && trawl env check ./my_game.so\n"
                    "  trawl sweep my_game.ini --store my.db --name first",
        CLI_WORDS(1, 1, "a name (a letter, then a-z 0-9 _)"),
    };

    CLI_PARSE(cli, words);
    TRY(check_name(words.v[0], err));
    TRY(check_free(words.v[0], ".h", err));
    TRY(check_free(words.v[0], ".ini", err));
    TRY(write_file(words.v[0], ".h", held_text("new_game.h"), err));
    TRY(write_file(words.v[0], ".ini", held_text("new_game.ini"), err));
    printf("%s.h and %s.ini are written; next: trawl env build %s.h\n", words.v[0], words.v[0], words.v[0]);
    return ST_OK;
}
