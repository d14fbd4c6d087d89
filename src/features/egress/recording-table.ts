/**
 * RecordingTable: the rules by which the kernel records where a container connects to, as nf_tables commands. One table for a
 * run, in the network namespace of the Docker daemon; of each container sets, and of each of its links two chains:
 *
 *   container --> eth0 ==veth==> from-INDEX  not the begin of a TCP connection: pass
 *                                            UDP, an answer to one that came in (incoming4, incoming6): pass
 *                                            else: count ADDRESS . PROTOCOL . PORT in connections4, connections6
 *   container <-- eth0 <==veth== to-INDEX    not UDP: pass
 *                                            else: put FROM . PORT . PORT into incoming4, incoming6
 *
 * Nothing is refused. What has no port, and what comes in fragments without one, counts as port 0.
 */
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  type Expression,
  type Rule,
  accept,
  compare,
  counter,
  loadImmediate,
  loadMeta,
  loadPayload,
  lookUp,
  maskBytes,
  networkU16,
  ofProtocol,
  updateSet,
} from "../../kernel/nft-expressions.ts";
import { NftTable, type SetElement, PORT_FIELDS_BYTES, WORD_BYTES } from "../../kernel/nft-table.ts";
import { EGRESS_LIMITS } from "./limits.ts";

export const NETDEV = 5;
/** Before all other rules of the device: what those refuse was tried nevertheless. */
const PRIORITY = -500;
const PROTOCOL = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 } as const;
/** TCP, UDP, DCCP, SCTP, UDP-Lite: their headers begin with the ports. */
const WITH_PORTS = [PROTOCOL.tcp, PROTOCOL.udp, 33, 132, 136];
const TCP_FLAGS_AT = 13;
const [FIN, SYN, RST, ACK] = [0x01, 0x02, 0x04, 0x10];
const [SOURCE_PORT, DESTINATION_PORT] = [0, 2];
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

/** A link of a container, by its index and name on the host. */
export interface RecordedLink {
  readonly index: number;
  readonly name: string;
}

export class RecordingTable {
  readonly #table: NftTable;

  constructor(name: string) {
    this.#table = new NftTable(NETDEV, name);
  }

  get name(): string {
    return this.#table.name;
  }

