// Fuzz of what people write about names: labels of containers and files in the format of /etc/hosts, from fragments that mean
// something and bytes that do not. Nothing may throw, a report stays short, and a neighbour keeps its name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../src/base/model/behaviour.ts";
import { NAME_CHOICES_DEFAULTS } from "../../src/base/model/name-choices.ts";
import { readHostsText } from "../../src/config/records/hosts-text.ts";
import { decide } from "../../src/container/attach/decision.ts";
import { Directory } from "../../src/container/registry/directory.ts";
import { aClient, aContainer, aNetworkFact, aQuery, anEndpoint } from "../support/scripted/builders.ts";
import { addressesIn, replyOnce } from "../unit/support/reply.ts";
import { Random } from "./random.ts";

const SEED = 20_261_123;
const INPUTS = 1_000;
const LABELS = [
  ...["dns", "names", "health", "stopped", "ttl", "ptr", "address-order"].map((key) => `io.dns11.${key}`),
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

function text(random: Random): string {
  const length = random.once(50) ? 2_000 : random.below(8);
  return Array.from({ length }, () =>
    random.once(6) ? random.bytes(random.below(6)).toString("latin1") : random.pick(FRAGMENTS),
  ).join(random.once(3) ? " " : "");
}

function labelsFor(random: Random): Record<string, string> {
  return Object.fromEntries(LABELS.filter(() => random.once(2)).map((key) => [key, text(random)]));
}

test("labels of any text", () => {
  const directory = new Directory({ serversMax: 3, ownAddress: "127.0.0.11" });
  directory.putNetwork(aNetworkFact());
  directory.setChoices(NAME_CHOICES_DEFAULTS);
  directory.setHealth("exclude");
  directory.setStopped("nxdomain");
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
    const { warning = "" } = decide(fact, []);
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
});

test("files in the format of /etc/hosts, of any text", () => {
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED + 1, index);
    const lines = Array.from({ length: random.below(6) }, () => `${text(random)} ${text(random)}`);
    assert.doesNotThrow(() => readHostsText(lines.join("\n"), "fuzzed.hosts"), `input ${index}`);
  }
});
