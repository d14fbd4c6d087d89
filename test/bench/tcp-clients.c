/*
 * TCP load generator: a number of concurrent connections to the resolver of this network namespace. Each sends its queries
 * in one write, waits for all replies, closes, and makes room for the next one. At full rate the next one opens at once;
 * otherwise connections open at the given rate. It ends by itself and prints the result as one line of JSON. Latency counts
 * from the start of the connection.
 * Usage: tcp-clients CONNECTIONS_A_SECOND MILLISECONDS AT_ONCE QUERIES NAME; a rate of 0 means full rate
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "load-stats.h"

#define CLIENTS_MAX 128
#define QUESTIONS_MAX 32
#define EVENTS 128
#define REPLIES_BYTES 65536
#define TIMER CLIENTS_MAX

struct client {
  int fd;
  int open;
  int answered;
  int64_t since;
  size_t held;
  unsigned char replies[REPLIES_BYTES];
};

static struct client clients[CLIENTS_MAX];
static int poll_fd, at_once, questions, open_count;
static unsigned char text[QUESTIONS_MAX * 300];
static size_t text_bytes;

/* All queries of a connection, each behind its length. */
static void write_text(const char *name) {
  size_t name_bytes = strlen(name);
  if (name_bytes == 0 || name_bytes > 63) exit(2);
  size_t length = 12 + 1 + name_bytes + 1 + 4;
  for (int i = 0; i < questions; i++) {
    unsigned char *at = text + text_bytes;
    unsigned char header[14] = {0, length, 0, i, 1, 0, 0, 1};
    memcpy(at, header, sizeof header);
    at[14] = name_bytes;
    memcpy(at + 15, name, name_bytes);
    memcpy(at + 15 + name_bytes, "\0\0\1\0\1", 5);
    text_bytes += 2 + length;
  }
}

static void open_client(struct client *client) {
  struct sockaddr_in resolver = {.sin_family = AF_INET, .sin_port = htons(53)};
  inet_pton(AF_INET, "127.0.0.11", &resolver.sin_addr);
  client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (client->fd < 0) fail("socket");
  client->since = now_micros();
  client->answered = 0;
  client->held = 0;
  client->open = 1;
  open_count++;
  queries += questions;
  struct epoll_event event = {.events = EPOLLOUT, .data.u32 = client - clients};
  if (connect(client->fd, (struct sockaddr *)&resolver, sizeof resolver) < 0 && errno != EINPROGRESS) fail("connect");
  if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0) fail("epoll_ctl");
}

/* Queries without a reply by now count as lost. */
static void close_client(struct client *client) {
  close(client->fd);
  client->open = 0;
  open_count--;
}

/* The queries are far smaller than the socket buffer. */
static void send_query(struct client *client) {
  if (send(client->fd, text, text_bytes, MSG_NOSIGNAL) != (ssize_t)text_bytes) {
    close_client(client);
    return;
  }
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = client - clients};
  if (epoll_ctl(poll_fd, EPOLL_CTL_MOD, client->fd, &event) < 0) fail("epoll_ctl");
}

static void receive(struct client *client) {
  ssize_t more = recv(client->fd, client->replies + client->held, REPLIES_BYTES - client->held, 0);
  if (more < 0 && errno == EAGAIN) return;
  if (more <= 0) {
    close_client(client);
    return;
  }
  client->held += more;
  size_t at = 0;
  while (at + 2 <= client->held) {
    size_t length = client->replies[at] << 8 | client->replies[at + 1];
    if (at + 2 + length > client->held) break;
    note_answer(client->replies + at + 2, length, client->since);
    client->answered++;
    at += 2 + length;
  }
  memmove(client->replies, client->replies + at, client->held - at);
  client->held -= at;
  if (client->answered >= questions) close_client(client);
}

static void open_next(void) {
  for (int i = 0; i < at_once; i++) {
    if (clients[i].open) continue;
    open_client(&clients[i]);
    return;
  }
}

int main(int count, char **words) {
  if (count != 6) return 2;
  long rate = atol(words[1]);
  int64_t lasts = atol(words[2]) * 1000;
  at_once = atoi(words[3]);
  questions = atoi(words[4]);
  if (rate < 0 || rate > 100000 || rate == 1 || lasts <= 0) return 2;
  if (at_once < 1 || at_once > CLIENTS_MAX || questions < 1 || questions > QUESTIONS_MAX) return 2;
  write_text(words[5]);
  poll_fd = epoll_create1(EPOLL_CLOEXEC);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (rate > 0) {
    struct timespec each = {.tv_nsec = 1000000000 / rate};
    struct itimerspec every = {each, each};
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = TIMER};
    if (timerfd_settime(timer, 0, &every, NULL) < 0 || epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &event) < 0) fail("timer");
  }
  int64_t start = last_answer = now_micros();
  for (;;) {
    int64_t now = now_micros();
    int keeps_opening = now - start < lasts;
    if (keeps_opening && rate == 0)
      while (open_count < at_once) open_next();
    if (!keeps_opening && (open_count == 0 || now - start > lasts + DRAIN_MICROS)) break;
    struct epoll_event events[EVENTS];
    int ready = epoll_wait(poll_fd, events, EVENTS, 10);
    for (int i = 0; i < ready; i++) {
      if (events[i].data.u32 == TIMER) {
        uint64_t due = 0;
        if (read(timer, &due, sizeof due) != sizeof due || !keeps_opening) continue;
        for (; due > 0 && open_count < at_once; due--) open_next();
        continue;
      }
      struct client *client = &clients[events[i].data.u32];
      if (!client->open) continue;
      if (events[i].events & EPOLLOUT) send_query(client);
      else receive(client);
    }
  }
  print_stats(start);
  return 0;
}
