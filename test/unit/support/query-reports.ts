/** Builders of query reports as the control socket returns them. */
import type { Cause } from "../../../src/api/causes.ts";
import type { AddressOwner } from "../../../src/api/names.ts";
import type { QueryReport } from "../../../src/api/queries.ts";

export const START_MS = Date.parse("2026-01-01T12:00:00Z");

export function aReport(parts: Partial<QueryReport> = {}): QueryReport {
  return {
    container: "web",
    seq: 1,
    time: new Date(START_MS).toISOString(),
    name: "example.org",
    type: "A",
    rcode: "NOERROR",
    answers: 1,
    addresses: [],
    ttl: 60,
    transport: "udp",
    result: "local",
    source: "network",
    upstream: null,
    ms: 0,
    ...parts,
  };
}

export function anOwner(address: string, container: string): AddressOwner {
  return { address, container, network: "shop_back", project: "shop", service: null };
}

export function aCause(parts: Partial<Cause> = {}): Cause {
  return {
    code: "not-running",
    sentence: '"cache" is container shop-cache-1, which exited with code 137, 12 min ago (network shop_front)',
    fix: "docker start shop-cache-1",
    lastingFix: null,
    isBreaking: true,
    ...parts,
  };
}
