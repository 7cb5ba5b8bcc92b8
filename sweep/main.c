/* main.c - the program: finds the subcommand and runs it. */
#include <stdio.h>

int main(void)
{
    puts("trawl " TRAWL_VERSION " (" TRAWL_GIT ")");
    return 0;
}
