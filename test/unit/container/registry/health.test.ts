// Proves what health checks mean for names: shared ones lose unhealthy containers, but never all of them, and never a
// container's own name.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Health, type HealthPolicy, LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import { decide } from "../../../../src/container/attach/decision.ts";
import type { Directory } from "../../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { containerFact, knownFingerprint, listedFingerprint } from "../../../../src/container/watch/translate.ts";
import { TYPE, aContainer, anEndpoint } from "../../../support/scripted/builders.ts";
import { aDirectory, answerTo, succeed } from "../../support/names.ts";

function replica(number: number, health: Health | undefined, parts: Partial<ContainerFact> = {}): ContainerFact {
  const id = `web-${number}`;
  const endpoint = anEndpoint({ names: [id, "web"], ipv4: `172.20.0.${number}` });
  return aContainer({ id, name: id, health, endpoints: [endpoint], ...parts });
}

function directoryOf(health: HealthPolicy | undefined, ...containers: readonly ContainerFact[]): Directory {
  return aDirectory(containers, { names: { health } });
}

/** The last octets of the answer. */
function ask(directory: Directory, name = "web", type?: number): string {
  return answerTo(directory.viewOf(aContainer({ id: "asker" })), name, type).replaceAll(/\S+[.:]/g, "");
}

test("a policy leaves out unhealthy containers, or also those that are starting", () => {
  const all = [replica(2, "healthy"), replica(3, "unhealthy"), replica(4, "starting"), replica(5, undefined)];
  for (const [policy, expected] of [
    [undefined, "2 3 4 5"],
    ["ignore", "2 3 4 5"],
    ["last-resort", "2 4 5"],
    ["exclude", "2 5"],
  ] as const) {
    assert.equal(ask(directoryOf(policy, ...all)), expected, policy);
    assert.equal(ask(directoryOf(policy, ...all), "web.one"), expected, policy);
  }
});

test("a name never becomes empty, in any family, and a container keeps its own name", () => {
  const directory = directoryOf("exclude", replica(2, "unhealthy"), replica(3, "starting"));
  assert.equal(ask(directory), "2 3");
  assert.equal(ask(directory, "web-2"), "2");
  const six = anEndpoint({ names: ["six", "web"], ipv4: undefined, ipv6: "fd00::6" });
  directory.putContainer(aContainer({ id: "six", name: "six", health: "unhealthy", endpoints: [six] }));
  directory.putContainer(replica(4, "healthy"));
  assert.equal(ask(directory), "4");
  assert.equal(ask(directory, "web", TYPE.AAAA), "0006");
  directory.putContainer(replica(5, "unhealthy", { endpoints: [anEndpoint({ names: ["web"], ipv4: "172.20.0.5" })] }));
  assert.equal(ask(directory), "4 5", "web is the own name of one of them");
});

test("a change of health takes effect, and so does one of the policy", () => {
  const directory = directoryOf("last-resort", replica(2, "healthy"), replica(3, "starting"));
  assert.equal(ask(directory), "2 3");
  directory.putContainer(replica(3, "unhealthy"));
  assert.equal(ask(directory), "2");
  directory.putContainer(replica(2, "unhealthy"));
  assert.equal(ask(directory), "2 3");
  directory.putContainer(replica(3, "healthy"));
  assert.equal(ask(directory), "3");
  assert.equal(ask(succeed(directory, { health: "ignore" })), "2 3");
});

test("a label of the creator decides for one container, and an image's does not", () => {
  const labels = { "io.dns11.health": " Ignore" };
  const image = { imageLabels: { labels, source: "known" as const } };
  const healthy = replica(2, "healthy");
  assert.equal(ask(directoryOf("exclude", healthy, replica(3, "unhealthy", { labels }))), "2 3");
  assert.equal(ask(directoryOf("exclude", healthy, replica(3, "unhealthy", image))), "2");
  const trusting = succeed(directoryOf("exclude", healthy, replica(3, "unhealthy", image)), {
    health: "exclude",
    labels: { ...LABEL_DEFAULTS, trustsImages: true },
  });
  assert.equal(ask(trusting), "2 3");
  const strict = { labels: { "io.dns11.health": "exclude" } };
  assert.equal(ask(directoryOf("ignore", healthy, replica(3, "unhealthy", strict))), "2");
  assert.equal(ask(directoryOf(undefined, healthy, replica(3, "unhealthy", strict))), "2 3", "strict mode");
  const bad = decide(replica(3, "unhealthy", { labels: { "io.dns11.health": "yes" } }), []);
  assert.match(
    bad.warning ?? "",
    /^invalid label io\.dns11\.health="yes": use ignore, last-resort, exclude; the label/,
  );
});

test("health is read from an inspect, and a list shows where it has changed", () => {
  const json = (Status: string): Parameters<typeof containerFact>[0] => ({
    Id: "c1",
    Name: "/web",
    State: { Running: true, Health: { Status } },
  });
  const fact = (status: string): ContainerFact =>
    containerFact(json(status), { nameservers: { kind: "unknown" }, extraHosts: [] });
  for (const status of ["starting", "healthy", "unhealthy"]) assert.equal(fact(status).health, status);
  for (const status of ["none", "", "other"]) assert.equal(fact(status).health, undefined);
  const listed = (Status: string): string => listedFingerprint({ Id: "c1", Names: ["/web"], State: "running", Status });
  assert.equal(listed("Up 2 minutes (healthy)"), knownFingerprint(fact("healthy")));
  assert.equal(listed("Up 2 seconds (health: starting)"), knownFingerprint(fact("starting")));
  assert.equal(listed("Up 2 minutes"), knownFingerprint(fact("none")));
  assert.notEqual(listed("Up 2 minutes (unhealthy)"), knownFingerprint(fact("healthy")));
});
