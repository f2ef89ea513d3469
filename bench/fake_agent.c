/* A tiny agent that emits numbered pieces of text on demand, so that a benchmark measures the server around it.
 *
 * Started as "*acp" it speaks ACP over stdio; under any other name it speaks the protocol of Ostler's mock agent.
 * A prompt holds "emit COUNT" or "emit COUNT at RATE" (pieces per second); each piece starts with "tick-NNNNNNN".
 * At rates that a model reaches, each piece is written by itself, holds the time, and has 100 bytes that do not repeat.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE "tick-%07ld %s"
#define WORDS "the quick brown fox jumps over it "
#define SLOW 5000.0

struct dialect {
    const char *piece;
    const char *done;
    int has_messages; /* whether pieces belong to a message that is opened, and repeated whole when it is final */
};

static const struct dialect acp = {
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{"
    "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"" PIECE "\"}}}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"stopReason\":\"end_turn\"}}\n",
    0,
};

static const struct dialect mock = {
    "{\"type\":\"text\",\"delta\":\"" PIECE "\",\"id\":%ld}\n",
    "{\"type\":\"done\",\"outcome\":\"completed\",\"reason\":\"end_turn\"}\n",
    1,
};

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void nap(double seconds) {
    struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static void keep_pace(double begin, double due, double slack) {
    double ahead = due - (now() - begin);
    if (ahead > slack) {
        fflush(stdout);
        nap(ahead);
    }
}

/* The time in microseconds and words that no compression knows beforehand. */
static const char *stamped(void) {
    static const char *syllables[] = {"ka", "lo", "min", "tre", "su", "van", "per", "di", "so", "ruk", "eln", "ost",
                                      "qui", "bar", "hef", "zy"};
    static char text[128];
    static unsigned long seed = 1;
    int length = snprintf(text, sizeof text, "at %016.0f ", now() * 1e6);
    while (length < 84) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s", syllables[seed >> 60],
                           (seed >> 50) % 3 ? "" : " ");
    }
    return text;
}

static void emit(const struct dialect *speech, long turn, long count, double rate) {
    int is_slow = rate > 0 && rate <= SLOW;
    double begin = now();
    for (long number = 0; number < count; number++) {
        if (rate > 0) {
            keep_pace(begin, (double)number / rate, is_slow ? 0 : 0.001);
        }
        printf(speech->piece, number, is_slow ? stamped() : WORDS, turn); /* ACP has no use for the turn */
    }
}

static void open_message(long turn) {
    printf("{\"type\":\"message_start\",\"id\":%ld}\n", turn);
}

static void close_message(long turn, long count) {
    printf("{\"type\":\"message_end\",\"id\":%ld,\"parts\":[{\"kind\":\"text\",\"text\":\"", turn);
    for (long number = 0; number < count; number++) {
        printf(PIECE, number, WORDS);
    }
    printf("\"}]}\n");
}

static void answer_prompt(const struct dialect *speech, const char *line, const char *id) {
    static long turn = 0;
    long count = 1;
    double rate = 0;
    const char *order = strstr(line, "emit ");
    if (order != NULL) {
        sscanf(order, "emit %ld at %lf", &count, &rate);
    }
    turn++;
    if (speech->has_messages) {
        open_message(turn);
    }
    emit(speech, turn, count, rate);
    if (speech->has_messages) {
        close_message(turn, count);
    }
    printf(speech->done, id);
    fflush(stdout);
}

static void take_acp(const char *line) {
    char id[32] = "null";
    const char *found = strstr(line, "\"id\":");
    if (found != NULL) {
        sscanf(found + 5, "%31[^,}]", id);
    }
    if (strstr(line, "\"initialize\"") != NULL) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n", id);
    } else if (strstr(line, "\"session/new\"") != NULL) {
        printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"sessionId\":\"s1\"}}\n", id);
    } else if (strstr(line, "\"session/prompt\"") != NULL) {
        answer_prompt(&acp, line, id);
    }
    fflush(stdout);
}

static void take_mock(const char *line) {
    if (strstr(line, "\"type\":\"prompt\"") != NULL) {
        answer_prompt(&mock, line, "");
    }
}

int main(int argc, char **argv) {
    static char buffer[1 << 16];
    char *line = NULL;
    size_t room = 0;
    const char *name = argc > 0 ? argv[0] : "";
    size_t length = strlen(name);
    int speaks_acp = length >= 3 && strcmp(name + length - 3, "acp") == 0;

    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (!speaks_acp) {
        printf("{\"type\":\"ready\",\"session\":\"bench\",\"model\":\"mock-small\",\"mode\":\"build\"}\n");
        fflush(stdout);
    }
    while (getline(&line, &room, stdin) > 0) {
        if (speaks_acp) {
            take_acp(line);
        } else {
            take_mock(line);
        }
    }
    return 0;
}
