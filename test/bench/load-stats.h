/*
 * Statistics of a load generator: replies, wrong replies, and their latency in steps of a microsecond up to a second. Each
 * program is one file that includes this.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LATE_MICROS 1000000
/* How long to wait for replies after the last query. */
#define DRAIN_MICROS 1000000
#define REPLY_HEADER_BYTES 12

static uint32_t delays[LATE_MICROS + 1];
static long queries, answered, wrong;
static int64_t last_answer;

static int64_t now_micros(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

/* A correct reply is NOERROR with at least one record. */
static void note_answer(const unsigned char *reply, size_t length, int64_t since) {
  last_answer = now_micros();
  int64_t micros = last_answer - since;
  delays[micros < LATE_MICROS ? micros : LATE_MICROS]++;
  answered++;
  if (length < REPLY_HEADER_BYTES || (reply[3] & 15) != 0 || reply[7] == 0) wrong++;
}

static double quantile_ms(double share) {
  long left = answered * share;
  for (int micros = 0; micros <= LATE_MICROS; micros++) {
    if (left < (long)delays[micros]) return micros / 1000.0;
    left -= delays[micros];
  }
  return LATE_MICROS / 1000.0;
}

static void print_stats(int64_t start) {
  printf("{\"queries\":%ld,\"answered\":%ld,\"wrong\":%ld,\"seconds\":%.6f,\"p50Ms\":%.3f,\"p99Ms\":%.3f}\n", queries, answered,
         wrong, (last_answer - start) / 1e6, quantile_ms(0.5), quantile_ms(0.99));
}
