/* run_policy.c - a policy of Trawl in a program without Trawl: reads observations, writes the likeliest actions.
 *
 *   trawl train cartpole -o cartpole.ckpt && trawl export cartpole.ckpt -o cartpole.safetensors
 *   cc -I FOLDER-OF-trawl_policy.h -o run_policy run_policy.c -lm
 *   ./run_policy cartpole.safetensors <observations
 *
 * Each line is one observation, its numbers with blanks between them; an empty line begins a new episode. Each answer
 * is a line, a number for each of the game's heads. */
#include "trawl_policy.h"

int main(int argc, char **argv)
{
    struct trawl_policy policy;
    static char line[1 << 20];
    float action[TRAWL_POLICY_HEADS];

    if (argc != 2 || trawl_policy_load(&policy, argv[1]) != 0) {
        fprintf(stderr, "usage: run_policy FILE.safetensors <observations\nFILE is what `trawl export` writes\n");
        return 2;
    }
    float *state = (float *)calloc(policy.state_size + 1, sizeof *state);
    float *obs = (float *)calloc(policy.obs_size, sizeof *obs), *out = (float *)calloc(policy.n_out, sizeof *out);
    while (state && obs && out && fgets(line, sizeof line, stdin)) {
        char *at = line, *end = line;
        size_t n = 0;
        for (; n < policy.obs_size && (obs[n] = strtof(at, &end), end != at); n++)
            at = end;
        if (n == 0) { /* an episode begins: it remembers nothing */
            memset(state, 0, policy.state_size * sizeof *state);
            continue;
        }
        if (n < policy.obs_size) {
            fprintf(stderr, "run_policy: a line has %zu numbers, an observation has %zu\n", n, policy.obs_size);
            return 1;
        }
        trawl_policy_forward(&policy, state, obs, out);
        trawl_policy_act(&policy, out, NULL, NULL, action);
        for (size_t h = 0; h < policy.n_heads; h++)
            printf("%s%.9g", h > 0 ? " " : "", (double)action[h]);
        printf("\n");
    }
    free(out);
    free(obs);
    free(state);
    trawl_policy_close(&policy);
    return 0;
}
