/**
 * Witness: what the containers of a sandbox asked, reached and were refused, as a running dns11 tells it: its queries as they happen,
 * because a container may be removed when it has ended, and the rest from its records.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { ControlClient } from "../../../api/control-client.ts";
import { isUnasked } from "../../../api/egress.ts";
import type { QueryReport } from "../../../api/queries.ts";
import { codeOf } from "../../../base/lib/fault.ts";
import { Traffic } from "../traffic/traffic.ts";

/** Names are the containers' own words: more than these are counted together. */
const NAMES_MAX = 2_000;
const REFUSALS_MAX = 2_000;
const AGAIN_MS = 250;
const STREAM_LAG_MS = 100;
/** Names of other containers, and of the machine, are no news. */
const OUTSIDE: ReadonlySet<QueryReport["result"]> = new Set(["cached", "stale", "forwarded", "failed"]);

/** Of these protocols the kernel's record has something else where others have a port. */
const WITHOUT_PORT = /^\[?([^\]]*?)\]?:\d+\/(icmp|icmpv6)$/;

/** In the order of their first query. */
interface AskedName {
  readonly name: string;
  readonly by: string;
  readonly times: number;
}

export interface SandboxReport {
  readonly asked: readonly AskedName[];
  readonly refused: readonly (AskedName & { readonly because: string })[];
  /** Where containers connected to; undefined where dns11 does not record it. */
  readonly reached:
    | readonly { readonly address: string; readonly by: string; readonly names: readonly string[] }[]
    | undefined;
  /** Addresses that packets were refused to. */
  readonly refusedAddresses: readonly { readonly address: string; readonly by: string }[];
  /** Queries that came too fast to be seen, or for more names than are kept. */
  readonly missed: number;
  /** dns11 was away or started again, so that something may be missing. */
  readonly isPartial: boolean;
}

export class Witness {
  readonly traffic = new Traffic();
  readonly #client: ControlClient;
  /** By the ids of its containers, also of those that are gone. */
  readonly #names: ReadonlyMap<string, string>;
  /** Otherwise nothing was refused, only recorded. */
  readonly #isEnforced: boolean;
  readonly #sinceMs = Date.now();
  readonly #end = new AbortController();
  readonly #asked = new Map<string, AskedName>();
  #missed = 0;
  /** Another process of dns11 does not know what this one had recorded. */
  isPartial = false;

  constructor(client: ControlClient, names: ReadonlyMap<string, string>, isEnforced: boolean) {
    this.#client = client;
    this.#isEnforced = isEnforced;
    this.#names = names;
    void this.#follow();
  }

  async end(): Promise<SandboxReport> {
    // The stream tells what happens a moment later.
    await sleep(STREAM_LAG_MS);
    this.stop();
    const refusedAddresses = await this.#refusedAddresses();
    return {
      asked: [...this.#asked.values()],
      refused: await this.#refused(),
      reached: await this.#reached(new Set(refusedAddresses.map(({ by, address }) => keyOf(by, address)))),
      refusedAddresses,
      missed: this.#missed,
      isPartial: this.isPartial,
    };
  }

  stop(): void {
    this.#end.abort();
  }

  /** Until the end: a dns11 that is replaced goes on as another process. */
  async #follow(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#followQueries().catch(() => undefined);
      await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #followQueries(): Promise<void> {
    for await (const each of this.#client.follow({}, this.#end.signal)) {
      if (![...this.#names.values()].includes(each.container)) continue;
      if ("missed" in each) this.#missed += each.missed;
      else this.#note(each);
    }
  }

  #note(query: QueryReport): void {
    const { container, name, result } = query;
    if (name === null || !OUTSIDE.has(result)) return;
    const lower = name.toLowerCase();
    const key = keyOf(container, lower);
    const known = this.#asked.get(key);
    if (known === undefined && this.#asked.size >= NAMES_MAX) {
      this.#missed++;
      return;
    }
    this.#asked.set(key, { name: lower, by: container, times: (known?.times ?? 0) + 1 });
    this.traffic.addQuery(query);
  }

  async #known<T>(asked: Promise<T>): Promise<T | undefined> {
    try {
      return await asked;
    } catch {
      this.isPartial = true;
      return undefined;
    }
  }

