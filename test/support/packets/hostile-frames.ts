// The frames by which root in a container tries to get past a policy. All carry MARK, by which captures find them.
import { TCP_FLAGS, type FrameParts, arpFrame, frame, icmpBody, tcpBody, udpBody } from "./frames.ts";

export const MARK = "d11-leak";

export interface HostileFrame {
  readonly about: string;
  readonly bytes: Buffer;
}

// A container, by its link.
export interface LinkEnd {
  readonly mac: string;
  readonly address: string;
  readonly address6: string;
  readonly linkLocal: string;
}

// Both are on 10.77.0.0/24, and its first address is the gateway's.
export interface HostileParts {
  readonly sender: LinkEnd;
  readonly neighbour: LinkEnd;
  readonly bridgeMac: string;
  // Addresses of the internet that are not allowed.
  readonly to: string;
  readonly to6: string;
}

const GATEWAY = "10.77.0.1";
const IPV6_ROUTING_HEADER = 43;
const MORE_FRAGMENTS = 0x2000;
const PROTOCOL = { icmp: 1, ipip: 4, tcp: 6, udp: 17, gre: 47, icmpv6: 58 } as const;

// Frames that arrive outside where nothing stops them.
export function framesOutside({ sender, neighbour, bridgeMac, to, to6 }: HostileParts): HostileFrame[] {
  const plain = { fromMac: sender.mac, toMac: bridgeMac, from: sender.address, to };
  const plain6 = { fromMac: sender.mac, toMac: bridgeMac, from: sender.address6, to: to6 };
  const udp = (parts: Omit<FrameParts, "protocol" | "body">): Buffer =>
    frame({ ...parts, protocol: PROTOCOL.udp, body: udpBody(parts.from, parts.to, 443, MARK) });
  const tcp = (parts: Omit<FrameParts, "protocol" | "body">, flags: number): Buffer =>
    frame({ ...parts, protocol: PROTOCOL.tcp, body: tcpBody(parts.from, parts.to, 443, flags, MARK) });
  const bare = (parts: Omit<FrameParts, "protocol" | "body">, protocol: number): Buffer =>
    frame({ ...parts, protocol, body: Buffer.from(`${MARK}${MARK}${MARK}`) });
  return [
    // The neighbour routes what it is sent, as containers do unless told otherwise.
    { about: "UDP by way of a neighbour", bytes: udp({ ...plain, toMac: neighbour.mac }) },
    { about: "UDP", bytes: udp(plain) },
    { about: "UDP over IPv6", bytes: udp(plain6) },
    { about: "UDP as a neighbour", bytes: udp({ ...plain, from: neighbour.address }) },
    { about: "UDP over IPv6 as a neighbour", bytes: udp({ ...plain6, from: neighbour.address6 }) },
    { about: "UDP from an address of nobody", bytes: udp({ ...plain, from: "10.77.0.99" }) },
    { about: "a TCP SYN with data", bytes: tcp(plain, TCP_FLAGS.syn) },
    { about: "TCP data without a connection", bytes: tcp(plain, TCP_FLAGS.data) },
    { about: "TCP data over IPv6", bytes: tcp(plain6, TCP_FLAGS.data) },
    { about: "TCP data as a neighbour", bytes: tcp({ ...plain, from: neighbour.address }, TCP_FLAGS.data) },
    { about: "an echo request", bytes: frame({ ...plain, protocol: PROTOCOL.icmp, body: icmpBody(8, MARK) }) },
    {
      about: "an echo request over IPv6",
      bytes: frame({
        ...plain6,
        protocol: PROTOCOL.icmpv6,
        body: icmpBody(128, MARK, { from: plain6.from, to: plain6.to }),
      }),
    },
    {
      about: "a neighbour message to another network",
      bytes: frame({
        ...plain6,
        protocol: PROTOCOL.icmpv6,
        body: icmpBody(136, MARK, { from: plain6.from, to: plain6.to }),
      }),
    },
    { about: "IP in IP", bytes: bare(plain, PROTOCOL.ipip) },
    { about: "GRE", bytes: bare(plain, PROTOCOL.gre) },
    { about: "a protocol of nobody", bytes: bare(plain, 253) },
    // The last one: the bridge takes the sender for the neighbour from then on.
    { about: "UDP with a neighbour's MAC", bytes: udp({ ...plain, fromMac: neighbour.mac, from: neighbour.address }) },
  ];
}

