// Preloaded: sends of a table with the owner flag fail as on a kernel that does not know the flag; with NO_TABLES=1 sends of any table.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define NEW_TABLE ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWTABLE)
#define OWNER 2

static int is_owned(const struct nlmsghdr *message) {
  size_t at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
  while (at + NLA_HDRLEN <= message->nlmsg_len) {
    const struct nlattr *attribute = (const void *)((const char *)message + at);
    if (attribute->nla_len < NLA_HDRLEN) return 0;
    unsigned flags;
    memcpy(&flags, attribute + 1, sizeof flags);
    if ((attribute->nla_type & NLA_TYPE_MASK) == NFTA_TABLE_FLAGS && (ntohl(flags) & OWNER)) return 1;
    at += NLA_ALIGN(attribute->nla_len);
  }
  return 0;
}

static int is_netfilter(int fd) {
  int protocol = 0;
  socklen_t length = sizeof protocol;
  int failed = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length);
  return !failed && protocol == NETLINK_NETFILTER;
}

ssize_t send(int fd, const void *data, size_t length, int flags) {
  if (is_netfilter(fd)) {
    for (size_t at = 0; at + NLMSG_HDRLEN <= length;) {
      const struct nlmsghdr *message = (const void *)((const char *)data + at);
      if (message->nlmsg_len < NLMSG_HDRLEN || at + message->nlmsg_len > length) break;
      if (message->nlmsg_type == NEW_TABLE && (getenv("NO_TABLES") || is_owned(message))) {
        errno = EOPNOTSUPP;
        return -1;
      }
      at += NLMSG_ALIGN(message->nlmsg_len);
    }
  }
  ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
  return next(fd, data, length, flags);
}
