// Labels and aliases of any text, from fragments that mean something and bytes that do not.

import assert from "node:assert/strict";

import { DEFAULT_BEHAVIOUR } from "../../src/base/model/behaviour.ts";
import { NAME_CHOICES_DEFAULTS, LABEL_DEFAULTS } from "../../src/base/model/name-choices.ts";
import { decide } from "../../src/container/attach/decision.ts";
import type { Labels } from "../../src/container/facts/labels.ts";
import { Directory } from "../../src/container/registry/directory.ts";
import type { Running } from "../../src/features/contract.ts";
import { aClient, aContainer, aNetworkFact, aQuery, anEndpoint } from "../support/scripted/builders.ts";
import type { DirectoryParts } from "../unit/support/names.ts";
import { addressesIn, replyOnce } from "../unit/support/reply.ts";
import { Random } from "./random.ts";

export const SEED = 20_261_123;
export const INPUTS = 1_000;
const LABELS = [
  ...["dns", "names", "health", "stopped", "ttl", "ptr", "address-order", "search", "project"].map(
    (key) => `io.dns11.${key}`,
  ),
  "com.docker.compose.project",
  "com.docker.compose.service",
  "com.docker.compose.oneoff",
];
const FRAGMENTS = [
  ..."*. * . .. , \t \n # : / @ - _ %eth0 \\ \u0000 é İ".split(" "),
  ..."web shop.test *.shop.test *.com 10.0.0.1 fd00::1 ::ffff:10.0.0.1 host sorted fqdn hostname 5m 7d 99999999d True".split(
    " ",
  ),
  "x".repeat(64),
  "x.".repeat(130),
  " ",
];

export function text(random: Random): string {
  const length = random.once(50) ? 2_000 : random.below(8);
  return Array.from({ length }, () =>
    random.once(6) ? random.bytes(random.below(6)).toString("latin1") : random.pick(FRAGMENTS),
  ).join(random.once(3) ? " " : "");
}

function labelsFor(random: Random): Record<string, string> {
  return Object.fromEntries(LABELS.filter(() => random.once(2)).map((key) => [key, text(random)]));
}

// What a feature makes of them.
interface Made {
  readonly makeNames?: DirectoryParts["makeNames"];
  readonly labelWarnings?: Running["labelWarnings"];
}

/** The names of one container are any, and it stops: nothing throws, a report stays short, and a neighbour keeps its name. */
export function tryAnyLabels({ makeNames, labelWarnings }: Made = {}): void {
  const directory = new Directory({
    serversMax: 3,
    ownAddress: "127.0.0.11",
    names: { choices: NAME_CHOICES_DEFAULTS, health: "exclude" },
    makeNames,
  });
  directory.putNetwork(aNetworkFact());
  const neighbour = aContainer({ id: "n", name: "n", endpoints: [anEndpoint({ names: ["n"], ipv4: "10.1.0.2" })] });
  directory.putContainer(neighbour);
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const about = `input ${index}`;
    const labels = labelsFor(random);
    const aliases = Array.from({ length: random.below(4) }, () => text(random));
    const endpoints = [anEndpoint({ names: ["fuzzed", ...aliases], ipv4: "10.1.0.3" })];
    const fact = aContainer({
      id: "f",
      name: "f",
      labels,
      hostname: text(random),
      domainName: text(random),
      endpoints,
    });
    const warningsOf = (valid: Labels): readonly (string | undefined)[] =>
      labelWarnings?.(fact, valid, LABEL_DEFAULTS) ?? [];
    const { warning = "" } = decide(fact, [], LABEL_DEFAULTS, "off", () => false, warningsOf);
    assert.ok(warning.length < 4_000, `${about}: ${warning.length} characters`);
    directory.putContainer(fact);
    const client = aClient(directory.viewOf(neighbour));
    const reply = replyOnce(aQuery({ name: "fuzzed" }), { behaviour: DEFAULT_BEHAVIOUR, client });
    assert.ok(addressesIn(reply).includes("10.1.0.3"), about);
    const own = replyOnce(aQuery({ name: "n" }), { behaviour: DEFAULT_BEHAVIOUR, client });
    assert.ok(addressesIn(own).includes("10.1.0.2"), about);
    const networks = [{ name: "one", names: [text(random), ...aliases] }];
    directory.putStopped({ id: "f", name: "f", sinceMs: Date.now(), labels, imageLabels: fact.imageLabels, networks });
    directory.removeContainer("f");
    directory.viewOf(neighbour);
    directory.removeStopped("f");
  }
}
