/**
 * Preflight: can dns11 do its work here at all? Everything is tried before anything of a container's is touched, and what
 * is missing is named.
 */
import { readFileSync } from "node:fs";

import { USER_DEFINED_NETWORK, DOCKER_RESOLVER } from "../container/capture/capture.ts";
import type { Bracket } from "../container/namespace/bracket.ts";
import { DOOR_MARK } from "../container/namespace/dial.ts";
import { createCommands } from "../container/rules/encode.ts";
import { TRIAL_MARK } from "../container/rules/probe.ts";
import { servingPlan } from "../container/rules/plan.ts";
import { SystemFault } from "../kernel/libc.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import { NftSocket } from "../kernel/nfnetlink.ts";
import { Fault } from "../lib/fault.ts";
import { CAPABILITIES } from "./limit-capabilities.ts";

/** The capabilities that are missing, with their reasons. */
function missingCapabilities(status: string): string[] {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  return CAPABILITIES.filter(({ bit }) => ((effective >> BigInt(bit)) & 1n) === 0n).map(
    ({ name, reason }) => `${name} (${reason})`,
  );
}

export function checkCapabilities(): void {
  const missing = missingCapabilities(readFileSync("/proc/self/status", "utf8"));
  if (missing.length === 0) return;
  const isRoot = process.getuid?.() === 0;
  throw new Fault("MISSING_CAPABILITY", `dns11 lacks ${missing.join(", ")}`, {
    remedy: isRoot
      ? "In a container, add them with --cap-add; under systemd, in CapabilityBoundingSet."
      : "Run dns11 as root: sudo dns11 run",
    isFinal: true,
  });
}

/** Installs the whole table in an empty namespace that is gone a moment later. */
export function checkKernel(bracket: Bracket, memory: NetlinkMemory): void {
  const plan = servingPlan({
    capture: USER_DEFINED_NETWORK,
    listening: [{ address: DOCKER_RESOLVER, udpPort: 1, tcpPort: 1 }],
    zone: 1,
    spared: [],
    doorMark: DOOR_MARK,
    trialMark: TRIAL_MARK,
  });
  try {
    bracket.withinScratch(() => {
      const nft = new NftSocket(memory);
      try {
        nft.transact(createCommands(plan));
      } finally {
        nft.close();
      }
    });
  } catch (error) {
    throw kernelFault(error);
  }
}

/** An unknown table flag answers EOPNOTSUPP; anything else is told as it is. */
function kernelFault(error: unknown): Fault {
  const isUnowned = error instanceof SystemFault && (error.code === "EOPNOTSUPP" || error.code === "ENOTSUP");
  const message = isUnowned
    ? "This kernel has no nf_tables tables that belong to a process (flag owner)"
    : "This kernel does not take the rules that dns11 needs";
  return new Fault("KERNEL", message, {
    cause: error,
    remedy: isUnowned
      ? "Linux 5.12 or later has them. Without them dns11 could not hand back to Docker when it is killed."
      : "It needs nf_tables with NAT and connection tracking (CONFIG_NF_TABLES, CONFIG_NFT_NAT, CONFIG_NFT_CT).",
    isFinal: true,
  });
}
