/**
 * Ports: with which ports and protocols an address is allowed: all, or those that rules name. A rule that names a port and no
 * protocol means TCP where it allows, and both where it denies.
 */
import type { PolicyRule, Protocol } from "../model/policy-rule.ts";

interface Port {
  readonly port: number;
  readonly protocol: Protocol;
}

export type Ports = "all" | readonly Port[];

const ALL_PORTS = "all";

/** A denied port closes whatever a rule without a port would open: which others are meant must be said. */
export function portsOf(allowed: readonly PolicyRule[], denied: readonly PolicyRule[]): Ports {
  if (denied.length === 0 && allowed.some(({ port }) => port === undefined)) return ALL_PORTS;
  const found = new Map<string, Port>();
  for (const { port, protocol = "tcp" } of allowed) {
    if (port !== undefined && !denied.some((rule) => rule.port === port && (rule.protocol ?? protocol) === protocol))
      found.set(`${port}/${protocol}`, { port, protocol });
  }
  return [...found.values()];
}

export function hasPort(ports: Ports, port: number | undefined, protocol: string): boolean {
  return ports === ALL_PORTS || ports.some((each) => each.port === port && each.protocol === protocol);
}

/** What each of several policies allows. */
export function commonPorts(each: readonly Ports[]): Ports {
  return each.reduce<Ports>((common, ports) => {
    if (common === ALL_PORTS) return ports;
    if (ports === ALL_PORTS) return common;
    return common.filter(({ port, protocol }) =>
      ports.some((other) => other.port === port && other.protocol === protocol),
    );
  }, ALL_PORTS);
}
