/**
 * RecordingTable: the rules by which the kernel records where a container connects to, as nf_tables commands. One table for a
 * run, in the network namespace of the Docker daemon; of each container sets, and of each of its links two chains:
 *
 *   container --> eth0 ==veth==> from-INDEX  not the begin of a TCP connection: pass
 *                                            UDP, an answer to one that came in (incoming4, incoming6): pass
 *                                            else: count ADDRESS . PROTOCOL . PORT in connections4, connections6
 *   container <-- eth0 <==veth== to-INDEX    UDP: put FROM . PORT . PORT into incoming4, incoming6
 *
 * Nothing is refused. What has no port, and what comes in fragments without one, counts as port 0.
 */
import { LIMITS } from "../../base/limits.ts";
import { NLM_F_APPEND, NLM_F_CREATE, type NetlinkWriter } from "../../kernel/netlink-message.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  compare,
  expression,
  loadImmediate,
  loadMeta,
  lookUp,
  maskBytes,
  networkU16,
  verdict,
} from "../../kernel/nft-expressions.ts";

export const NETDEV = 5;
/** Before all other rules of the device: what those refuse was tried nevertheless. */
const PRIORITY = -500;
const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 } as const;
/** TCP, UDP, DCCP, SCTP, UDP-Lite: their headers begin with the ports. */
const WITH_PORTS = [PROTOCOL.tcp, PROTOCOL.udp, 33, 132, 136];
const TCP_FLAGS_AT = 13;
const [FIN, SYN, RST, ACK] = [0x01, 0x02, 0x04, 0x10];
const [SOURCE_PORT, DESTINATION_PORT] = [0, 2];
const WORD = 4;
/** The types by which nft(8) shows keys; those of a key of several fields are 6 bits each. */
const SHOWN = { 4: 7, 6: 8, protocol: 12, port: 13, answers4: 14, answers6: 29 } as const;
const SHOWN_BITS = 6;

interface Version {
  readonly number: 4 | 6;
  readonly etherType: number;
  /** Of its addresses, in bytes. */
  readonly length: 4 | 16;
  readonly sourceAt: number;
  readonly destinationAt: number;
  readonly icmp: number;
  /** Messages that answer others, report errors, or keep the link working. */
  readonly answers: readonly number[];
}

const VERSIONS: readonly Version[] = [
  {
    number: 4,
    etherType: 0x0800,
    length: 4,
    sourceAt: 12,
    destinationAt: 16,
    icmp: PROTOCOL.icmp,
    answers: [0, 3, 4, 5, 11, 12, 14, 16, 18],
  },
  {
    number: 6,
    etherType: 0x86dd,
    length: 16,
    sourceAt: 8,
    destinationAt: 24,
    icmp: PROTOCOL.icmpv6,
    answers: [1, 2, 3, 4, 129, 130, 131, 132, 133, 134, 135, 136, 137, 143],
  },
];
const PORTS_SET = "protocols-with-ports";
const answersSet = ({ number }: Version): string => `answers${number}`;
const connectionsSet = ({ number }: Version, id: string): string => `connections${number}-${id}`;
const incomingSet = ({ number }: Version, id: string): string => `incoming${number}-${id}`;
const fromChain = (index: number): string => `from-${index}`;
const toChain = (index: number): string => `to-${index}`;

/** The sets of a container to read, with the version of their addresses. */
export function setsToRead(id: string): string[] {
  return VERSIONS.map((version) => connectionsSet(version, id));
}

/** What a key of these sets says. */
export function readKey(key: Buffer): { address: Buffer; protocol: number; port: number } {
  const at = key.length - 2 * WORD;
  return { address: key.subarray(0, at), protocol: key[at] ?? 0, port: key.readUInt16BE(at + WORD) };
}

/** A link of a container, by its index and name on the host. */
export interface RecordedLink {
  readonly index: number;
  readonly name: string;
}

