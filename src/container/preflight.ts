/**
 * Preflight: can dns11 do its work here at all? Everything is tried before anything of a container's is touched, and what
 * is missing is named.
 */
import type { EngineInfo } from "./watch/engine.ts";
import { effectiveCapabilities } from "../kernel/capabilities.ts";
import { Fault } from "../base/lib/fault.ts";

/** What each capability is for. */
export const CAPABILITIES = [
  { name: "CAP_SYS_ADMIN", reason: "to enter the containers' network namespaces" },
  { name: "CAP_NET_ADMIN", reason: "to install rules there" },
  { name: "CAP_SYS_PTRACE", reason: "to see the engine's namespaces" },
] as const;

/** Docker 20.10 is the oldest engine that tells what is needed. */
const ENGINE_MAJOR_MIN = 20;

export function checkCapabilities(): void {
  const effective = effectiveCapabilities();
  const missing = CAPABILITIES.filter(({ name }) => !effective.includes(name)).map(
    ({ name, reason }) => `${name} (${reason})`,
  );
  if (missing.length === 0) return;
  const isRoot = process.getuid?.() === 0;
  throw new Fault("MISSING_CAPABILITY", `dns11 lacks ${missing.join(", ")}`, {
    remedy: isRoot
      ? "In a container, add them with --cap-add; under systemd, in CapabilityBoundingSet."
      : "Run dns11 as root: sudo dns11 run",
    isFinal: true,
  });
}

/** Throws where an engine is none that can be served. */
export function checkEngine({ isRootless, majorVersion, version }: EngineInfo): void {
  if (isRootless) {
    throw new Fault(
      "ENGINE_ROOTLESS",
      "This engine is rootless: its containers' namespaces belong to its user, and so does their resolver",
      {
        remedy: "dns11 serves engines that run as root.",
        isFinal: true,
      },
    );
  }
  if (majorVersion < ENGINE_MAJOR_MIN) {
    throw new Fault("ENGINE_TOO_OLD", `Docker ${version} is too old`, {
      remedy: "dns11 works with Docker 20.10 and later.",
      isFinal: true,
    });
  }
}
