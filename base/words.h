/* words.h - texts that people write: how near two words are ("did you mean"), and UTF-8. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#define WORD_MAX 96 /* bytes of a word that are compared; the rest is not looked at */

/* Edits (insert, delete, replace, swap neighbours) that turn a into b. */
size_t word_distance(const char *a, const char *b);
/* Is a word so few edits away that it was probably meant? */
bool word_is_near(const char *misspelt, size_t distance);
/* The nearest of n names, the first of equals; NULL when none is near. */
const char *word_nearest(const char *misspelt, const char *const *names, size_t n);

/* Bytes of the UTF-8 character at text (n bytes left), 0 when it is none. */
size_t utf8_length(const char *text, size_t n);

#endif
