/* train.c - a C program as the trainer: the same toy as train.py, with its parameters from the config file.
 *   cc -O2 -o train train.c -lm
 * It reads "lr = 0.1" lines of the file in argv[1], which is {config}, and prints one line for each epoch. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    const char *seed = getenv("TRAWL_SEED");
    double lr = 0.1, momentum = 0.0, dx = 0.0, dy = 0.0;
    int epochs = 20;
    char line[256];

    if (file == NULL)
        return perror("usage: train CONFIG"), 2;
    while (fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "lr = %lf", &lr);
        (void)sscanf(line, "momentum = %lf", &momentum);
        (void)sscanf(line, "epochs = %d", &epochs);
    }
    fclose(file);
    srand(seed != NULL ? (unsigned)strtoul(seed, NULL, 10) : 1);
    double x = 4.0 * rand() / RAND_MAX - 2.0, y = 4.0 * rand() / RAND_MAX - 2.0;
    for (int epoch = 1; epoch <= epochs; epoch++) {
        dx = momentum * dx - lr * 2.0 * x;
        dy = momentum * dy - lr * 0.2 * y;
        x += dx;
        y += dy;
        printf("TRAWL score=%.5f step=%d cost=%d\n", 1.0 / (1.0 + x * x + 0.1 * y * y), epoch, epoch);
        fflush(stdout);
    }
    return 0;
}
