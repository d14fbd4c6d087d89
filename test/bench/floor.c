/*
 * Floor: the minimum work of a name server. It receives a batch, turns each query into a reply with one constant A record,
 * and sends them in a batch; no lookup, one thread. The difference to dns11 is the cost of what dns11 does.
 * Usage: floor ADDRESS PORT
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BATCH 64
#define QUERY_BYTES 512
#define HEADER_BYTES 12

static const unsigned char RECORD[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 192, 0, 2, 1};

static unsigned char data[BATCH][QUERY_BYTES + sizeof RECORD];

/* Length of the reply that replaces the query; 0 if there is none. */
static size_t answer(unsigned char *message, size_t length) {
  if (length < HEADER_BYTES + 5 || (message[2] & 0x80) || message[4] != 0 || message[5] != 1) return 0;
  size_t end = HEADER_BYTES;
  while (end < length && message[end] != 0) end += message[end] + 1;
  end += 5;
  if (end > length) return 0;
  message[2] = 0x80 | (message[2] & 1);
  message[3] = 0x80;
  memset(message + 6, 0, 6);
  message[7] = 1;
  memcpy(message + end, RECORD, sizeof RECORD);
  return end + sizeof RECORD;
}

int main(int count, char **words) {
  if (count != 3) return 2;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (inet_pton(AF_INET, words[1], &own.sin_addr) != 1 || bind(fd, (struct sockaddr *)&own, sizeof own) < 0) {
    perror("floor");
    return 1;
  }
  fprintf(stderr, "ready\n");

  struct mmsghdr in[BATCH], out[BATCH];
  struct iovec in_data[BATCH], out_data[BATCH];
  struct sockaddr_in senders[BATCH];
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  for (;;) {
    for (int i = 0; i < BATCH; i++) {
      in_data[i] = (struct iovec){data[i], QUERY_BYTES};
      in[i].msg_hdr = (struct msghdr){
          .msg_name = &senders[i], .msg_namelen = sizeof senders[i], .msg_iov = &in_data[i], .msg_iovlen = 1};
    }
    int received = recvmmsg(fd, in, BATCH, MSG_WAITFORONE, NULL);
    if (received < 0) continue;
    int replies = 0;
    for (int i = 0; i < received; i++) {
      size_t length = answer(data[i], in[i].msg_len);
      if (length == 0) continue;
      out_data[replies] = (struct iovec){data[i], length};
      out[replies].msg_hdr = (struct msghdr){
          .msg_name = &senders[i], .msg_namelen = sizeof senders[i], .msg_iov = &out_data[replies], .msg_iovlen = 1};
      replies++;
    }
    for (int sent = 0; sent < replies;) {
      int more = sendmmsg(fd, out + sent, replies - sent, 0);
      /* A send error for one client must not cost another its reply. */
      sent += more > 0 ? more : 1;
    }
  }
}
