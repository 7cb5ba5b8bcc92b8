/* checkpoint_player.c - see checkpoint_player.h. */
#include "sweep/cmd/policy/checkpoint_player.h"

#include "base/config/config.h"
#include "envs/plugin/library.h"
#include "kernels/kernels.h"
#include "study/setup/setup.h"
#include "trainer/trainer.h"

enum status checkpoint_player_open(struct checkpoint_player *p, const char *checkpoint, int64_t seed, bool greedy,
                                   struct error *err)
{
    const struct kern_settings cpu = {.kind = KERN_CPU, .n_threads = 1};
    MEM_LOCAL char *text = NULL;

    env_libraries_run();
    TRY(setup_create(&p->setup, err));
    TRY(checkpoint_read_config(checkpoint, &text, err));
    TRY(config_load_text(p->setup->config, checkpoint, text, err));
    TRY(setup_finish(p->setup, err));
    p->setup->train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    TRY(kern_open(&p->kern, &cpu, err));
    return player_create(&p->player, p->kern, p->setup->env, p->setup->env_settings, &p->setup->policy,
                         &p->setup->train, checkpoint, seed, greedy, err);
}

void checkpoint_player_close(struct checkpoint_player *p)
{
    player_destroy(p->player);
    kern_close(p->kern);
    setup_destroy(p->setup);
}
