/**
 * A failing name and its cause, as the control socket returns them: "db" of a Compose project, on a network that its client is
 * not on.
 */
import type { Cause } from "../../../src/api/causes.ts";
import type { FailureReport } from "../../../src/api/failures.ts";

/** When the tests look. */
export const NOW = Date.parse("2026-01-01T12:00:00Z");

export const OTHER_NETWORK: Cause = {
  code: "other-network",
  sentence: '"db" is container shop-db-1 on network shop_back; shop-api-1 is not on shop_back',
  fix: "docker network connect shop_back shop-api-1",
  lastingFix: { file: "/srv/shop/compose.yaml", service: "api", key: "services.api.networks", change: 'add "back"' },
  isBreaking: true,
};

export function aFailure(parts: Partial<FailureReport> = {}): FailureReport {
  return {
    container: "shop-api-1",
    containerId: "c1",
    isRunning: true,
    project: "shop",
    service: "api",
    name: "db",
    type: "A",
    result: "NXDOMAIN",
    count: 59,
    perMinute: 30,
    first: before(60_000),
    last: before(1_500),
    lastSuccess: null,
    isContainerName: true,
    cause: OTHER_NETWORK,
    ...parts,
  };
}

/** So many milliseconds before the tests look. */
export function before(ms: number): string {
  return new Date(NOW - ms).toISOString();
}
