/**
 * Traffic: what containers asked and where they connected to, as a running dns11 has recorded it: the input of a learned policy,
 * and of what a changed one would refuse.
 */
import type { EgressConnection, EgressReport } from "../../api/egress.ts";
import type { QueryReport } from "../../api/queries.ts";
import type { LocalSourceKey } from "../../base/model/local-source.ts";

/** A name that a container asked and got an answer for. */
export interface AskedName {
  readonly name: string;
  /** By type: who answered it on this machine; null if it was forwarded, or answered from what was. */
  readonly types: Map<string, LocalSourceKey | null>;
  /** The first addresses of its answers. */
  readonly addresses: Set<string>;
  count: number;
}

export interface ContainerTraffic {
  readonly container: string;
  readonly asked: Map<string, AskedName>;
  connections: readonly EgressConnection[];
}

const NOERROR = "NOERROR";

export class Traffic {
  readonly containers = new Map<string, ContainerTraffic>();
  /** Names that are hidden. */
  hidden = 0;

  /** A query whose answer says something: what fails is not missed. */
  addQuery({ container, name, type, rcode, answers, source, addresses }: QueryReport): void {
    if (rcode !== NOERROR || answers === 0 || type === null) return;
    if (name === null) {
      this.hidden++;
      return;
    }
    const lower = name.toLowerCase();
    const { asked } = this.of(container);
    const known = asked.get(lower) ?? { name: lower, types: new Map(), addresses: new Set(), count: 0 };
    asked.set(lower, known);
    known.types.set(type, source);
    known.count++;
    for (const address of addresses) known.addresses.add(address);
  }

  /** The connections since then. */
  addConnections({ containers }: EgressReport, sinceMs: number): void {
    for (const { container, connections } of containers) {
      const used = connections.filter(({ last }) => Date.parse(last) >= sinceMs);
      if (used.length > 0) this.of(container).connections = used;
    }
  }

  of(container: string): ContainerTraffic {
    const known = this.containers.get(container) ?? { container, asked: new Map(), connections: [] };
    this.containers.set(container, known);
    return known;
  }
}
