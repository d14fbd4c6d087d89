/*
 * Load through a veth, with both ends in one process on one processor: what the kernel does for a packet counts as this
 * process's time, so other programs of the machine hardly change the result. "stream" sends bytes by one TCP connection,
 * "connect" opens TCP connections and resets them, "datagrams" sends UDP from one socket. Prints one line of JSON: how many
 * bytes, connections or datagrams, and the processor time. "programs" sends bytes from one process to another, as users of a
 * network do, and prints the time that passed.
 * Usage: veth-load stream|connect|datagrams|programs MILLISECONDS ADDRESS-OF-THE-SERVER ITS-NAMESPACE NAMESPACE-OF-THE-CLIENT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 5001
/* As much as a packet may have: a larger one does not fit into the processor's cache, and its speed varies. */
#define CHUNK (64 * 1024)
#define DATAGRAM 512

static struct sockaddr_in target = {.sin_family = AF_INET};
static char chunk[CHUNK];

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static int64_t now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void enter(const char *path) {
  int namespace = open(path, O_RDONLY | O_CLOEXEC);
  if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) fail(path);
  close(namespace);
}

static int serve(int type) {
  int server = socket(AF_INET, type, 0), on = 1;
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, (struct sockaddr *)&target, sizeof target) < 0) fail("bind");
  if (type == SOCK_STREAM && listen(server, 64) < 0) fail("listen");
  return server;
}

static int connected(int type) {
  int client = socket(AF_INET, type, 0);
  if (client < 0 || connect(client, (struct sockaddr *)&target, sizeof target) < 0) fail("connect");
  return client;
}

static void reset(int fd) {
  struct linger none = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(fd);
}

static int64_t connect_once(int server) {
  int client = connected(SOCK_STREAM);
  int accepted = accept(server, NULL, NULL);
  if (accepted < 0) fail("accept");
  reset(client);
  close(accepted);
  return 1;
}

static int64_t pass_chunk(int from, int to) {
  ssize_t sent = send(from, chunk, CHUNK, MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN) fail("send");
  int64_t passed = 0;
  for (ssize_t got; (got = recv(to, chunk, CHUNK, MSG_DONTWAIT)) > 0;) passed += got;
  return passed;
}

static int64_t pass_datagram(int from, int to) {
  if (send(from, chunk, DATAGRAM, 0) < 0) fail("send");
  return recv(to, chunk, DATAGRAM, 0) == DATAGRAM;
}

static void print_result(int64_t count, int64_t nanos) {
  printf("{\"count\":%lld,\"nanos\":%lld}\n", (long long)count, (long long)nanos);
}

static void pass_between_programs(int from, int to, int64_t millis) {
  int64_t began = now(CLOCK_MONOTONIC), end = began + millis * 1000000;
  pid_t sender = fork();
  if (sender < 0) fail("fork");
  if (sender == 0) {
    while (now(CLOCK_MONOTONIC) < end)
      if (send(from, chunk, CHUNK, 0) < 0) fail("send");
    shutdown(from, SHUT_WR);
    _exit(0);
  }
  int64_t passed = 0;
  for (ssize_t got; (got = recv(to, chunk, CHUNK, 0)) > 0;) passed += got;
  print_result(passed, now(CLOCK_MONOTONIC) - began);
  int status;
  if (waitpid(sender, &status, 0) < 0 || status != 0) exit(1);
}

int main(int count, char **args) {
  if (count != 6) return 2;
  const char *what = args[1];
  int64_t millis = atoll(args[2]);
  int type = strcmp(what, "datagrams") == 0 ? SOCK_DGRAM : SOCK_STREAM;
  target.sin_port = htons(PORT);
  if (inet_pton(AF_INET, args[3], &target.sin_addr) != 1) return 2;
  int are_programs = strcmp(what, "programs") == 0;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (!are_programs && sched_setaffinity(0, sizeof one, &one) < 0) fail("affinity");
  enter(args[4]);
  int server = serve(type);
  enter(args[5]);
  int from = -1, to = server;
  if (strcmp(what, "connect") != 0) from = connected(type);
  if (are_programs || strcmp(what, "stream") == 0) to = accept(server, NULL, NULL);
  if (are_programs) {
    pass_between_programs(from, to, millis);
    return 0;
  }
  int64_t done = 0, end = now(CLOCK_MONOTONIC) + millis * 1000000, began = now(CLOCK_PROCESS_CPUTIME_ID);
  while (now(CLOCK_MONOTONIC) < end)
    done += from < 0 ? connect_once(server) : type == SOCK_DGRAM ? pass_datagram(from, to) : pass_chunk(from, to);
  print_result(done, now(CLOCK_PROCESS_CPUTIME_ID) - began);
  return 0;
}