// Frames that name the routers on their way, where the machine, or a router at an address that is open, obeys them.
export function sourceRoutedFrames(
  { sender, bridgeMac, to }: HostileParts,
  open: { readonly to: string; readonly to6: string },
): HostileFrame[] {
  const plain = { fromMac: sender.mac, toMac: bridgeMac, from: sender.address };
  const body = (from: string, first: string): Pick<FrameParts, "protocol" | "body"> => ({
    protocol: PROTOCOL.udp,
    body: udpBody(from, first, 443, MARK),
  });
  const routed = ([about, option]: readonly [string, number], first: string): HostileFrame => ({
    about: `a ${about} source route by ${first}`,
    bytes: frame({
      ...plain,
      to: first,
      ...body(sender.address, first),
      // The length, where the next address stands, that address, and the end of the list.
      options: Buffer.from([option, 7, 4, ...to.split(".").map(Number), 0]),
    }),
  });
  const segments = Buffer.alloc(8);
  segments.set([PROTOCOL.udp, 0, 253, 0]);
  return [
    ...[GATEWAY, open.to].flatMap((first) =>
      (
        [
          ["loose", 131],
          ["strict", 137],
        ] as const
      ).map((kind) => routed(kind, first)),
    ),
    {
      about: "an IPv6 routing header",
      bytes: frame({
        ...plain,
        from: sender.address6,
        to: open.to6,
        protocol: IPV6_ROUTING_HEADER,
        body: Buffer.concat([segments, body(sender.address6, open.to6).body]),
      }),
    },
  ];
}

// Frames that arrive at a neighbour on the same bridge where nothing stops them.
export function framesToNeighbour({ sender, neighbour, bridgeMac }: HostileParts): HostileFrame[] {
  const toIt = { fromMac: sender.mac, toMac: neighbour.mac };
  const udp = (from: string, to: string, port = 443): Pick<FrameParts, "from" | "to" | "protocol" | "body"> => ({
    from,
    to,
    protocol: PROTOCOL.udp,
    body: udpBody(from, to, port, MARK),
  });
  return [
    {
      about: "UDP as the gateway",
      bytes: frame({ ...toIt, fromMac: bridgeMac, ...udp("10.77.0.1", neighbour.address) }),
    },
    { about: "UDP with the gateway's address", bytes: frame({ ...toIt, ...udp("10.77.0.1", neighbour.address) }) },
    { about: "UDP in a tagged frame", bytes: frame({ ...toIt, ...udp(sender.address, neighbour.address), vlan: 7 }) },
    {
      about: "a frame of an unknown kind",
      bytes: frame({ ...toIt, ...udp(sender.address, neighbour.address), etherType: 0x88b5 }),
    },
    {
      about: "UDP between link-local addresses",
      bytes: frame({ ...toIt, ...udp(sender.linkLocal, neighbour.linkLocal) }),
    },
    { about: "UDP from no address", bytes: frame({ ...toIt, toMac: "33:33:00:00:00:01", ...udp("::", "ff02::1") }) },
    {
      about: "a router advertisement",
      bytes: frame({
        ...toIt,
        from: sender.linkLocal,
        to: neighbour.linkLocal,
        protocol: PROTOCOL.icmpv6,
        body: icmpBody(134, MARK, { from: sender.linkLocal, to: neighbour.linkLocal }),
      }),
    },
    {
      about: "a fragment as a neighbour",
      bytes: frame({
        ...toIt,
        ...udp("10.77.0.99", neighbour.address),
        fragment: MORE_FRAGMENTS,
      }),
    },
    {
      about: "an ARP reply for the gateway",
      bytes: Buffer.concat([
        arpFrame({ fromMac: sender.mac, senderMac: sender.mac, sender: "10.77.0.1", target: neighbour.address }),
        Buffer.from(MARK),
      ]),
    },
    {
      about: "an ARP reply with another MAC",
      bytes: Buffer.concat([
        arpFrame({ fromMac: sender.mac, senderMac: neighbour.mac, sender: sender.address, target: neighbour.address }),
        Buffer.from(MARK),
      ]),
    },
  ];
}

// What peers may send each other unless a policy says otherwise.
export function framesBetweenPeers({ sender, neighbour, to }: HostileParts): HostileFrame[] {
  const toIt = { fromMac: sender.mac, toMac: neighbour.mac, from: sender.address };
  return [
    {
      about: "UDP to a peer",
      bytes: frame({
        ...toIt,
        to: neighbour.address,
        protocol: PROTOCOL.udp,
        body: udpBody(sender.address, neighbour.address, 443, MARK),
      }),
    },
    {
      about: "UDP to everybody on the link",
      bytes: frame({
        ...toIt,
        toMac: "ff:ff:ff:ff:ff:ff",
        to: "10.77.0.255",
        protocol: PROTOCOL.udp,
        body: udpBody(sender.address, "10.77.0.255", 443, MARK),
      }),
    },
    {
      about: "UDP that a peer is to pass on",
      bytes: frame({ ...toIt, to, protocol: PROTOCOL.udp, body: udpBody(sender.address, to, 443, MARK) }),
    },
  ];
}
