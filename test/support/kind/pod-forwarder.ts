/**
 * Owns a DNS forwarder in a pod: it stands where CoreDNS stands in a cluster, and asks the nameservers of its pod. And it
 * owns the question by which CoreDNS finds out that it asks itself.
 */
import { randomBytes } from "node:crypto";
import { type DigReply, dig } from "../client/dig.ts";
import type { Pod } from "./pod.ts";
import { checkIn } from "./pod-host.ts";
import { type RealServer, startDnsmasq, startUnbound } from "../servers/real-server.ts";

export interface LoopProbe {
  /** How often the name came to port 53 of the pod by UDP. The probe itself is the first; more is a loop. */
  readonly seen: number;
  readonly reply: DigReply;
}

/**
 * At port 53 of every address of the pod. 127.0.0.11 is one of them in a pod as in any namespace, and a server that
 * listens at all addresses, as CoreDNS does, has it.
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
 * One question for a name that nobody knows or has asked before, from inside the pod. Counted in the kernel, at the place
 * where its packets come in, so that it does not matter what the server writes to its log.
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

/** Of fifteen octets: with its length in front it fills one comparison of the kernel's. */
function randomLabel(): string {
  return randomBytes(8).toString("hex").slice(0, 15);
}

/** The name stands behind 8 octets of UDP's header and 12 of DNS's. */
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
