/* plan_file.h - what a library chose for the shapes that it was asked about, kept on disk for the next process.
 * A plan is bytes of a fixed size, found by a key of bytes. `about` names all that a choice depends on (card, driver,
 * library); a file of another `about` or other sizes, and a damaged one, counts as empty and is replaced. A cache:
 * nothing here fails, what cannot be read or written is searched again by the next process. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PLAN_ABOUT_MAX 256
#define PLANS_MAX 2048 /* of a file; the oldest give way */

struct plan_file;

/* path: borrowed until here. Reads the file. */
struct plan_file *plan_file_open(const char *path, const char *about, size_t key_size, size_t plan_size);
const void *plan_file_find(const struct plan_file *file, const void *key); /* NULL: unknown; valid until the next add */
/* Adds a plan, or replaces it. */
void plan_file_add(struct plan_file *file, const void *key, const void *plan);
/* Writes the file if plans were added, together with those that other processes have written since. */
void plan_file_save(struct plan_file *file);
void plan_file_close(struct plan_file *file); /* without saving; NULL is fine */
/* "FOLDER/NAME-1a2b3c4d.plans", its number made from about: of XDG_CACHE_HOME/trawl, else of ~/.cache/trawl. False:
 * neither variable names a folder, or the path is longer than buf. */
bool plan_file_path(const char *name, const char *about, char *buf, size_t size);
