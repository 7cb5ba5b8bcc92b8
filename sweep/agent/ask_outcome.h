/* ask_outcome.h - what came of one try of a request of ask/tell, by whichever way. */
#pragma once

enum ask_outcome {
    ASK_DONE, /* the answer is the caller's */
    ASK_AGAIN, /* not reached, or it cannot answer now */
    ASK_REFUSED, /* and would be again */
    ASK_DENIED /* the token is wrong, or the server does not take such requests: a person may change that */
};
