/**
 * Preflight: whether dns11 can work on this machine and with this engine, checked before any container is touched.
 */
import type { EngineInfo } from "./watch/engine.ts";
import { effectiveCapabilities } from "../kernel/capabilities.ts";
import { Fault } from "../base/lib/fault.ts";

export const CAPABILITIES = [
  { name: "CAP_SYS_ADMIN", reason: "to enter the containers' network namespaces" },
  { name: "CAP_NET_ADMIN", reason: "to install rules there" },
  { name: "CAP_SYS_PTRACE", reason: "to open the engine's namespaces" },
] as const;

/** Docker 20.10 is the oldest engine whose API reports what dns11 needs. */
const ENGINE_MAJOR_MIN = 20;

type CapabilityName = (typeof CAPABILITIES)[number]["name"];

/** Throws if one that dns11 needs, or of these, is missing. */
export function checkCapabilities(needed: readonly CapabilityName[] = CAPABILITIES.map(({ name }) => name)): void {
  const effective = effectiveCapabilities();
  const missing = CAPABILITIES.filter(({ name }) => needed.includes(name) && !effective.includes(name)).map(
    ({ name, reason }) => `${name} (${reason})`,
  );
  if (missing.length === 0) return;
  const isRoot = process.getuid?.() === 0;
  throw new Fault("MISSING_CAPABILITY", `Missing capabilities: ${missing.join(", ")}`, {
    remedy: isRoot
      ? "In a container, add them with --cap-add; under systemd, with CapabilityBoundingSet=."
      : "Run this command as root, for instance with sudo.",
    isFinal: true,
  });
}

/** Throws if dns11 does not support the engine. */
export function checkEngine({ majorVersion, version }: Pick<EngineInfo, "majorVersion" | "version">): void {
  if (majorVersion < ENGINE_MAJOR_MIN) {
    throw new Fault("ENGINE_TOO_OLD", `Docker ${version} is not supported`, {
      remedy: "Use Docker 20.10 or later.",
      isFinal: true,
    });
  }
}
