/* movie.c - see movie.h. */
#include "sweep/cmd/policy/movie.h"

#include "base/os/file.h"
#include "web/serve/gif_movie.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#define GIF_MAX_BYTES ((size_t)1 << 30)
#define PATH_ROOM 4096

extern char **environ;

struct movie {
    const char *path; /* borrowed */
    size_t frame_bytes;
    struct gif_movie *gif;
    struct strbuf bytes; /* of the GIF */
    pid_t pid; /* of ffmpeg; 0: none */
    int pipe; /* to it; -1: closed */
    char made[PATH_ROOM]; /* that it writes, renamed at the end */
};

/* Is the program on the path? */
static bool has_program(const char *name)
{
    const char *at = getenv("PATH");
    char path[PATH_ROOM];

    for (size_t n; at != NULL && *at != '\0'; at += n + (at[n] == ':')) {
        n = strcspn(at, ":");
        if ((size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, at, name) < sizeof path && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

enum status movie_check(const char *path, struct error *err)
{
    if (word_ends_in(path, ".gif"))
        return ST_OK;
    if (!word_ends_in(path, ".mp4"))
        return FAIL(err, ST_USAGE, "--video %s: a video is a .gif, or an .mp4 by the program ffmpeg", path);
    if (!has_program("ffmpeg"))
        return FAIL(err, ST_NOTFOUND,
                    "--video %s: an mp4 is made by the program ffmpeg, which is not on the PATH; install it (Debian: "
                    "ffmpeg), or end the name in .gif, which needs none",
                    path);
    return ST_OK;
}

static enum status start_ffmpeg(struct movie *m, int width, int height, struct error *err)
{
    char size[32], rate[16];
    char *argv[] = {"ffmpeg",  "-y",        "-loglevel",  "error", "-f",  "rawvideo", "-pix_fmt", "bgr0",
                    "-s",      size,        "-r",         rate,    "-i",  "-",        "-an",      "-pix_fmt",
                    "yuv420p", "-movflags", "+faststart", "-f",    "mp4", m->made,    NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], rc;

    snprintf(size, sizeof size, "%dx%d", width, height);
    snprintf(rate, sizeof rate, "%d", MOVIE_FPS);
    if ((size_t)snprintf(m->made, sizeof m->made, "%s.tmp.%ld", m->path, (long)getpid()) >= sizeof m->made)
        return FAIL(err, ST_USAGE, "--video: the path %.80s... is too long", m->path);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return FAIL(err, ST_IO, "no pipe to ffmpeg: %s", strerror(errno));
    if (posix_spawn_file_actions_init(&actions) != 0)
        mem_refused(0);
    posix_spawn_file_actions_adddup2(&actions, ends[0], 0);
    posix_spawn_file_actions_adddup2(&actions, 2, 1); /* stdout has the result */
    rc = posix_spawnp(&m->pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    m->pipe = ends[1];
    if (rc == 0)
        return ST_OK;
    m->pid = 0;
    return FAIL(err, ST_IO, "ffmpeg cannot be started: %s", strerror(rc));
}

enum status movie_create(struct movie **ret_movie, const char *path, int width, int height, struct error *err)
{
    struct movie *m = mem_alloc(sizeof *m);

    m->path = path;
    m->pipe = -1;
    m->frame_bytes = (size_t)width * (size_t)height * sizeof(uint32_t);
    strbuf_init(&m->bytes, GIF_MAX_BYTES);
    enum status rc = word_ends_in(path, ".gif") ? gif_movie_create(&m->gif, &m->bytes, width, height, MOVIE_FPS, err)
                                                : start_ffmpeg(m, width, height, err);
    if (rc != ST_OK) {
        movie_destroy(m);
        return rc;
    }
    *ret_movie = m;
    return ST_OK;
}

enum status movie_add(struct movie *m, const uint32_t *pixels, struct error *err)
{
    const char *at = (const char *)pixels;
    size_t left = m->frame_bytes;

    if (m->gif != NULL)
        return gif_movie_add(m->gif, pixels, err);
    while (left > 0) {
        ssize_t n = write(m->pipe, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FAIL(err, ST_IO, "ffmpeg takes no more frames for %s (its own message is above)", m->path);
        at += n;
        left -= (size_t)n;
    }
    return ST_OK;
}

/* Its exit status; it ends when its input does. */
static int end_ffmpeg(struct movie *m)
{
    int state = 0;

    if (m->pipe >= 0)
        close(m->pipe);
    m->pipe = -1;
    while (m->pid > 0 && waitpid(m->pid, &state, 0) < 0 && errno == EINTR)
        ;
    m->pid = 0;
    return state;
}

enum status movie_finish(struct movie *m, struct error *err)
{
    if (m->gif != NULL) {
        TRY(gif_movie_finish(m->gif, err));
        return file_write_all(m->path, m->bytes.text, m->bytes.len, err);
    }
    if (end_ffmpeg(m) != 0)
        return FAIL(err, ST_IO, "ffmpeg failed to write %s (its own message is above)", m->path);
    if (rename(m->made, m->path) != 0)
        return FAIL(err, ST_IO, "%s: %s", m->path, strerror(errno));
    return ST_OK;
}

void movie_destroy(struct movie *m)
{
    if (m == NULL)
        return;
    if (m->pid > 0 || m->pipe >= 0)
        (void)end_ffmpeg(m);
    if (m->made[0] != '\0')
        unlink(m->made); /* gone where it was finished */
    gif_movie_destroy(m->gif);
    strbuf_free(&m->bytes);
    mem_free(m);
}