  async #refused(): Promise<SandboxReport["refused"]> {
    if (!this.#isEnforced) return [];
    const log = await this.#known(this.#client.policyLog({ last: REFUSALS_MAX }));
    const names = new Map<string, SandboxReport["refused"][number]>();
    for (const { containerId, name, last, count, because } of log?.refusals ?? []) {
      const by = this.#names.get(containerId);
      if (name === null || by === undefined || Date.parse(last) < this.#sinceMs) continue;
      const key = keyOf(by, name);
      names.set(key, { name, by, times: (names.get(key)?.times ?? 0) + count, because });
    }
    return [...names.values()];
  }

  async #refusedAddresses(): Promise<SandboxReport["refusedAddresses"]> {
    if (!this.#isEnforced) return [];
    const report = await this.#known(this.#client.policies());
    const running = report?.containers.map(({ containerId, addresses }) => ({
      containerId,
      refused: addresses?.refused ?? [],
    }));
    return [...(report?.ended ?? []), ...(running ?? [])].flatMap(({ containerId, refused }) => {
      const by = this.#names.get(containerId);
      return by === undefined
        ? []
        : refused.map((address) => ({ address: address.replace(WITHOUT_PORT, "$1 ($2)"), by }));
    });
  }

  async #reached(refused: ReadonlySet<string>): Promise<SandboxReport["reached"]> {
    try {
      const report = await this.#client.egress();
      const containers = report.containers.filter(({ containerId }) => this.#names.has(containerId));
      this.traffic.addConnections({ ...report, containers }, this.#sinceMs);
      return containers.flatMap(({ container, connections }) =>
        connections
          .filter(({ last }) => Date.parse(last) >= this.#sinceMs)
          .map((each) => ({ address: addressOf(each), by: container, names: isUnasked(each) ? [] : each.names }))
          // What was refused did not get anywhere.
          .filter(({ address }) => !refused.has(keyOf(container, address))),
      );
    } catch (error) {
      if (codeOf(error) === "EGRESS_OFF") return undefined;
      this.isPartial = true;
      return [];
    }
  }
}

function keyOf(container: string, what: string): string {
  return `${container} ${what}`;
}

function addressOf({
  address,
  port,
  protocol,
}: {
  readonly address: string;
  readonly port: number | null;
  readonly protocol: string;
}): string {
  const host = address.includes(":") ? `[${address}]` : address;
  return port === null ? `${address} (${protocol})` : `${host}:${port}/${protocol}`;
}

/** As people read it: what could be allowed comes last. */
export function reportText({ asked, refused, reached, refusedAddresses, missed, isPartial }: SandboxReport): string[] {
  const lines = [
    ...asked.map(({ name, by, times }) => ["asked", name, by, timesText(times)]),
    ...(reached ?? []).map(({ address, by, names }) => ["reached", address, by, names.join(", ")]),
    ...refused.map(({ name, by, times, because }) => [
      "refused",
      name,
      by,
      `${timesText(times)}: ${ruleText(because)}`,
    ]),
    ...refusedAddresses.map(({ address, by }) => ["refused", address, by, "packets"]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(0, ...lines.map((line) => line[column]?.length ?? 0)));
  return [
    ...lines.map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    ),
    ...(lines.length === 0 ? ["no query for a name outside is known, and no refusal"] : []),
    ...(reached === undefined ? ["what was reached is not recorded: set egress: true"] : []),
    ...(isPartial ? ["dns11 was away meanwhile: what it had recorded before is missing"] : []),
    ...(missed > 0 ? [`${missed} queries came too fast, or for too many names, to be listed`] : []),
  ];
}

/** Without the policy, which is that of the sandbox. */
function ruleText(because: string): string {
  return because.replace(/^policy lease\/sandbox-[^:]*: /, "").replace(/ \(lease of [^()]*\)$/, "");
}

function timesText(times: number): string {
  return times === 1 ? "once" : `${times} times`;
}
