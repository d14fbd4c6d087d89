/**
 * RouteLocalnetGuard: kind mode `loopback` needs route_localnet on the interfaces that face pods. The previous values are recorded and
 * restored.
 */
import { DEFAULT_INTERFACE, readRouteLocalnet, writeRouteLocalnet } from "../../kernel/route-localnet.ts";
import { type Link, type InterfaceAddress, RouteSocket } from "../../kernel/rtnetlink.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { inSlices } from "../../base/lib/slices.ts";
import {
  type LocalnetRecord,
  type NamedLink,
  type RouteLocalnet,
  hasInterfaces,
  restoreRouteLocalnet,
} from "../../container/files/restore.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { Within } from "../../kernel/net-namespace.ts";

const ALL = "all";
/** The kernel does not report changes: reading one takes 15 us. */
const CHECK_EVERY_MS = 2_000;
/** How soon one is set again that keeps being reset. */
const REPAIR_EVERY_MS = 60_000;

/** The ones of these that drop packets for 127.0.0.0/8, with their values. The kernel lists those with the links. */
export function disabledRouteLocalnet(links: readonly NamedLink[], others: readonly string[] = []): RouteLocalnet {
  if (readRouteLocalnet(ALL) === "1") return {};
  const ofLinks = links.filter(({ routeLocalnet }) => routeLocalnet === false).map(({ name }) => [name, "0"] as const);
  const ofOthers = others.flatMap((name) => {
    const value = readRouteLocalnet(name);
    return value === undefined || value === "1" ? [] : [[name, value] as const];
  });
  return Object.fromEntries([...ofLinks, ...ofOthers]);
}

/** The record to save before switching these on: the known one without interfaces that are gone, and the new ones. */
function extendLocalnetRecord(
  known: LocalnetRecord,
  disabled: RouteLocalnet,
  links: readonly NamedLink[],
): LocalnetRecord {
  const present = new Set([DEFAULT_INTERFACE, ...links.map(({ name }) => name)]);
  const before = Object.entries(known.routeLocalnet).filter(([name]) => present.has(name));
  const isFirst = Object.hasOwn(disabled, DEFAULT_INTERFACE) && !Object.hasOwn(known.routeLocalnet, DEFAULT_INTERFACE);
  const openBefore = isFirst
    ? links.filter(({ routeLocalnet }) => routeLocalnet === true).map(({ index }) => index)
    : known.openBefore;
  return {
    routeLocalnet: { ...disabled, ...Object.fromEntries(before) },
    ...(openBefore !== undefined && { openBefore }),
  };
}

function enableRouteLocalnet(name: string): void {
  writeRouteLocalnet(name, "1");
}

/** Switches it off for one interface, to test what happens without it. */
export function disableRouteLocalnet(name: string): void {
  writeRouteLocalnet(name, "0");
}

interface RouteLocalnetGuardParts {
  readonly memory: NetlinkMemory;
  /** The ones through which queries of pods and other permitted clients arrive. */
  readonly facingPods: (links: readonly Link[], addresses: readonly InterfaceAddress[]) => readonly Link[];
  readonly record: () => LocalnetRecord;
  /** Saves what undoing needs so that it survives a kill of dns11. If it throws, nothing is switched. */
  readonly save: (record: LocalnetRecord) => void;
  /** Called with interfaces that were switched off and are on again. */
  readonly onRepaired: (names: readonly string[]) => void;
  /** Called after each check: `failures` may have changed. */
  readonly onChecked: () => void;
}

/** What is off, and all interfaces. */
interface Reading {
  readonly disabled: RouteLocalnet;
  readonly links: readonly Link[];
}

/**
 * Keeps route_localnet on for the interfaces that face pods, as kind mode `loopback` needs. The kernel sends
 * no event when a program switches it off, so the guard polls and switches it on again. If a program keeps switching it off, the
 * guard reports that instead of fighting it. A node has two interfaces for each pod: they are listed and switched in slices.
 */
export class RouteLocalnetGuard {
  readonly #parts: RouteLocalnetGuardParts;
  /** The time at which each interface was last switched on again. */
  readonly #repairedMs = new Map<string, number>();
  #failures: readonly string[] = [];
  #isOn = false;
  /** Enters the namespace that is guarded now. */
  #within: Within | undefined;
  #timer: NodeJS.Timeout | undefined;
  #checking: Promise<void> | undefined;

  constructor(parts: RouteLocalnetGuardParts) {
    this.#parts = parts;
  }

  /** Why queries of pods are dropped, a sentence each. */
  get failures(): readonly string[] {
    return this.#failures;
  }

  /** Switches on again what another program keeps switching off, the next time: an operator may have asked for that. */
  forgive(): void {
    this.#repairedMs.clear();
  }

