/**
 * nf_tables constants (linux/netfilter/nf_tables.h), only those that dns11 writes or reads.
 */
export const NFT_MSG_NEWTABLE = 0;
export const NFT_MSG_GETTABLE = 1;
export const NFT_MSG_DELTABLE = 2;
export const NFT_MSG_NEWCHAIN = 3;
export const NFT_MSG_GETCHAIN = 4;
export const NFT_MSG_NEWRULE = 6;
export const NFT_MSG_GETRULE = 7;
export const NFT_MSG_DELCHAIN = 5;
export const NFT_MSG_DELRULE = 8;
export const NFT_MSG_NEWSET = 9;
export const NFT_MSG_GETSET = 10;
export const NFT_MSG_DELSET = 11;
export const NFT_MSG_NEWSETELEM = 12;
export const NFT_MSG_GETSETELEM = 13;
export const NFT_MSG_DELSETELEM = 14;

export const NFT_TABLE_F_OWNER = 2;
export const NFT_TABLE_F_PERSIST = 4;
export const NFTA_TABLE_NAME = 1;
export const NFTA_TABLE_FLAGS = 2;
export const NFTA_TABLE_HANDLE = 4;
export const NFTA_TABLE_USERDATA = 6;
export const NFTA_TABLE_OWNER = 7;
/** nft(8) shows this type of user data: type, length, then a text with a terminating zero. */
export const UDATA_COMMENT = 0;

export const NFTA_CHAIN_TABLE = 1;
export const NFTA_CHAIN_NAME = 3;
export const NFTA_CHAIN_HOOK = 4;
export const NFTA_CHAIN_POLICY = 5;
export const NFTA_CHAIN_TYPE = 7;
export const NFTA_HOOK_HOOKNUM = 1;
export const NFTA_HOOK_PRIORITY = 2;
export const NFTA_HOOK_DEV = 3;
export const NF_NETDEV_INGRESS = 0;
/** Since Linux 5.16. */
export const NF_NETDEV_EGRESS = 1;
export const NF_HOOKS = ["prerouting", "input", "forward", "output", "postrouting"] as const;

export const NFTA_RULE_TABLE = 1;
export const NFTA_RULE_CHAIN = 2;
export const NFTA_RULE_EXPRESSIONS = 4;
export const NFTA_LIST_ELEM = 1;
export const NFTA_EXPR_NAME = 1;
export const NFTA_EXPR_DATA = 2;

export const NFTA_PAYLOAD_DREG = 1;
export const NFTA_PAYLOAD_BASE = 2;
export const NFTA_PAYLOAD_OFFSET = 3;
export const NFTA_PAYLOAD_LEN = 4;
export const LINK_HEADER = 0;
export const NFTA_PAYLOAD_SREG = 5;
export const NFTA_PAYLOAD_CSUM_TYPE = 6;
export const NFTA_PAYLOAD_CSUM_OFFSET = 7;
export const NFT_PAYLOAD_CSUM_INET = 1;
export const NETWORK_HEADER = 1;
export const TRANSPORT_HEADER = 2;

export const NFTA_META_DREG = 1;
export const NFTA_META_KEY = 2;
export const NFTA_META_SREG = 3;
export const NFT_META_PROTOCOL = 1;
export const NFT_META_MARK = 3;
export const NFT_META_IIF = 4;
export const NFT_META_OIF = 5;
export const NFT_META_IIFNAME = 6;
export const NFT_META_NFPROTO = 15;
export const NFT_META_L4PROTO = 16;

export const NFTA_CMP_SREG = 1;
export const NFTA_CMP_OP = 2;
export const NFTA_CMP_DATA = 3;
export const NFT_CMP_EQ = 0;
export const NFT_CMP_NEQ = 1;

export const NFTA_BITWISE_SREG = 1;
export const NFTA_BITWISE_DREG = 2;
export const NFTA_BITWISE_LEN = 3;
export const NFTA_BITWISE_MASK = 4;
export const NFTA_BITWISE_XOR = 5;

export const NFTA_IMMEDIATE_DREG = 1;
export const NFTA_IMMEDIATE_DATA = 2;
export const NFTA_DATA_VALUE = 1;
export const NFTA_DATA_VERDICT = 2;
export const NFTA_VERDICT_CODE = 1;
export const NFTA_VERDICT_CHAIN = 2;
export const NFT_GOTO = -4;
export const NFT_JUMP = -3;
export const NF_DROP = 0;
export const NF_ACCEPT = 1;

export const NFTA_COUNTER_PACKETS = 2;

