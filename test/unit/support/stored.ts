// Records of etcd and the answers that a container gets from them: the source of names and the answerer, without etcd.

import assert from "node:assert/strict";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { ETCD_DEFAULTS, type EtcdPolicy } from "../../../src/base/model/etcd-policy.ts";
import { StoredNames } from "../../../src/container/names/etcd/stored-names.ts";
import { type VisibleNames } from "../../../src/base/model/visible-names.ts";
import { TYPE, aClient, aQuery, aView } from "../../support/scripted/builders.ts";
import { type Reply, answerOnce, readName } from "./reply.ts";

export const TYPE_NUMBERS: Readonly<Record<string, number>> = { ...TYPE, NS: 2, SOA: 6 };
const NAMES = new Map(Object.entries(TYPE_NUMBERS).map(([name, number]) => [number, name]));

export interface StoredWorldParts extends Partial<EtcdPolicy> {
  readonly now?: () => number;
  readonly recordsMax?: number;
  // Sources before and after it.
  readonly before?: readonly VisibleNames[];
  readonly after?: readonly VisibleNames[];
}

export class StoredWorld {
  readonly names: StoredNames;
  readonly policy: EtcdPolicy;
  readonly #parts: StoredWorldParts;

  // Values by key below the prefix; undefined before the first list.
  constructor(values: Readonly<Record<string, unknown>> | undefined, parts: StoredWorldParts = {}) {
    this.#parts = parts;
    const { now: _, recordsMax: _m, before: _b, after: _a, ...policy } = parts;
    this.policy = { ...ETCD_DEFAULTS, endpoints: ["http://127.0.0.1:2379"], zones: ["shop.test"], ...policy };
    this.names = new StoredNames(this.policy, parts);
    if (values === undefined) return;
    this.list(values);
    this.names.setCurrent(true);
  }

  list(values: Readonly<Record<string, unknown>>): void {
    this.names.begin();
    for (const [key, value] of Object.entries(values)) this.put(key, value);
    this.names.commit();
  }

  put(key: string, value: unknown, lease?: string): void {
    const bytes = Buffer.isBuffer(value)
      ? value
      : Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    this.names.put({ key: `/skydns/${key}`, value: bytes, lease });
  }

  remove(key: string): void {
    this.names.remove(`/skydns/${key}`);
  }

  view(): readonly VisibleNames[] {
    const own = this.names.namesFor();
    const { before = [], after = [] } = this.#parts;
    return [...before, ...(own === undefined ? [] : [own]), ...after];
  }

  reply(name: string, type = "A", isStream = true): Reply | undefined {
    const query = aQuery({ name, type: TYPE_NUMBERS[type] ?? 0 });
    const client = aClient({ ...aView([]), names: this.view() });
    const result = answerOnce(query, { behaviour: DEFAULT_BEHAVIOUR, client, isStream });
    return result.kind === "reply" ? result.reply : undefined;
  }

  // The response code, and each record as `TYPE DATA`; "forwarded" where another server is asked.
  ask(name: string, type = "A"): readonly (string | number)[] {
    const reply = this.reply(name, type);
    return reply === undefined ? ["forwarded"] : [reply.rcode, ...reply.answers.map(recordText).toSorted()];
  }

  // The additional records as `OWNER DATA`.
  additional(name: string, type: string): readonly string[] {
    const reply = this.reply(name, type);
    assert.ok(reply, `${name} is not forwarded`);
    return reply.additionals
      .filter((each) => NAMES.has(each.type))
      .map((each) => `${each.owner} ${recordText(each)}`)
      .toSorted();
  }
}

// `TYPE DATA`.
export function recordText({ type, data }: Reply["answers"][number]): string {
  const name = NAMES.get(type) ?? String(type);
  const at = (offset: number): string => readName(data, offset).text;
  const number = (offset: number): number => data.readUInt16BE(offset);
  if (name === "A") return `A ${[...data].join(".")}`;
  if (name === "AAAA") return `AAAA ${data.toString("hex")}`;
  if (name === "SRV") return `SRV ${number(0)} ${number(2)} ${number(4)} ${at(6)}`;
  if (name === "MX") return `MX ${number(0)} ${at(2)}`;
  if (name === "TXT") return `TXT ${data.subarray(1, 1 + (data[0] ?? 0)).toString()}`;
  return `${name} ${at(0)}`;
}
