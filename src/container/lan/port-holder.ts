/**
 * PortHolder: the program that already answers at port 53 of an address of the host, as far as the kernel tells: where it listens, and
 * the systemd unit whose control group it is in.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { addressBytes, addressText } from "../../base/model/address.ts";
import { socketsAt } from "../../kernel/socket-list.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import { listenersAt } from "../namespace/listeners.ts";
import { DNS_PORT } from "../rules/rewritten-port.ts";

const STATES = { udp: "unconnected", tcp: "listening" } as const;
const UNIT_FOLDERS = ["sys/fs/cgroup/system.slice", "sys/fs/cgroup/unified/system.slice"];
const UNITS_MAX = 1_000;
const NO_GROUP = 0n;

/** Undefined if nobody has it. Call inside the host's namespace. */
export function portHolder(address: string, { pid }: Pick<EngineHost, "pid">): string | undefined {
  const protocols = listenersAt(address, DNS_PORT);
  const [first] = protocols;
  if (first === undefined) return undefined;
  const bytes = Buffer.from(addressBytes(address) ?? []);
  const at = ([4, 6] as const)
    .flatMap((family) => socketsAt({ protocol: first, family, state: STATES[first], end: "local", port: DNS_PORT }))
    .filter(({ local }) => local.address.equals(bytes) || local.address.every((byte) => byte === 0))
    .toSorted((a, b) => Number(b.local.address.equals(bytes)) - Number(a.local.address.equals(bytes)))[0];
  const place = at === undefined ? "" : `, at ${addressText(at.local.address)}`;
  const unit = unitOf(pid, at?.controlGroup ?? NO_GROUP);
  return `${unit ?? "another program"}${place} (${protocols.join(" and ")})`;
}

/** The number of its folder is the id of a control group. */
function unitOf(pid: number, id: bigint): string | undefined {
  if (id === NO_GROUP) return undefined;
  for (const folder of UNIT_FOLDERS) {
    try {
      const path = `/proc/${pid}/root/${folder}`;
      for (const name of readdirSync(path).slice(0, UNITS_MAX))
        if (statSync(join(path, name), { bigint: true, throwIfNoEntry: false })?.ino === id) return name;
    } catch {
      // It is not mounted there.
    }
  }
  return undefined;
}
