/* serve_study.c - studies for web/: which game and which cost.
 * Called from several threads: nothing here keeps state. */
#include "study/search.h"
#include "sweep/pages/serve_hooks.h"
#include "web/serve/serve.h"

#include <stdio.h>
#include <string.h>

/* The game's name stands in the study's config; only that line is looked for, so that an odd config cannot hide a
 * study. */
static void find_env_name(const char *config, char *buf, size_t size)
{
    bool in_env = false;

    buf[0] = '\0';
    for (const char *line = config; line != NULL && *line != '\0';) {
        size_t n = strcspn(line, "\n");
        char name[SERVE_ENV_MAX];
        if (line[0] == '[')
            in_env = strncmp(line, "[env]", 5) == 0;
        else if (in_env && sscanf(line, "name = %31[A-Za-z0-9_-]", name) == 1)
            snprintf(buf, size, "%s", name);
        line += n + (line[n] == '\n');
    }
}

static enum status hook_study(void *ctx, const struct study *study, struct serve_study *ret_info, struct error *err)
{
    struct search *search = NULL;
    enum status rc;

    (void)ctx;
    *ret_info = (struct serve_study){0};
    TRY(search_create(&search, err));
    rc = search_from_json(study->space, search, err);
    ret_info->cost = search->cost;
    find_env_name(study->config, ret_info->env, sizeof ret_info->env);
    search_destroy(search);
    return rc;
}

void serve_hooks_fill(struct serve_hooks *ret_hooks, struct serve_ctx *ctx)
{
    *ret_hooks = (struct serve_hooks){.ctx = ctx,
                                      .study = hook_study,
                                      .model_create = serve_model_create,
                                      .model_slice = serve_model_slice,
                                      .model_destroy = serve_model_destroy,
                                      .advise = serve_advise,
                                      .pick = serve_pick,
                                      .export_text = serve_export,
                                      .trial_config = serve_trial_config,
                                      .report = serve_report,
                                      .control = serve_control,
                                      .play_open = serve_play_open,
                                      .play_step = serve_play_step,
                                      .play_close = serve_play_close};
}
