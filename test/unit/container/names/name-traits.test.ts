// Proves what a setting or label makes of a container's names: the TTL, the name that its addresses point to, and the order of
// addresses; and that none of it applies in strict mode or by an image's label.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addressBytes, reverseLabels } from "../../../../src/base/model/address.ts";
import { presentation } from "../../../../src/base/dns/name.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { NAME_CHOICES_DEFAULTS, type NameChoices, LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import { decide } from "../../../../src/container/attach/decision.ts";
import type { Directory } from "../../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { containerFact } from "../../../../src/container/watch/translate.ts";
import { TYPE, aClient, aContainer, aQuery, anEndpoint } from "../../../support/scripted/builders.ts";
import { addressesIn, replyOnce } from "../../support/reply.ts";
import { aDirectory, succeed } from "../../support/names.ts";

const DEFAULT_TTL = DEFAULT_BEHAVIOUR.ttlSeconds;

function replica(number: number, parts: Partial<ContainerFact> = {}): ContainerFact {
  const id = `web-${number}`;
  const endpoint = anEndpoint({ names: [id, "web"], ipv4: `10.1.0.${number}` });
  return aContainer({ id, name: id, endpoints: [endpoint], hostname: `host-${number}`, ...parts });
}

function directoryOf(choices: NameChoices | undefined, ...containers: readonly ContainerFact[]): Directory {
  return aDirectory(containers, { names: { choices } });
}

type Answered = ReturnType<typeof replyOnce>;

function ask(directory: Directory, name: string, type: number = TYPE.A): Answered {
  const client = aClient(directory.viewOf(aContainer({ id: "asker" })));
  return replyOnce(aQuery({ name, type }), { behaviour: DEFAULT_BEHAVIOUR, client });
}

function ttlOf(directory: Directory, name: string): number | undefined {
  return ask(directory, name).answers[0]?.ttl;
}

function pointer(directory: Directory, address: string): { readonly target: string; readonly ttl: number | undefined } {
  const labels = reverseLabels(addressBytes(address) as Uint8Array);
  const [answer] = ask(directory, `${presentation(labels, 0, labels.length)}.in-addr.arpa`, TYPE.PTR).answers;
  return { target: answer === undefined ? "" : presentation(answer.data, 0, answer.data.length - 1), ttl: answer?.ttl };
}

test("a label sets the TTL of a container's names; of several containers the shortest counts", () => {
  const labels = { "io.dns11.ttl": "1m" };
  const directory = directoryOf(NAME_CHOICES_DEFAULTS, replica(2, { labels }), replica(3));
  for (const name of ["web-2", "web", "web.one"]) assert.equal(ttlOf(directory, name), 60, name);
  assert.equal(ttlOf(directory, "web-3"), DEFAULT_TTL);
  assert.equal(pointer(directory, "10.1.0.2").ttl, 60);
  assert.equal(pointer(directory, "10.1.0.3").ttl, DEFAULT_TTL);
  for (const [text, seconds] of [
    ["1h30m", 5_400],
    ["1.5m", 90],
    [" 7 ", 7],
    ["1500ms", DEFAULT_TTL],
    ["soon", DEFAULT_TTL],
  ] as const) {
    directory.putContainer(replica(3, { labels: { "io.dns11.ttl": text } }));
    assert.equal(ttlOf(directory, "web-3"), seconds, `the same grammar as in the settings: ${text}`);
  }
  directory.putContainer(replica(3, { labels: { "io.dns11.ttl": "0" } }));
  assert.equal(ttlOf(directory, "web"), 0);
  directory.removeContainer("web-3");
  assert.equal(ttlOf(directory, "web"), 60);
});

test("addresses are in random order, or sorted by setting or by the labels of all containers with the name", () => {
  const numbers = [9, 2, 30, 11, 4];
  const lasts = (directory: Directory): number[] => ask(directory, "web").answers.map(({ data }) => data[3] ?? 0);
  const sorted = numbers.toSorted((a, b) => a - b);
  const all = numbers.map((number) => replica(number));
  const choices: NameChoices = { ...NAME_CHOICES_DEFAULTS, order: "sorted" };
  assert.deepEqual(lasts(directoryOf(choices, ...all)), sorted);
  // The answerer of a test always draws the same order.
  assert.notDeepEqual(lasts(directoryOf(NAME_CHOICES_DEFAULTS, ...all)), sorted);
  const labels = { "io.dns11.address-order": "sorted" };
  const labelled = numbers.map((number) => replica(number, { labels }));
  assert.deepEqual(lasts(directoryOf(NAME_CHOICES_DEFAULTS, ...labelled)), sorted);
  const mixed = directoryOf(NAME_CHOICES_DEFAULTS, ...labelled, replica(1));
  assert.notDeepEqual(lasts(mixed), [1, ...sorted]);
  assert.deepEqual(
    lasts(mixed).toSorted((a, b) => a - b),
    [1, ...sorted],
  );
});

