/* tower_levels.c - which levels of tower_climb.h are played, a bit for each:
 *   cc -O2 -I build-dev/envs/plugin examples/fronts/tower_levels.c -o levels && ./levels > examples/fronts/tower_levels.inc
 * A level is played if the goal can be reached, but not within 9 decisions, as in PufferLib's list of 20,000 of this kind. What is
 * searched are the states of blocks and figure, by their number of decisions for the least one, else those near the goal first. */
#include "tower_climb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 10
#define MOST TOWER_DECISIONS
#define STATES 400000 /* more of them and no way: not played */
#define SLOTS (1 << 20)
#define QUEUES 200

struct node {
    struct tower_climb_state state;
    int depth, next; /* next: of the same queue */
};

static struct node nodes[STATES];
static uint64_t seen[SLOTS];
static int queues[QUEUES];

static bool is_new(const struct tower_climb_state *s)
{
    const uint64_t rest =
        (uint64_t)(uint16_t)s->at << 32 | (uint64_t)(uint16_t)s->held << 16 | (uint64_t)(s->facing << 1 | s->hanging);
    uint64_t hash = rest * 0x9E3779B97F4A7C15ull;
    size_t i;

    for (i = 0; i < 32; i++) {
        hash = (hash ^ s->blocks[i]) * 0xBF58476D1CE4E5B9ull;
        hash ^= hash >> 31;
    }
    hash += hash == 0;
    for (i = hash % SLOTS; seen[i] != 0; i = (i + 1) % SLOTS)
        if (seen[i] == hash)
            return false;
    seen[i] = hash;
    return true;
}

static int distance(const struct tower_climb_state *s)
{
    const int above = s->goal + TOWER_FLOOR;
    return 3 * abs(above / TOWER_FLOOR - s->at / TOWER_FLOOR) + abs(above % 10 - s->at % 10) +
           abs(above % TOWER_FLOOR / 10 - s->at % TOWER_FLOOR / 10);
}

static bool leads_to_goal(const struct tower_climb_state *start, int most, bool near_first)
{
    const struct tower_climb_settings settings = {0};
    int n = 0;

    memset(seen, 0, sizeof seen);
    memset(queues, -1, sizeof queues);
    is_new(start);
    nodes[n++] = (struct node){*start, 0, -1};
    queues[0] = 0;
    for (int q = 0; q < QUEUES;) {
        const int at = queues[q];
        if (at < 0) {
            q++;
            continue;
        }
        queues[q] = nodes[at].next;
        if (nodes[at].state.at - TOWER_FLOOR == start->goal)
            return true;
        for (int action = 0; action < 6 && nodes[at].depth < most; action++) {
            struct node *to = &nodes[n];
            float reward;
            to->state = nodes[at].state;
            if (tower_act(&settings, &to->state, action, &reward) != TOWER_DONE || !is_new(&to->state))
                continue;
            if (++n == STATES)
                return false;
            to->depth = nodes[at].depth + 1;
            const int into = near_first ? 4 * distance(&to->state) + to->depth / 2 : to->depth;
            const int queue = into < QUEUES ? into : QUEUES - 1;
            to->next = queues[queue];
            queues[queue] = n - 1;
            q = queue < q ? queue : q;
        }
    }
    return false;
}

int main(void)
{
    int n = 0;

    for (uint32_t first = 0; first < TOWER_LEVELS; first += 32) {
        uint32_t bits = 0;
        for (uint32_t i = 0; i < 32; i++) {
            struct tower_climb_state s = {0};
            if (tower_set_level(&s, first + i) && !leads_to_goal(&s, LEAST - 1, false) && leads_to_goal(&s, MOST, true))
                bits |= (uint32_t)1 << i;
        }
        n += __builtin_popcount(bits);
        printf("0x%08x,%s", bits, first / 32 % 8 == 7 ? "\n" : " ");
        fflush(stdout);
    }
    fprintf(stderr, "%d levels of %d\n", n, TOWER_LEVELS);
    return 0;
}