interface SetPlan {
  readonly flags: number;
  readonly shownAs: number;
  readonly keyLength: number;
  readonly size: number;
}

type Rule = (w: NetlinkWriter) => void;

export class RecordingTable {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** The kernel removes it with the socket that creates it. */
  create(): NftCommand[] {
    return [
      this.#command(nft.NFT_MSG_NEWTABLE, NLM_F_CREATE, "table", (w) => {
        w.text(nft.NFTA_TABLE_NAME, this.name);
        w.u32(nft.NFTA_TABLE_FLAGS, nft.NFT_TABLE_F_OWNER);
      }),
      ...this.#constants(PORTS_SET, SHOWN.protocol, WITH_PORTS),
      ...VERSIONS.flatMap((each) => this.#constants(answersSet(each), SHOWN[`answers${each.number}`], each.answers)),
    ];
  }

  /** The sets of a container. */
  addContainer(id: string): NftCommand[] {
    return VERSIONS.flatMap((version) => [
      this.#recordingSet(connectionsSet(version, id), version, SHOWN.protocol, LIMITS.egressKernel),
      this.#recordingSet(incomingSet(version, id), version, SHOWN.port, LIMITS.egressIncoming),
    ]);
  }

  removeContainer(id: string): NftCommand[] {
    return VERSIONS.flatMap((version) =>
      [connectionsSet(version, id), incomingSet(version, id)].map((set) =>
        this.#command(nft.NFT_MSG_DELSET, 0, `set ${set}`, (w) => {
          w.text(nft.NFTA_SET_TABLE, this.name);
          w.text(nft.NFTA_SET_NAME, set);
        }),
      ),
    );
  }

  /** Removes destinations from the sets of a container. */
  removeKeys(id: string, keys: readonly Buffer[]): NftCommand[] {
    return VERSIONS.flatMap((version) => {
      const own = keys.filter((key) => key.length === version.length + 2 * WORD);
      return own.length === 0 ? [] : [this.#elements(nft.NFT_MSG_DELSETELEM, connectionsSet(version, id), own)];
    });
  }

  /** `tellsAnswers`: the kernel can look at what goes to the container, too. */
  addLink(id: string, { index, name }: RecordedLink, tellsAnswers: boolean): NftCommand[] {
    return [
      this.#chain(fromChain(index), nft.NF_NETDEV_INGRESS, name),
      ...this.#rules(fromChain(index), [otherTcp, ...VERSIONS.flatMap((each) => recording(each, id))]),
      ...(tellsAnswers
        ? [
            this.#chain(toChain(index), nft.NF_NETDEV_EGRESS, name),
            ...this.#rules(
              toChain(index),
              VERSIONS.map((each) => incoming(each, id)),
            ),
          ]
        : []),
    ];
  }

  removeLink({ index }: Pick<RecordedLink, "index">, tellsAnswers: boolean): NftCommand[] {
    const chains = tellsAnswers ? [fromChain(index), toChain(index)] : [fromChain(index)];
    return chains.map((chain) =>
      this.#command(nft.NFT_MSG_DELCHAIN, 0, `chain ${chain}`, (w) => {
        w.text(nft.NFTA_CHAIN_TABLE, this.name);
        w.text(nft.NFTA_CHAIN_NAME, chain);
      }),
    );
  }

  /** A set of bytes that never changes. */
  #constants(set: string, shownAs: number, values: readonly number[]): NftCommand[] {
    return [
      this.#set(set, { flags: 0, shownAs, keyLength: 1, size: values.length }),
      this.#elements(
        nft.NFT_MSG_NEWSETELEM,
        set,
        values.map((value) => Buffer.of(value)),
      ),
    ];
  }

  #elements(command: number, set: string, keys: readonly Buffer[]): NftCommand {
    const flags = command === nft.NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0;
    return this.#command(command, flags, `elements of ${set}`, (w) => {
      w.text(nft.NFTA_SET_ELEM_LIST_TABLE, this.name);
      w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
      w.nested(nft.NFTA_SET_ELEM_LIST_ELEMENTS, () => {
        for (const key of keys) {
          w.nested(nft.NFTA_LIST_ELEM, () =>
            w.nested(nft.NFTA_SET_ELEM_KEY, () => w.attribute(nft.NFTA_DATA_VALUE, key)),
          );
        }
      });
    });
  }

  /** Its keys are an address, a second field, and a port. */
  #recordingSet(set: string, { number, length }: Version, second: number, size: number): NftCommand {
    const shownAs = (((SHOWN[number] << SHOWN_BITS) | second) << SHOWN_BITS) | SHOWN.port;
    return this.#set(set, {
      flags: nft.NFT_SET_TIMEOUT | nft.NFT_SET_EVAL,
      shownAs,
      keyLength: length + 2 * WORD,
      size,
    });
  }

  #set(set: string, { flags, shownAs, keyLength, size }: SetPlan): NftCommand {
    return this.#command(nft.NFT_MSG_NEWSET, NLM_F_CREATE, `set ${set}`, (w) => {
      w.text(nft.NFTA_SET_TABLE, this.name);
      w.text(nft.NFTA_SET_NAME, set);
      w.u32(nft.NFTA_SET_FLAGS, flags);
      w.u32(nft.NFTA_SET_KEY_TYPE, shownAs);
      w.u32(nft.NFTA_SET_KEY_LEN, keyLength);
      w.nested(nft.NFTA_SET_DESC, () => w.u32(nft.NFTA_SET_DESC_SIZE, size));
      w.u32(nft.NFTA_SET_ID, 1);
    });
  }

  #chain(chain: string, hook: number, device: string): NftCommand {
    return this.#command(nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE, `chain ${chain}`, (w) => {
      w.text(nft.NFTA_CHAIN_TABLE, this.name);
      w.text(nft.NFTA_CHAIN_NAME, chain);
      w.nested(nft.NFTA_CHAIN_HOOK, () => {
        w.u32(nft.NFTA_HOOK_HOOKNUM, hook);
        w.u32(nft.NFTA_HOOK_PRIORITY, PRIORITY);
        w.text(nft.NFTA_HOOK_DEV, device);
      });
      w.u32(nft.NFTA_CHAIN_POLICY, nft.NF_ACCEPT);
      w.text(nft.NFTA_CHAIN_TYPE, "filter");
    });
  }

  #rules(chain: string, rules: readonly Rule[]): NftCommand[] {
    return rules.map((rule, index) =>
      this.#command(nft.NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, `rule ${index + 1} of ${chain}`, (w) => {
        w.text(nft.NFTA_RULE_TABLE, this.name);
        w.text(nft.NFTA_RULE_CHAIN, chain);
        w.nested(nft.NFTA_RULE_EXPRESSIONS, () => rule(w));
      }),
    );
  }

  #command(command: number, flags: number, about: string, write: NftCommand["write"]): NftCommand {
    return { family: NETDEV, command, flags, about: `${about} of table ${this.name}`, write };
  }
}

