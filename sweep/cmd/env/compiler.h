/* compiler.h - a compiler's command line, and running it. One thread. */
#pragma once

#include "base/base.h"

#define COMPILER_WORDS_MAX 96

struct compiler {
    char *words[COMPILER_WORDS_MAX + 1]; /* owned; words[0] is the program, NULL ends them */
    size_t n;
};

void compiler_add(struct compiler *c, const char *prefix, const char *text); /* one word */
/* Words as a shell separates them, by blanks outside of quotes; NULL is fine. */
void compiler_add_words(struct compiler *c, const char *words);
bool compiler_words_are_whole(const char *words); /* false: a quote has no end */
/* Of these words the options of one of these letters: "DUI" for -D, -U and -I. NULL: all words. */
void compiler_add_flags(struct compiler *c, const char *words, const char *letters);
/* log: a file for what it prints, shown where it fails; NULL: it prints to our stderr. */
enum status compiler_run(struct compiler *c, const char *log, struct error *err) MUST_USE;
void compiler_free(struct compiler *c); /* also one without words */
