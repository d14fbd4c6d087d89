/*
 * Load generator with one client in each of many network namespaces, all for the same name. At full rate each client keeps a
 * window of queries in flight and sends the next when a reply arrives; at a given rate the clients send in turn. It
 * ends by itself and prints the result as one line of JSON.
 * Usage: crowd QUERIES_A_SECOND MILLISECONDS WINDOW NAME <paths of namespaces, one a line; a rate of 0 means full rate
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "load-stats.h"

#define CLIENTS_MAX 1024
#define WINDOW_MAX 64
#define EVENTS 128
#define REPLY_BYTES 512
#define TIMER CLIENTS_MAX

/* A query id is its slot in the window plus a counter, so that a reply is matched to the query in flight. */
struct client {
  int fd;
  uint16_t id[WINDOW_MAX];
  int64_t sent[WINDOW_MAX];
};

static struct client clients[CLIENTS_MAX];
static int client_count;
static int window;
static unsigned char query[300];
static size_t query_bytes;

static void write_query(const char *name) {
  static const unsigned char header[12] = {0, 0, 1, 0, 0, 1};
  memcpy(query, header, sizeof header);
  unsigned char *at = query + sizeof header;
  while (*name != 0) {
    size_t label = strcspn(name, ".");
    if (label == 0 || label > 63 || at + label > query + 256) exit(2);
    *at++ = label;
    memcpy(at, name, label);
    at += label;
    name += label + (name[label] == '.');
  }
  memcpy(at, "\0\0\1\0\1", 5);
  query_bytes = at + 5 - query;
}

static void open_clients(int poll) {
  char path[4096];
  while (client_count < CLIENTS_MAX && fgets(path, sizeof path, stdin) != NULL) {
    path[strcspn(path, "\n")] = 0;
    int namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (namespace < 0 || setns(namespace, CLONE_NEWNET) < 0) fail(path);
    close(namespace);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in resolver = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, "127.0.0.11", &resolver.sin_addr);
    if (fd < 0 || connect(fd, (struct sockaddr *)&resolver, sizeof resolver) < 0) fail("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = client_count};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
    clients[client_count++].fd = fd;
  }
}

static void send_query(struct client *client, int slot) {
  uint16_t id = client->id[slot] + WINDOW_MAX;
  client->id[slot] = id;
  client->sent[slot] = now_micros();
  query[0] = id >> 8;
  query[1] = id & 255;
  queries++;
  /* A query that could not be sent counts as lost. */
  if (send(client->fd, query, query_bytes, 0) < 0) return;
}

/* Receives replies; until that time each is followed by the next query, whose reply may be there already. */
static void receive(struct client *client, int64_t until) {
  unsigned char reply[REPLY_BYTES];
  for (;;) {
    ssize_t length = recv(client->fd, reply, sizeof reply, 0);
    if (length < 0) return;
    if (length < REPLY_HEADER_BYTES) continue;
    uint16_t id = reply[0] << 8 | reply[1];
    int slot = id % WINDOW_MAX;
    if (client->sent[slot] == 0 || client->id[slot] != id) continue;
    note_answer(reply, length, client->sent[slot]);
    client->sent[slot] = 0;
    if (last_answer < until) send_query(client, slot);
  }
}

/* A client whose window is full sends nothing: its waiting queries count already. */
static void send_one(struct client *client) {
  for (int slot = 0; slot < window; slot++) {
    if (client->sent[slot] != 0) continue;
    send_query(client, slot);
    return;
  }
}

int main(int count, char **words) {
  if (count != 5) return 2;
  long rate = atol(words[1]);
  int64_t lasts = atol(words[2]) * 1000;
  window = atoi(words[3]);
  if (rate < 0 || rate == 1 || rate > 1000000 || lasts <= 0 || window < 1 || window > WINDOW_MAX) return 2;
  write_query(words[4]);
  int poll = epoll_create1(EPOLL_CLOEXEC);
  open_clients(poll);
  if (client_count == 0) return 2;
  for (int i = 0; i < client_count; i++)
    for (int slot = 0; slot < WINDOW_MAX; slot++) clients[i].id[slot] = slot;

  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  int64_t start = last_answer = now_micros();
  if (rate > 0) {
    struct timespec each = {.tv_nsec = 1000000000 / rate};
    struct itimerspec every = {each, each};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = TIMER};
    if (timerfd_settime(timer, 0, &every, NULL) < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, timer, &event) < 0) fail("timer");
  } else {
    for (int slot = 0; slot < window; slot++)
      for (int i = 0; i < client_count; i++) send_query(&clients[i], slot);
  }
  for (int turn = 0;;) {
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(poll, events, EVENTS, 10);
    int64_t now = now_micros();
    int is_sending = now - start < lasts;
    for (int i = 0; i < ready; i++) {
      if (events[i].data.u32 != TIMER) {
        receive(&clients[events[i].data.u32], rate == 0 ? start + lasts : 0);
        continue;
      }
      uint64_t due = 0;
      if (read(timer, &due, sizeof due) != sizeof due || !is_sending) continue;
      for (; due > 0; due--) send_one(&clients[turn++ % client_count]);
    }
    if (!is_sending && (answered == queries || now - start > lasts + DRAIN_MICROS)) break;
  }
  print_stats(start);
  return 0;
}