/** First, because most packets are that: those of open TCP connections. */
function otherTcp(w: NetlinkWriter): void {
  ofProtocol(w, PROTOCOL.tcp);
  load(w, nft.TRANSPORT_HEADER, TCP_FLAGS_AT, 1);
  maskBytes(w, Buffer.of(FIN | SYN | RST | ACK));
  compare(w, Buffer.of(SYN), nft.NFT_CMP_NEQ);
  verdict(w, nft.NF_ACCEPT);
}

function recording(version: Version, id: string): Rule[] {
  const { length, destinationAt, icmp } = version;
  const count = (w: NetlinkWriter): void => {
    countIn(w, connectionsSet(version, id));
    verdict(w, nft.NF_ACCEPT);
  };
  const next = nft.NFT_REG32_00 + length / WORD;
  return [
    (w) => {
      ofVersion(w, version);
      ofProtocol(w, PROTOCOL.udp);
      load(w, nft.NETWORK_HEADER, destinationAt, length);
      load(w, nft.TRANSPORT_HEADER, DESTINATION_PORT, 2, next);
      load(w, nft.TRANSPORT_HEADER, SOURCE_PORT, 2, next + 1);
      lookUp(w, incomingSet(version, id));
      verdict(w, nft.NF_ACCEPT);
    },
    (w) => {
      ofVersion(w, version);
      loadMeta(w, nft.NFT_META_L4PROTO);
      lookUp(w, PORTS_SET);
      load(w, nft.NETWORK_HEADER, destinationAt, length);
      loadMeta(w, nft.NFT_META_L4PROTO, next);
      load(w, nft.TRANSPORT_HEADER, DESTINATION_PORT, 2, next + 1);
      count(w);
    },
    (w) => {
      ofVersion(w, version);
      ofProtocol(w, icmp);
      load(w, nft.TRANSPORT_HEADER, 0, 1);
      lookUp(w, answersSet(version));
      verdict(w, nft.NF_ACCEPT);
    },
    (w) => {
      ofVersion(w, version);
      load(w, nft.NETWORK_HEADER, destinationAt, length);
      loadMeta(w, nft.NFT_META_L4PROTO, next);
      loadImmediate(w, next + 1, networkU16(0));
      count(w);
    },
  ];
}

