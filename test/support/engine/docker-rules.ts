/**
 * The rules with which dockerd redirects 127.0.0.11:53 to its resolver, in the three forms that containers have, for
 * namespaces in which no such dockerd has written them.
 */
import { checkIn } from "../kind/pod-host.ts";

export type DockerRules = "iptables-nft" | "iptables-legacy" | "nftables";

export type ResolverPorts = { readonly udp: number; readonly tcp: number };

/** A dockerd that uses nftables has its own table, which iptables does not show. */
export async function writeDockerRules(netnsPath: string, shape: DockerRules, ports: ResolverPorts): Promise<void> {
  if (shape === "nftables") await checkIn(netnsPath, "nft", ["-f", "-"], nftablesOf(ports));
  else await checkIn(netnsPath, `${shape}-restore`, ["--noflush"], iptablesOf(ports));
}

/**
 * Replaces a container's iptables rules by those of a dockerd that uses nftables, with the same ports or with others.
 * Everything else in its iptables nat table is lost.
 */
export async function moveDockerRulesToNftables(netnsPath: string, others?: ResolverPorts): Promise<ResolverPorts> {
  const saved = await checkIn(netnsPath, "iptables-nft-save", ["-t", "nat"]);
  const ports = others ?? { udp: portIn(saved, "udp"), tcp: portIn(saved, "tcp") };
  await checkIn(netnsPath, "nft", ["delete", "table", "ip", "nat"]);
  await writeDockerRules(netnsPath, "nftables", ports);
  return ports;
}

function portIn(saved: string, protocol: keyof ResolverPorts): number {
  const rule = new RegExp(`^-A DOCKER_OUTPUT .*-p ${protocol} .*--to-destination 127\\.0\\.0\\.11:(\\d+)$`, "m");
  const port = Number(rule.exec(saved)?.[1]);
  if (port > 0) return port;
  throw new Error(`no ${protocol} rule of dockerd's among:\n${saved}`);
}

function iptablesOf(ports: ResolverPorts): string {
  const rules = (["tcp", "udp"] as const).flatMap((protocol) => [
    `-A DOCKER_OUTPUT -d 127.0.0.11/32 -p ${protocol} --dport 53 -j DNAT --to-destination 127.0.0.11:${ports[protocol]}`,
    `-A DOCKER_POSTROUTING -s 127.0.0.11/32 -p ${protocol} --sport ${ports[protocol]} -j SNAT --to-source :53`,
  ]);
  return [
    "*nat",
    ":DOCKER_OUTPUT - [0:0]",
    ":DOCKER_POSTROUTING - [0:0]",
    "-A OUTPUT -d 127.0.0.11/32 -j DOCKER_OUTPUT",
    "-A POSTROUTING -d 127.0.0.11/32 -j DOCKER_POSTROUTING",
    ...rules,
    "COMMIT",
    "",
  ].join("\n");
}

function nftablesOf({ udp, tcp }: ResolverPorts): string {
  return `table ip docker-dns {
  chain dns-dnat {
    type nat hook output priority -100; policy accept;
    ip daddr 127.0.0.11 udp dport 53 counter dnat to 127.0.0.11:${udp}
    ip daddr 127.0.0.11 tcp dport 53 counter dnat to 127.0.0.11:${tcp}
  }
  chain dns-snat {
    type nat hook postrouting priority 100; policy accept;
    ip saddr 127.0.0.11 udp sport ${udp} counter snat to :53
    ip saddr 127.0.0.11 tcp sport ${tcp} counter snat to :53
  }
}
`;
}
