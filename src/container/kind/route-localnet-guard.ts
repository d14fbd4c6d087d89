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
  enableRouteLocalnet,
  disabledRouteLocalnet,
  podDevices,
  extendLocalnetRecord,
} from "./route-localnet.ts";

/** The interfaces of a node, to be looked at inside it. */
export interface NodeInterfaces {
  readonly all: readonly Link[];
  /** By which whoever may ask comes in. */
  readonly facingPods: readonly Link[];
  readonly scope: KindPolicy["routeLocalnet"];
}

export interface RouteLocalnetGuardParts {
  readonly record: () => LocalnetRecord;
  /** What undoing needs, where it outlives us; nothing is switched if it throws. */
  readonly save: (record: LocalnetRecord) => void;
  /** These were off, and are on again. */
  readonly onRepaired: (names: readonly string[]) => void;
}

export class RouteLocalnetGuard {
  readonly #parts: RouteLocalnetGuardParts;
  /** When each was switched on again that somebody had switched off. */
  readonly #repairedMs = new Map<string, number>();

  constructor(parts: RouteLocalnetGuardParts) {
    this.#parts = parts;
  }

  enable(interfaces: NodeInterfaces): void {
    this.#switchOn(disabledIn(interfaces), interfaces);
  }

  /** Switches on what is off; returns those that somebody has switched off once more soon afterwards. */
  repair(interfaces: NodeInterfaces): readonly string[] {
    const lacking = disabledIn(interfaces);
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

  #switchOn(lacking: RouteLocalnet, { all }: NodeInterfaces): void {
    const names = Object.keys(lacking);
    if (names.length === 0) return;
    this.#parts.save(extendLocalnetRecord(this.#parts.record(), lacking, all));
    enableRouteLocalnet(names);
  }
}

function disabledIn({ facingPods: ofAskers, scope }: NodeInterfaces): RouteLocalnet {
  const names = ofAskers.map(({ name }) => name);
  return disabledRouteLocalnet(podDevices(names, scope));
}