  /** Switches on what is off, in one step: pods use the captured addresses already. Call inside the namespace. */
  enableAtOnce(): void {
    if (this.#isOn) return;
    const reading = this.#withRoutes((route) => this.#readingOf(route.links(), route.addresses()));
    for (const name of this.#recorded(reading)) enableRouteLocalnet(name);
    this.#isOn = true;
  }

  /** Switches on what is off, and keeps it on until `stop`. Resolves to false if it cannot: pods must not query us then. */
  async start(within: Within): Promise<boolean> {
    this.#within = within;
    if (this.#isOn) {
      // One that is under way may have read before `forgive`.
      await this.#checking;
      await this.#check();
    } else {
      try {
        await this.#enable(within);
      } catch (error) {
        if (this.#within === within) this.#failures = [`route_localnet cannot be switched on: ${reasonOf(error)}`];
        return false;
      }
    }
    if (this.#within !== undefined) this.#timer ??= setInterval(() => void this.#check(), CHECK_EVERY_MS).unref();
    return true;
  }

  stop(): void {
    this.#within = undefined;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Gives all interfaces their previous values in slices, after `stop`: the step that undoes the rest finds nothing left. */
  async restore(within: Within): Promise<void> {
    const record = this.#parts.record();
    if (!hasInterfaces(record)) return;
    const links = await this.#links(within);
    const restoring = restoreRouteLocalnet(record, () => links);
    await inSlices(inside(within, restoring));
    this.#parts.save({ routeLocalnet: {} });
    this.reset();
  }

  /** All interfaces have their previous values again. */
  reset(): void {
    this.#isOn = false;
    this.#failures = [];
  }

  async #enable(within: Within): Promise<void> {
    const reading = await this.#readRouteLocalnet(within);
    await inSlices(this.#switchOn(within, this.#recorded(reading)));
    this.#isOn = this.#within === within;
    this.#failures = [];
  }

  async #check(): Promise<void> {
    const within = this.#within;
    if (within === undefined) return;
    this.#checking ??= this.#repair(within).finally(() => (this.#checking = undefined));
    await this.#checking;
  }

  async #repair(within: Within): Promise<void> {
    try {
      const reading = await this.#readRouteLocalnet(within);
      if (this.#within !== within) return;
      const contested = await this.#repairDisabled(within, reading);
      const cause = "another program switched it off again after dns11 had switched it on";
      const reason = `route_localnet is off on ${contested.join(", ")}: queries of its pods are dropped; ${cause}`;
      this.#failures = contested.length === 0 ? [] : [reason];
    } catch (error) {
      if (this.#within !== within) return;
      this.#failures = [`route_localnet cannot be switched on: ${reasonOf(error)}`];
    }
    this.#parts.onChecked();
  }

  /** Returns the interfaces that were switched off again soon after a repair. */
  async #repairDisabled(within: Within, { disabled, links }: Reading): Promise<readonly string[]> {
    const nowMs = performance.now();
    for (const [name, ms] of this.#repairedMs) {
      if (nowMs - ms >= REPAIR_EVERY_MS) this.#repairedMs.delete(name);
    }
    const contested = Object.keys(disabled).filter((name) => this.#repairedMs.has(name));
    const others = Object.entries(disabled).filter(([name]) => !this.#repairedMs.has(name));
    if (others.length > 0) {
      const names = this.#recorded({ disabled: Object.fromEntries(others), links });
      await inSlices(this.#switchOn(within, names));
      if (this.#within !== within) return [];
      for (const name of names) this.#repairedMs.set(name, nowMs);
      this.#parts.onRepaired(names);
    }
    return contested;
  }

  async #readRouteLocalnet(within: Within): Promise<Reading> {
    const links = await this.#links(within);
    return within(() => this.#withRoutes((route) => this.#readingOf(links, route.addresses())));
  }

  async #links(within: Within): Promise<readonly Link[]> {
    const route = within(() => new RouteSocket(this.#parts.memory));
    try {
      const links: Link[] = [];
      await inSlices(route.linksInParts(links), 1);
      return links;
    } finally {
      route.close();
    }
  }

  #withRoutes<T>(use: (route: RouteSocket) => T): T {
    const route = new RouteSocket(this.#parts.memory);
    try {
      return use(route);
    } finally {
      route.close();
    }
  }

  #readingOf(links: readonly Link[], addresses: readonly InterfaceAddress[]): Reading {
    return { disabled: disabledRouteLocalnet(this.#parts.facingPods(links, addresses), [DEFAULT_INTERFACE]), links };
  }

  /** The names of what is off, once undoing it is saved. */
  #recorded({ disabled, links }: Reading): readonly string[] {
    const names = Object.keys(disabled);
    if (names.length > 0) this.#parts.save(extendLocalnetRecord(this.#parts.record(), disabled, links));
    return names;
  }

  /** Not after `stop`, which may come between two of them: then `restore` would have had its turn already. */
  *#switchOn(within: Within, names: readonly string[]): Generator<void> {
    for (const name of names) {
      if (this.#within !== within) return;
      yield within(() => enableRouteLocalnet(name));
    }
  }
}

/** Each step inside the namespace. */
function* inside(within: Within, steps: Iterator<unknown>): Generator<void> {
  while (within(() => steps.next()).done !== true) yield;
}