function incoming(version: Version, id: string): Rule {
  const { length, sourceAt } = version;
  const next = nft.NFT_REG32_00 + length / WORD;
  return (w) => {
    ofVersion(w, version);
    ofProtocol(w, PROTOCOL.udp);
    load(w, nft.NETWORK_HEADER, sourceAt, length);
    load(w, nft.TRANSPORT_HEADER, SOURCE_PORT, 2, next);
    load(w, nft.TRANSPORT_HEADER, DESTINATION_PORT, 2, next + 1);
    updateIn(w, incomingSet(version, id), LIMITS.egressIncomingMs, () => undefined);
  };
}

function ofVersion(w: NetlinkWriter, { etherType }: Version): void {
  loadMeta(w, nft.NFT_META_PROTOCOL);
  compare(w, networkU16(etherType));
}

function ofProtocol(w: NetlinkWriter, protocol: number): void {
  loadMeta(w, nft.NFT_META_L4PROTO);
  compare(w, Buffer.of(protocol));
}

/** Ends the rule where the packet has no such bytes. */
function load(w: NetlinkWriter, base: number, offset: number, length: number, register: number = nft.NFT_REG_1): void {
  expression(w, "payload", () => {
    w.u32(nft.NFTA_PAYLOAD_DREG, register);
    w.u32(nft.NFTA_PAYLOAD_BASE, base);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, offset);
    w.u32(nft.NFTA_PAYLOAD_LEN, length);
  });
}

/** Ends the rule where the set is full. */
function countIn(w: NetlinkWriter, set: string): void {
  updateIn(w, set, LIMITS.egressKernelMs, () =>
    w.nested(nft.NFTA_DYNSET_EXPR, () => {
      w.text(nft.NFTA_EXPR_NAME, "counter");
      w.nested(nft.NFTA_EXPR_DATA, () => undefined);
    }),
  );
}

function updateIn(w: NetlinkWriter, set: string, timeoutMs: number, more: () => void): void {
  expression(w, "dynset", () => {
    w.text(nft.NFTA_DYNSET_SET_NAME, set);
    w.u32(nft.NFTA_DYNSET_OP, nft.NFT_DYNSET_OP_UPDATE);
    w.u32(nft.NFTA_DYNSET_SREG_KEY, nft.NFT_REG_1);
    w.u64(nft.NFTA_DYNSET_TIMEOUT, timeoutMs);
    more();
  });
}
