/**
 * DNS forwarder in a pod, in the role of CoreDNS in a cluster: it forwards to the nameservers of its pod. Also the
 * probe with which CoreDNS detects a forwarding loop.
 */
import { randomBytes } from "node:crypto";
import { type DigReply, dig } from "../client/dig.ts";
import type { Pod } from "./pod.ts";
import { checkIn } from "./pod-host.ts";
import { type RealServer, startDnsmasq, startUnbound } from "../servers/real-server.ts";

export interface LoopProbe {
  /** How often the name arrived at port 53 of the pod by UDP. The probe itself counts one; more is a loop. */
  readonly seen: number;
  readonly reply: DigReply;
}

/**
 * Listens on port 53 of every address of the pod. As with CoreDNS, which listens on all addresses, 127.0.0.11 is one of
 * them.
 */
export async function startPodForwarder(
  pod: Pod,
  program: "dnsmasq" | "unbound",
  upstreams: readonly string[] = pod.nameservers,
): Promise<RealServer> {
  const further = [...pod.addresses, "127.0.0.11"];
  const address = "127.0.0.1";
  if (program === "dnsmasq") {
    const lines = [
      ...further.map((other) => `listen-address=${other}`),
      ...upstreams.map((upstream) => `server=${upstream}`),
      "cache-size=0",
    ];
    return await startDnsmasq(pod, { address, lines });
  }
  const lines = [
    ...further.map((other) => `interface: ${other}@53`),
    "access-control: ::0/0 allow",
    "forward-zone:",
    'name: "."',
    ...upstreams.map((upstream) => `forward-addr: ${upstream}`),
  ];
  return await startUnbound(pod, { address, lines });
}

/**
 * Sends one query for a random name from inside the pod. nftables counts the packets where they arrive, so that the
 * result does not depend on the server's log.
 */
export async function loopProbe(pod: Pod, server = "127.0.0.1"): Promise<LoopProbe> {
  const [first, second] = [randomLabel(), randomLabel()];
  const table = `loop-${first}`;
  await checkIn(pod.netnsPath, "nft", ["-f", "-"], counterOf(table, first));
  try {
    const reply = await dig(pod, `@${server}`, `${first}.${second}.`, "HINFO", "+time=10", "+notcp");
    const listed = await checkIn(pod.netnsPath, "nft", ["list", "table", "inet", table]);
    return { seen: Number(/counter packets (\d+)/.exec(listed)?.[1]), reply };
  } finally {
    await checkIn(pod.netnsPath, "nft", ["delete", "table", "inet", table]);
  }
}

/** Fifteen octets: with its length octet the label fills one comparison of nftables. */
function randomLabel(): string {
  return randomBytes(8).toString("hex").slice(0, 15);
}

/** The name follows 8 octets of UDP header and 12 of DNS header. */
function counterOf(table: string, label: string): string {
  const octets = Buffer.from([label.length, ...Buffer.from(label)]).toString("hex");
  return `table inet ${table} {
  chain input {
    type filter hook input priority -300;
    udp dport 53 @th,160,128 0x${octets} counter
  }
}
`;
}
