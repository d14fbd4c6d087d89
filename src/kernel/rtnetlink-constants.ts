/**
 * rtnetlink constants for links, addresses and routes (linux/rtnetlink.h, if_link.h, if_addr.h), only those that dns11
 * writes or reads.
 */
export const NETLINK_ROUTE = 0;

/** The index of lo in every namespace. */
export const LOOPBACK_INDEX = 1;

/** Request types, by the kernel's names. */
export const CALLS = {
  RTM_NEWLINK: 16,
  RTM_DELLINK: 17,
  RTM_GETLINK: 18,
  RTM_NEWADDR: 20,
  RTM_DELADDR: 21,
  RTM_GETADDR: 22,
  RTM_NEWROUTE: 24,
  RTM_GETROUTE: 26,
  RTM_GETNSID: 90,
} as const;

/** RTNLGRP_LINK, as a bit of a bind address. */
export const LINK_GROUP = 1;
/** RTNLGRP_IPV4_IFADDR, _IPV4_ROUTE, _IPV6_IFADDR and _IPV6_ROUTE, as bits of a bind address. */
export const ADDRESS_GROUPS = 0x10 | 0x40 | 0x100 | 0x400;

export const LINK_HEADER_BYTES = 16;
export const LINK_INDEX_OFFSET = 4;
export const LINK_FLAGS_OFFSET = 8;
export const LINK_CHANGE_OFFSET = 12;
export const IFF_UP = 0x1;
export const IFF_LOOPBACK = 0x8;
export const IFLA_ADDRESS = 1;
export const IFLA_IFNAME = 3;
/** The index of the other end of a veth. */
export const IFLA_LINK = 5;
export const IFLA_MASTER = 10;
export const IFLA_EXT_MASK = 29;
export const RTEXT_FILTER_SKIP_STATS = 1 << 3;
export const IFLA_OPERSTATE = 16;
export const IFLA_AF_SPEC = 26;
export const IFLA_INET_CONF = 1;
/** The offset of IPV4_DEVCONF_ROUTE_LOCALNET, the 26th, in the array of IFLA_INET_CONF. */
export const ROUTE_LOCALNET_OFFSET = 25 * 4;
export const IFLA_LINKINFO = 18;
export const IFLA_NET_NS_FD = 28;
export const IFLA_INFO_KIND = 1;
export const IFLA_INFO_DATA = 2;
export const VETH_INFO_PEER = 1;
export const IF_OPER_UP = 6;
/** The id of the namespace in which IFLA_LINK is an index; missing if it is this one. */
export const IFLA_LINK_NETNSID = 37;
/** Requests a link of the namespace with this id. */
export const IFLA_TARGET_NETNSID = 46;

/** struct rtgenmsg, padded. */
export const NAMESPACE_HEADER_BYTES = 4;
export const NETNSA_NSID = 1;
export const NETNSA_FD = 3;

export const ADDRESS_HEADER_BYTES = 8;
export const ADDRESS_PREFIX_OFFSET = 1;
export const ADDRESS_INDEX_OFFSET = 4;
export const IFA_ADDRESS = 1;
export const IFA_LOCAL = 2;
export const IFA_LABEL = 3;
export const IFA_FLAGS = 8;
export const IFA_F_NODAD = 0x02;

export const ROUTE_HEADER_BYTES = 12;
export const ROUTE_PREFIX_OFFSET = 1;
export const ROUTE_TABLE_OFFSET = 4;
export const ROUTE_TYPE_OFFSET = 7;
export const RT_TABLE_MAIN = 254;
export const RTPROT_STATIC = 4;
export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;
export const RT_SCOPE_HOST = 254;
export const RTN_UNICAST = 1;
export const RTN_LOCAL = 2;
/** Local, broadcast, anycast: packets to these addresses are received by this machine. */
export const ARRIVING_ROUTES: ReadonlySet<number> = new Set([RTN_LOCAL, 3, 4]);
/** Blackhole, unreachable, prohibit, throw. */
export const REFUSING_ROUTES: ReadonlySet<number> = new Set([6, 7, 8, 9]);
export const RTA_DST = 1;
export const RTA_OIF = 4;
export const RTA_GATEWAY = 5;
export const RTA_PRIORITY = 6;
export const RTA_MULTIPATH = 9;
export const NEXT_HOP_HEADER_BYTES = 8;
export const NEXT_HOP_INDEX_OFFSET = 4;
