/* words.h - texts that people write: the distance between two words ("did you mean"), and UTF-8. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define WORD_MAX 96 /* bytes of a word that are compared; the rest is ignored */

/* Edits (insert, delete, replace, swap neighbours) that turn a into b. */
size_t word_distance(const char *a, const char *b);
/* Is a word this few edits away probably the one that was meant? */
bool word_is_near(const char *misspelt, size_t distance);
/* The index of a word (NULL: none) in a list of names; n: it is not there. */
size_t word_index(const char *const *names, size_t n, const char *word);
/* The nearest of n names, the first one of equals; NULL when none is near. */
const char *word_nearest(const char *misspelt, const char *const *names, size_t n);

/* "%lld trial%s" */
#define PLURAL(n) ((n) == 1 ? "" : "s")

/* Does text end in `end`, with something before that? "run.ini" ends in ".ini", ".ini" does not. */
bool word_ends_in(const char *text, const char *end);

/* Bytes of the UTF-8 character at text (n bytes left), 0 when it is not UTF-8. */
size_t utf8_length(const char *text, size_t n);

/* Do two names of a parameter mean the same? "Learning-Rate" is learning_rate; b has n bytes. */
bool words_same_name(const char *a, const char *b, size_t n);

/* Takes a terminal's escape sequences (colours, movements) out of text (n bytes), in place; returns what is left. */
size_t words_drop_escapes(char *text, size_t n);