export const NFTA_CT_DREG = 1;
export const NFTA_CT_KEY = 2;
export const NFTA_CT_DIRECTION = 3;
export const NFTA_CT_SREG = 4;
export const NFT_CT_STATE = 0;
export const NFT_CT_DIRECTION = 1;
export const NFT_CT_STATUS = 2;
export const NFT_CT_PROTO_DST = 12;
export const NFT_CT_LABELS = 13;
export const NFT_CT_DST_IP = 20;
export const NFT_CT_DST_IP6 = 22;
export const IP_CT_DIR_ORIGINAL = 0;
export const IP_CT_DIR_REPLY = 1;
/** Bits of NFT_CT_STATE. */
export const CT_STATE_INVALID = 1 << 0;
export const CT_STATE_ESTABLISHED = 1 << 1;
export const CT_STATE_RELATED = 1 << 2;
export const CT_STATE_NEW = 1 << 3;
export const NFT_CT_ZONE = 17;
/** linux/netfilter/nf_conntrack_common.h: the destination was changed. */
export const IPS_DST_NAT = 1 << 5;

export const NFTA_FIB_DREG = 1;
export const NFTA_FIB_RESULT = 2;
export const NFTA_FIB_FLAGS = 3;
export const NFT_FIB_RESULT_ADDRTYPE = 3;
export const NFTA_FIB_F_DADDR = 1 << 1;

export const NFTA_EXTHDR_DREG = 1;
export const NFTA_EXTHDR_TYPE = 2;
export const NFTA_EXTHDR_OFFSET = 3;
export const NFTA_EXTHDR_LEN = 4;
export const NFTA_EXTHDR_FLAGS = 5;
export const NFTA_EXTHDR_OP = 6;
export const NFT_EXTHDR_F_PRESENT = 1 << 0;
export const NFT_EXTHDR_OP_IPV6 = 0;
export const NFT_EXTHDR_OP_IPV4 = 2;

/** Targets of iptables, as nf_tables carries them. */
export const NFTA_TARGET_NAME = 1;
export const NFTA_TARGET_REV = 2;
export const NFTA_TARGET_INFO = 3;

export const NFTA_NAT_TYPE = 1;
export const NFTA_NAT_FAMILY = 2;
export const NFTA_NAT_REG_ADDR_MIN = 3;
export const NFTA_NAT_REG_PROTO_MIN = 5;
export const NFT_NAT_SNAT = 0;
export const NFT_NAT_DNAT = 1;

export const NFT_REG_VERDICT = 0;
export const NFT_REG_1 = 1;
export const NFT_REG_2 = 2;
/** The registers in pieces of four bytes: NFT_REG_1 begins with this one. */
export const NFT_REG32_00 = 8;

export const NFTA_SET_TABLE = 1;
export const NFTA_SET_NAME = 2;
export const NFTA_SET_FLAGS = 3;
export const NFTA_SET_KEY_TYPE = 4;
export const NFTA_SET_KEY_LEN = 5;
export const NFTA_SET_ID = 10;
export const NFTA_SET_EXPR = 17;
export const NFTA_SET_ELEM_LIST_TABLE = 1;
export const NFTA_SET_ELEM_LIST_SET = 2;
export const NFTA_SET_ELEM_LIST_ELEMENTS = 3;
export const NFTA_SET_ELEM_KEY = 1;

export const NFTA_LOOKUP_SET = 1;
export const NFTA_LOOKUP_SREG = 2;

export const NFTA_LIMIT_RATE = 1;
export const NFTA_LIMIT_UNIT = 2;
export const NFTA_LIMIT_BURST = 3;

/** The version 2 control group of a packet's socket. */
export const NFTA_SOCKET_KEY = 1;
export const NFTA_SOCKET_DREG = 2;
export const NFTA_SOCKET_LEVEL = 3;
export const NFT_SOCKET_CGROUPV2 = 3;

/** Matches of iptables, as nf_tables carries them. */
export const NFTA_MATCH_NAME = 1;
export const NFTA_MATCH_REV = 2;
export const NFTA_MATCH_INFO = 3;

export const NFT_SET_MAP = 0x8;
export const NFT_SET_TIMEOUT = 0x10;
export const NFT_SET_EVAL = 0x20;
export const NFTA_SET_DATA_TYPE = 6;
export const NFTA_SET_DESC = 9;
export const NFTA_SET_DESC_SIZE = 1;
export const NFT_DATA_VERDICT = 0xffff_ff00;
export const NFTA_SET_ELEM_DATA = 2;
export const NFTA_SET_ELEM_TIMEOUT = 4;
export const NFTA_SET_ELEM_EXPIRATION = 5;
export const NFTA_SET_ELEM_EXPR = 7;

export const NFTA_LOOKUP_DREG = 3;

export const NFTA_DYNSET_SET_NAME = 1;
export const NFTA_DYNSET_OP = 3;
export const NFTA_DYNSET_SREG_KEY = 4;
export const NFTA_DYNSET_TIMEOUT = 6;
export const NFTA_DYNSET_EXPR = 7;
export const NFT_DYNSET_OP_UPDATE = 1;

export const NFTA_REJECT_TYPE = 1;
export const NFTA_REJECT_ICMP_CODE = 2;
export const NFT_REJECT_TCP_RST = 1;
export const NFT_REJECT_ICMPX_UNREACH = 2;
export const NFT_REJECT_ICMPX_ADMIN_PROHIBITED = 3;