  /** The kernel removes it with the socket that creates it. */
  create(): NftCommand[] {
    return [
      this.#table.create(nft.NFT_TABLE_F_OWNER),
      ...this.#constants(PORTS_SET, SHOWN.protocol, WITH_PORTS),
      ...VERSIONS.flatMap((each) => this.#constants(answersSet(each), SHOWN[`answers${each.number}`], each.answers)),
    ];
  }

  /** The sets of a container. */
  addContainer(id: string): NftCommand[] {
    return VERSIONS.flatMap((version) => [
      this.#recordingSet(connectionsSet(version, id), version, SHOWN.protocol, EGRESS_LIMITS.kernel),
      this.#recordingSet(incomingSet(version, id), version, SHOWN.port, EGRESS_LIMITS.incoming),
    ]);
  }

  removeContainer(id: string): NftCommand[] {
    return VERSIONS.flatMap((version) =>
      [connectionsSet(version, id), incomingSet(version, id)].map((set) => this.#table.deleteSet(set)),
    );
  }

  /** Removes destinations from the sets of a container. */
  removeKeys(id: string, keys: readonly Buffer[]): NftCommand[] {
    return VERSIONS.flatMap((version) => {
      const own = keys.filter((key) => key.length === version.length + PORT_FIELDS_BYTES);
      return this.#table.elements("remove", connectionsSet(version, id), own.map(elementOf));
    });
  }

  /** `tellsAnswers`: the kernel can look at what goes to the container, too. */
  addLink(id: string, { index, name }: RecordedLink, tellsAnswers: boolean): NftCommand[] {
    return [
      this.#table.chain(fromChain(index), { number: nft.NF_NETDEV_INGRESS, priority: PRIORITY, device: name }),
      ...this.#table.rules(fromChain(index), [OTHER_TCP, ...VERSIONS.flatMap((each) => recording(each, id))]),
      ...(tellsAnswers
        ? [
            this.#table.chain(toChain(index), { number: nft.NF_NETDEV_EGRESS, priority: PRIORITY, device: name }),
            ...this.#table.rules(toChain(index), [OTHER_THAN_UDP, ...VERSIONS.map((each) => incoming(each, id))]),
          ]
        : []),
    ];
  }

  removeLink({ index }: Pick<RecordedLink, "index">, tellsAnswers: boolean): NftCommand[] {
    const chains = tellsAnswers ? [fromChain(index), toChain(index)] : [fromChain(index)];
    return chains.map((chain) => this.#table.deleteChain(chain));
  }

  /** A set of bytes that never changes. */
  #constants(name: string, shownAs: number, values: readonly number[]): NftCommand[] {
    const elements = values.map((value) => elementOf(Buffer.of(value)));
    return [
      this.#table.set({ name, shownAs, keyLength: 1, size: values.length }),
      ...this.#table.elements("add", name, elements),
    ];
  }

  /** Its keys are an address, a second field, and a port. */
  #recordingSet(name: string, { number, length }: Version, second: number, size: number): NftCommand {
    const shownAs = (((SHOWN[number] << SHOWN_BITS) | second) << SHOWN_BITS) | SHOWN.port;
    const flags = nft.NFT_SET_TIMEOUT | nft.NFT_SET_EVAL;
    return this.#table.set({ name, flags, shownAs, keyLength: length + PORT_FIELDS_BYTES, size });
  }
}

function elementOf(key: Buffer): SetElement {
  return { key };
}

/** First, because most packets are that: those of open TCP connections. */
const OTHER_TCP: Rule = [
  ofProtocol(PROTOCOL.tcp),
  loadPayload({ base: nft.TRANSPORT_HEADER, offset: TCP_FLAGS_AT, length: 1 }),
  maskBytes(Buffer.of(FIN | SYN | RST | ACK)),
  compare(Buffer.of(SYN), nft.NFT_CMP_NEQ),
  accept,
];

/** First, because most packets are that, and each expression costs each of them. */
const OTHER_THAN_UDP: Rule = [
  loadMeta(nft.NFT_META_L4PROTO),
  compare(Buffer.of(PROTOCOL.udp), nft.NFT_CMP_NEQ),
  accept,
];

function recording(version: Version, id: string): Rule[] {
  const { length, destinationAt, icmp } = version;
  const isOfVersion = ofVersion(version);
  const destination = loadPayload({ base: nft.NETWORK_HEADER, offset: destinationAt, length });
  const next = nft.NFT_REG32_00 + length / WORD_BYTES;
  // A full set ends the rule.
  const count = [updateSet(connectionsSet(version, id), EGRESS_LIMITS.kernelMs, counter), accept];
  return [
    [
      isOfVersion,
      ofProtocol(PROTOCOL.udp),
      destination,
      loadPort(DESTINATION_PORT, next),
      loadPort(SOURCE_PORT, next + 1),
      lookUp(incomingSet(version, id)),
      accept,
    ],
    [
      isOfVersion,
      loadMeta(nft.NFT_META_L4PROTO),
      lookUp(PORTS_SET),
      destination,
      loadMeta(nft.NFT_META_L4PROTO, next),
      loadPort(DESTINATION_PORT, next + 1),
      count,
    ],
    [
      isOfVersion,
      ofProtocol(icmp),
      loadPayload({ base: nft.TRANSPORT_HEADER, offset: 0, length: 1 }),
      lookUp(answersSet(version)),
      accept,
    ],
    [isOfVersion, destination, loadMeta(nft.NFT_META_L4PROTO, next), loadImmediate(networkU16(0), next + 1), count],
  ];
}

/** Of UDP. */
function incoming(version: Version, id: string): Rule {
  const { length, sourceAt } = version;
  const next = nft.NFT_REG32_00 + length / WORD_BYTES;
  return [
    ofVersion(version),
    loadPayload({ base: nft.NETWORK_HEADER, offset: sourceAt, length }),
    loadPort(SOURCE_PORT, next),
    loadPort(DESTINATION_PORT, next + 1),
    updateSet(incomingSet(version, id), EGRESS_LIMITS.incomingMs),
  ];
}

function ofVersion({ etherType }: Version): Rule {
  return [loadMeta(nft.NFT_META_PROTOCOL), compare(networkU16(etherType))];
}

function loadPort(offset: number, register: number): Expression {
  return loadPayload({ base: nft.TRANSPORT_HEADER, offset, length: 2 }, register);
}
