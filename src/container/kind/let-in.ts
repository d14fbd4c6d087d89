/**
 * LetIn: that packets for 127.0.0.0/8 come in by the interfaces of a node's pods, for the way `loopback`. The kernel tells
 * nobody when somebody switches that off, so it is looked at from time to time, and switched on again; whoever keeps
 * switching it off is told of, and not fought.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Link } from "../../kernel/rtnetlink.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import {
  type LocalnetRecord,
  type RouteLocalnet,
  allowRouteLocalnet,
  lackingRouteLocalnet,
  podDevices,
  recordBefore,
} from "./route-localnet.ts";

/** The interfaces of a node, to be looked at inside it. */
export interface Interfaces {
  readonly all: readonly Link[];
  /** By which whoever may ask comes in. */
  readonly ofAskers: readonly Link[];
  readonly scope: KindPolicy["routeLocalnet"];
}

export interface LetInParts {
  readonly known: () => LocalnetRecord;
  /** What undoing needs, where it outlives us; nothing is switched if it throws. */
  readonly keep: (record: LocalnetRecord) => void;
  /** These were off, and are on again. */
  readonly onRepaired: (names: readonly string[]) => void;
}

export class LetIn {
  readonly #parts: LetInParts;
  /** When each was switched on again that somebody had switched off. */
  readonly #repairedMs = new Map<string, number>();

  constructor(parts: LetInParts) {
    this.#parts = parts;
  }

  open(interfaces: Interfaces): void {
    this.#switchOn(lackingIn(interfaces), interfaces);
  }

  /** Switches on what is off; returns those that somebody has switched off once more soon afterwards. */
  repair(interfaces: Interfaces): readonly string[] {
    const lacking = lackingIn(interfaces);
    const nowMs = performance.now();
    for (const [name, ms] of this.#repairedMs) {
      if (nowMs - ms >= LIMITS.localnetRepairEveryMs) this.#repairedMs.delete(name);
    }
    const contested = Object.keys(lacking).filter((name) => this.#repairedMs.has(name));
    const others = Object.entries(lacking).filter(([name]) => !this.#repairedMs.has(name));
    if (others.length > 0) {
      this.#switchOn(Object.fromEntries(others), interfaces);
      for (const [name] of others) this.#repairedMs.set(name, nowMs);
      this.#parts.onRepaired(others.map(([name]) => name));
    }
    return contested;
  }

  #switchOn(lacking: RouteLocalnet, { all }: Interfaces): void {
    const names = Object.keys(lacking);
    if (names.length === 0) return;
    this.#parts.keep(recordBefore(this.#parts.known(), lacking, all));
    allowRouteLocalnet(names);
  }
}

function lackingIn({ ofAskers, scope }: Interfaces): RouteLocalnet {
  const names = ofAskers.map(({ name }) => name);
  return lackingRouteLocalnet(podDevices(names, scope));
}
