// Containers with names in a zone, and the answers that one of them gets: the registry and the answerer, without an engine.

import assert from "node:assert/strict";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { VisibleSetting } from "../../../src/base/model/name-choices.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { FEATURES } from "../../../src/features.ts";
import type { Feature, RunCore } from "../../../src/features/contract.ts";
import type { NameContext, PlacedNames } from "../../../src/container/names/name-sources.ts";
import type { Directory } from "../../../src/container/registry/directory.ts";
import type { OtherMachines } from "../../../src/container/names/services/member.ts";
import type { ContainerFact, NetworkFact } from "../../../src/container/facts/fact.ts";
import { TYPE, aClient, aContainer, aQuery, anEndpoint } from "../../support/scripted/builders.ts";
import { type DirectoryParts, aDirectory } from "./names.ts";
import { type AnswerResult, type Reply, addressesIn, answerOnce, readName } from "./reply.ts";

const ZONE = "cluster.local";

// The feature that answers zones, by its setting: others have names in zones, too, and are tested with it.
const features: readonly Feature[] = FEATURES;
const { load } = features.find(({ settings }) => settings?.["zone"] !== undefined) ?? {};
const feature = (await load?.())?.open({} as RunCore);

function zonesOf(settings: Settings, context: NameContext): readonly PlacedNames[] {
  const made = feature?.makeNames?.(settings, context);
  assert.ok(made);
  return made as readonly PlacedNames[];
}

interface MemberParts extends Partial<ContainerFact> {
  readonly service?: string;
  readonly project?: string;
  readonly number?: number;
  // Addresses by network.
  readonly on: Readonly<Record<string, string | readonly [string | undefined, string]>>;
}

// A container that Compose made, on these networks.
export function aMember(
  name: string,
  { service, project = "dev", number = 1, on, ...parts }: MemberParts,
): ContainerFact {
  const endpoints = Object.entries(on).map(([networkName, addresses]) => {
    const [ipv4, ipv6] = typeof addresses === "string" ? [addresses, undefined] : addresses;
    return anEndpoint({ networkName, names: [name], ipv4, ipv6 });
  });
  const compose = service === undefined ? {} : composeLabels(project, service, number);
  const labels = { ...compose, ...parts.labels };
  const id = Buffer.from(name).toString("hex").padEnd(64, "0");
  return aContainer({ id, name, hostname: id.slice(0, 12), endpoints, ...parts, labels });
}

function composeLabels(project: string, service: string, number: number): Record<string, string> {
  return {
    "com.docker.compose.project": project,
    "com.docker.compose.service": service,
    "com.docker.compose.container-number": String(number),
  };
}

export interface ZoneParts {
  readonly zones?: readonly string[];
  readonly visible?: VisibleSetting;
  readonly trustsImages?: boolean;
  readonly networks?: readonly Partial<NetworkFact>[];
  // What other machines publish.
  readonly remote?: OtherMachines;
}

export class ZoneWorld {
  readonly directory: Directory;

  constructor(containers: readonly ContainerFact[], parts: ZoneParts = {}) {
    const { zones = [ZONE], visible = "network", trustsImages = false, networks = [{ name: "one" }] } = parts;
    const { remote } = parts;
    const shared = { sources: [], machines: remote };
    const labels = { trustsImages, servers: "container" } as const;
    const settings = { labels, visible, zones } as unknown as Settings;
    const makeNames: DirectoryParts["makeNames"] = (context) => zonesOf(settings, context);
    this.directory = aDirectory(containers, { names: { labels }, makeNames, shared, networks });
  }

  ask(asker: ContainerFact, name: string, type: number = TYPE.A, isStream = true): AnswerResult {
    return this.askRaw(asker, aQuery({ name, type }), isStream);
  }

  askRaw(asker: ContainerFact, query: Buffer, isStream: boolean): AnswerResult {
    const client = aClient(this.directory.viewOf(asker));
    return answerOnce(query, { behaviour: DEFAULT_BEHAVIOUR, client, isStream });
  }

  reply(asker: ContainerFact, name: string, type?: number, isStream?: boolean): Reply {
    const result = this.ask(asker, name, type, isStream);
    assert.equal(result.kind, "reply", `${name} is not forwarded`);
    return result.reply;
  }

  // The response code and the addresses.
  addresses(asker: ContainerFact, name: string, type?: number): readonly [number, ...string[]] {
    const reply = this.reply(asker, name, type);
    return [reply.rcode, ...addressesIn(reply)];
  }
}

// "PRIORITY WEIGHT PORT TARGET" of each SRV record.
export function servicesIn(reply: Reply): string[] {
  return reply.answers
    .map(({ data }) => [0, 2, 4].map((at) => data.readUInt16BE(at)).join(" ") + ` ${readName(data, 6).text}`)
    .toSorted();
}
