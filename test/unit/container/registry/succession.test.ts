/** A directory with other settings takes over from the one before it: nothing is lost, and no answer mixes the two. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { NAME_CHOICES_DEFAULTS, type NameChoices } from "../../../../src/base/model/name-choices.ts";
import type { View } from "../../../../src/base/model/view.ts";
import type { Directory } from "../../../../src/container/registry/directory.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../../support/scripted/builders.ts";
import { aDirectory, answerTo, succeed } from "../../support/names.ts";

const asker = replica(1);

/** All have the name "web". */
function replica(number: number, parts: Partial<ContainerFact> = {}): ContainerFact {
  const id = `web-${number}`;
  const endpoint = anEndpoint({ names: [id, "web"], ipv4: `10.1.0.${number}` });
  return aContainer({ id, name: id, endpoints: [endpoint], ...parts });
}

function directoryOf(...containers: readonly ContainerFact[]): Directory {
  return aDirectory([asker, ...containers]);
}

/** The last octets of the addresses in order, "NXDOMAIN", or "forwarded" to upstream servers. */
function ask(view: View, name = "web"): string {
  return answerTo(view, name).replaceAll(/\S+\./g, "");
}

test("a view is of the directory before or of the one after, and both follow the containers", () => {
  const before = directoryOf(replica(2, { health: "unhealthy" }), replica(3));
  const old = before.viewOf(asker);
  const after = succeed(before, { health: "exclude" });
  const view = after.viewOf(asker);
  assert.deepEqual([ask(old), ask(view)], ["1 2 3", "1 3"]);
  after.putContainer(replica(4, { health: "unhealthy" }));
  after.removeContainer("web-3");
  assert.deepEqual([ask(old), ask(view)], ["1 2 4", "1"]);
  after.putNetwork(aNetworkFact({ name: "two" }));
  assert.notEqual(before.network("id-of-two"), undefined);
  after.forgetPredecessor();
  after.removeContainer("web-2");
  assert.equal(ask(old), "1 2 4", "nobody uses it any more");
});

test("while a container waits for its image's labels, its view is kept up to date", () => {
  const before = directoryOf(replica(2));
  const old = before.viewOf(asker);
  const after = succeed(before);
  after.putContainer(replica(2, { imageLabels: { labels: {}, source: "awaited" } }));
  after.forgetPredecessor();
  after.putContainer(replica(3));
  assert.equal(ask(old), "1 2 3");
});

test("what happens while a directory is filled is not lost", () => {
  const before = directoryOf(replica(2), replica(3), replica(4));
  before.putNetwork(aNetworkFact({ name: "gone" }));
  const choices: NameChoices = { ...NAME_CHOICES_DEFAULTS, order: "sorted" };
  const next = aDirectory([], { networks: [], names: { choices } });
  let step = 0;
  for (const _ of next.catchUp(before)) {
    if (step++ !== 3) continue;
    before.removeContainer("web-2");
    before.removeNetwork("id-of-gone");
    before.putContainer(replica(5));
    before.putContainer(replica(6));
  }
  before.removeContainer("web-6");
  for (const _ of next.catchUp(before));
  assert.deepEqual([...next.catchUp(before)], [], "both know the same");
  next.succeed(before);
  const view = next.viewOf(asker);
  assert.equal(ask(view), "1 3 4 5");
  assert.equal(ask(view, "web-2"), "forwarded");
  assert.equal(next.network("id-of-gone"), undefined);
  assert.deepEqual([...next.containers.keys()].toSorted(), [...before.containers.keys()].toSorted());
});

test("what is no setting goes with it: servers of the host, denied and declared names, former addresses", () => {
  let changes = 0;
  const before = aDirectory([], { networks: [], onNames: () => void changes++ });
  before.putNetwork(aNetworkFact());
  before.putContainer(asker);
  before.setHost([{ from: "host", address: "10.0.0.1", port: 53 }]);
  before.setDenied(["corp.test"], "a setting");
  before.setComplete(false);
  before.names.engineHost.setGateway({ ipv4: "172.17.0.1", ipv6: undefined });
  before.removeContainer(asker.id);
  before.putContainer(asker);
  const [noted] = before.former.list();
  changes = 0;
  const next = succeed(before, { hostName: "gateway" });
  assert.equal(changes, 1, "no answer that was given before is valid any more");
  next.putContainer(replica(2));
  assert.equal(changes, 2, "once for both");
  assert.deepEqual(next.former.list(), [noted]);
  const { routes } = next.viewOf(asker).upstreams;
  assert.deepEqual(
    routes.map(({ isLocal, by }) => [isLocal, by]),
    before.viewOf(asker).upstreams.routes.map(({ isLocal, by }) => [isLocal, by]),
  );
  assert.ok(routes.some(({ isLocal }) => isLocal));
  assert.equal(ask(next.viewOf(asker), "host.docker.internal"), "1");
});
