/**
 * RouteLocalnetGuard: keeps route_localnet on for the interfaces that face pods, as kind mode `loopback` needs. The kernel sends
 * no event when a program switches it off, so the guard polls and switches it on again. If a program keeps switching it off, the
 * guard reports that instead of fighting it.
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

/** The interfaces of a node. */
export interface NodeInterfaces {
  readonly all: readonly Link[];
  /** Those through which queries of pods and other permitted clients arrive. */
  readonly facingPods: readonly Link[];
  readonly scope: KindPolicy["routeLocalnet"];
}

export interface RouteLocalnetGuardParts {
  readonly record: () => LocalnetRecord;
  /** Saves what undoing needs so that it survives a kill of dns11. If it throws, nothing is switched. */
  readonly save: (record: LocalnetRecord) => void;
  /** Called with interfaces that were switched off and are on again. */
  readonly onRepaired: (names: readonly string[]) => void;
}

export class RouteLocalnetGuard {
  readonly #parts: RouteLocalnetGuardParts;
  /** By interface, when it was last switched on again. */
  readonly #repairedMs = new Map<string, number>();

  constructor(parts: RouteLocalnetGuardParts) {
    this.#parts = parts;
  }

  enable(interfaces: NodeInterfaces): void {
    this.#switchOn(disabledIn(interfaces), interfaces);
  }

  /** Switches on what is off. Returns the interfaces that were switched off again soon after a repair. */
  repair(interfaces: NodeInterfaces): readonly string[] {
    const disabled = disabledIn(interfaces);
    const nowMs = performance.now();
    for (const [name, ms] of this.#repairedMs) {
      if (nowMs - ms >= LIMITS.localnetRepairEveryMs) this.#repairedMs.delete(name);
    }
    const contested = Object.keys(disabled).filter((name) => this.#repairedMs.has(name));
    const others = Object.entries(disabled).filter(([name]) => !this.#repairedMs.has(name));
    if (others.length > 0) {
      this.#switchOn(Object.fromEntries(others), interfaces);
      for (const [name] of others) this.#repairedMs.set(name, nowMs);
      this.#parts.onRepaired(others.map(([name]) => name));
    }
    return contested;
  }

  #switchOn(disabled: RouteLocalnet, { all }: NodeInterfaces): void {
    const names = Object.keys(disabled);
    if (names.length === 0) return;
    this.#parts.save(extendLocalnetRecord(this.#parts.record(), disabled, all));
    enableRouteLocalnet(names);
  }
}

function disabledIn({ facingPods, scope }: NodeInterfaces): RouteLocalnet {
  const names = facingPods.map(({ name }) => name);
  return disabledRouteLocalnet(podDevices(names, scope));
}