test("an address points to NAME.NETWORK, the hostname, or that with the domain name, which then resolve as well", () => {
  const web = replica(2, { hostname: "www", domainName: "corp.test" });
  for (const [ptr, expected] of [
    ["network", "web-2.one"],
    ["hostname", "www"],
    ["fqdn", "www.corp.test"],
  ] as const) {
    const directory = directoryOf({ ...NAME_CHOICES_DEFAULTS, ptr }, web);
    assert.equal(pointer(directory, "10.1.0.2").target, expected);
    assert.deepEqual(addressesIn(ask(directory, expected)), ["10.1.0.2"], expected);
  }
  const fqdn: NameChoices = { ...NAME_CHOICES_DEFAULTS, ptr: "fqdn" };
  const directory = directoryOf(fqdn, replica(3), replica(4, { hostname: "mail.corp.test", domainName: "x.test" }));
  assert.equal(pointer(directory, "10.1.0.3").target, "web-3.one", "without a domain name");
  assert.equal(pointer(directory, "10.1.0.4").target, "mail.corp.test", "the hostname has one");
  const labels = { "io.dns11.ptr": "HOSTNAME " };
  const labelled = directoryOf(NAME_CHOICES_DEFAULTS, replica(5, { labels }), replica(6));
  assert.deepEqual(
    [pointer(labelled, "10.1.0.5").target, pointer(labelled, "10.1.0.6").target],
    ["host-5", "web-6.one"],
  );
});

test("hostnames that are no names leave Docker's", () => {
  const fqdn: NameChoices = { ...NAME_CHOICES_DEFAULTS, ptr: "fqdn" };
  for (const [index, hostname] of ["x".repeat(64), "a..b", ""].entries()) {
    const directory = directoryOf(fqdn, replica(7, { id: `odd-${index}`, hostname, domainName: "test" }));
    assert.equal(pointer(directory, "10.1.0.7").target, "web-7.one", hostname);
  }
});

test("an image's labels choose nothing, and in strict mode no label does", () => {
  const labels = { "io.dns11.ttl": "1h", "io.dns11.ptr": "hostname" };
  const image = { imageLabels: { labels, source: "known" as const } };
  const directory = directoryOf(NAME_CHOICES_DEFAULTS, replica(2, image));
  assert.deepEqual(pointer(directory, "10.1.0.2"), { target: "web-2.one", ttl: DEFAULT_TTL });
  const trusting = succeed(directory, {
    choices: NAME_CHOICES_DEFAULTS,
    labels: { ...LABEL_DEFAULTS, trustsImages: true },
  });
  assert.deepEqual(pointer(trusting, "10.1.0.2"), { target: "host-2", ttl: 3_600 });
  const strict = directoryOf(undefined, replica(2, { labels }));
  assert.deepEqual(pointer(strict, "10.1.0.2"), { target: "web-2.one", ttl: DEFAULT_TTL });
});

test("invalid labels are reported and ignored", () => {
  for (const [key, text, expected] of [
    ["io.dns11.ttl", "8d", /"8d": use whole seconds from 0 to 7d, such as 30s or 5m; the label is ignored$/],
    ["io.dns11.ttl", "-1", /"-1": use whole seconds/],
    ["io.dns11.ttl", "9".repeat(5_000), /"9+.*": use whole seconds/],
    ["io.dns11.ptr", "name", /"name": use network, hostname, fqdn; the label is ignored$/],
    ["io.dns11.answers", "kernel", /"kernel": use auto, process; the label is ignored$/],
    ["io.dns11.address-order", "", /"": use shuffle, sorted; the label is ignored$/],
  ] as const) {
    const bad = replica(2, { labels: { [key]: text } });
    const { warning = "" } = decide(bad, []);
    assert.match(warning, expected);
    assert.ok(warning.startsWith(`invalid label ${key}=`) && warning.length < 300, warning);
    const directory = directoryOf(NAME_CHOICES_DEFAULTS, bad);
    assert.deepEqual(pointer(directory, "10.1.0.2"), { target: "web-2.one", ttl: DEFAULT_TTL });
  }
});

test("hostname and domain name are read from an inspect", () => {
  const json = { Id: "c1", Name: "/web", Config: { Hostname: "www", Domainname: "corp.test" } };
  const files = { nameservers: { kind: "unknown" as const }, extraHosts: [] };
  const { hostname, domainName } = containerFact(json, files);
  assert.deepEqual([hostname, domainName], ["www", "corp.test"]);
});
