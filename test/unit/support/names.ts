// The rig of all sources of names, at the seam that they share: facts of containers and networks go in, and what a container gets for
// a name comes out.

import assert from "node:assert/strict";

import { type Behaviour, DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import type { View } from "../../../src/base/model/view.ts";
import type { ContainerFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import type { NameSettings } from "../../../src/container/names/source/name-settings.ts";
import { Directory } from "../../../src/container/registry/directory.ts";
import { TYPE, aClient, aNetworkFact, aQuery, aView } from "../../support/scripted/builders.ts";
import { type Reply, addressesIn, answerOnce, readName } from "./reply.ts";

const TYPE_NUMBERS: Readonly<Record<string, number>> = { ...TYPE, NS: 2, SOA: 6 };
const TYPE_NAMES = new Map(Object.entries(TYPE_NUMBERS).map(([name, number]) => [number, name]));
const NXDOMAIN = 3;

export interface DirectoryParts extends Omit<Partial<ConstructorParameters<typeof Directory>[0]>, "names"> {
  readonly names?: Partial<NameSettings>;
  // By name, or with more than that.
  readonly networks?: readonly (string | Partial<NetworkFact>)[];
}

export function aDirectory(containers: readonly ContainerFact[], parts: DirectoryParts = {}): Directory {
  const { networks = ["one"], ...options } = parts;
  const directory = new Directory({ serversMax: 3, ownAddress: "127.0.0.11", ...options });
  for (const each of networks) directory.putNetwork(aNetworkFact(typeof each === "string" ? { name: each } : each));
  for (const each of containers) directory.putContainer(each);
  return directory;
}

// One with other settings that succeeds this one, as at a reload.
export function succeed(
  current: Directory,
  names: Partial<NameSettings> = {},
  parts: Pick<DirectoryParts, "makeNames"> = {},
): Directory {
  const next = aDirectory([], { ...parts, names, networks: [] });
  for (const _ of next.catchUp(current));
  next.succeed(current);
  return next;
}

// The addresses, sorted; "empty" without any, "NXDOMAIN", or "forwarded" for a name that is not local.
export function answerTo(view: View, name: string, type: number = TYPE.A, behaviour?: Behaviour): string {
  const parts = { behaviour: behaviour ?? DEFAULT_BEHAVIOUR, client: aClient(view) };
  const result = answerOnce(aQuery({ name, type }), parts);
  if (result.kind !== "reply") return "forwarded";
  const { rcode } = result.reply;
  if (rcode === NXDOMAIN) return "NXDOMAIN";
  assert.equal(rcode, 0, name);
  return addressesIn(result.reply).join(" ") || "empty";
}

// What a container gets whose names come from one source.
export abstract class NamesWorld {
  abstract view(): readonly VisibleNames[];

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
      .filter((each) => TYPE_NAMES.has(each.type))
      .map((each) => `${each.owner} ${recordText(each)}`)
      .toSorted();
  }
}

// `TYPE DATA`.
function recordText({ type, data }: Reply["answers"][number]): string {
  const name = TYPE_NAMES.get(type) ?? String(type);
  const at = (offset: number): string => readName(data, offset).text;
  const number = (offset: number): number => data.readUInt16BE(offset);
  if (name === "A") return `A ${[...data].join(".")}`;
  if (name === "AAAA") return `AAAA ${data.toString("hex")}`;
  if (name === "SRV") return `SRV ${number(0)} ${number(2)} ${number(4)} ${at(6)}`;
  if (name === "MX") return `MX ${number(0)} ${at(2)}`;
  if (name === "TXT") return `TXT ${data.subarray(1, 1 + (data[0] ?? 0)).toString()}`;
  return `${name} ${at(0)}`;
}
