/** What is told of a client: by what is known of its container, to which servers, and from when on. */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { Server } from "../../../src/base/model/view.ts";
import { ClientSubnets, subnetOption } from "../../../src/features/client-subnet/client-subnet.ts";
import { outgoingAddress } from "../../../src/container/facts/fact.ts";
import { aClient, aContainer, anEndpoint } from "../../support/scripted/builders.ts";

const FILTER: Server = { from: "host", address: "10.0.0.1", port: 53 };
const OTHERS: readonly Server[] = [
  { ...FILTER, port: 5353 },
  { ...FILTER, address: "10.0.0.2" },
  { ...FILTER, from: "docker" },
  { ...FILTER, from: "node" },
];

/** Of which the kernel has answers. */
function aServedClient(): { readonly client: ReturnType<typeof aClient>; readonly forgotten: () => number } {
  const client = aClient();
  let count = 0;
  client.repeater = { forget: () => count++ } as never;
  return { client, forgotten: () => count };
}

test("a server is told the address of a container, once it is known, and nothing of whoever is none", () => {
  const subnets = new ClientSubnets();
  const { client, forgotten } = aServedClient();
  const toldTo = (server: Server): Uint8Array | undefined => client.disclosure?.optionFor(server);
  subnets.open("web", client);
  assert.equal(toldTo(FILTER), undefined);
  subnets.setServers(["10.0.0.1"]);
  assert.deepEqual(toldTo(FILTER), new Uint8Array(0));
  assert.equal(forgotten(), 1);
  const fact = aContainer({ id: "web", endpoints: [anEndpoint({ ipv4: "172.18.0.2" })] });
  subnets.put(fact);
  assert.deepEqual(toldTo(FILTER), subnetOption("172.18.0.2"));
  assert.deepEqual(toldTo({ ...FILTER, from: "container" }), subnetOption("172.18.0.2"));
  for (const server of OTHERS) assert.equal(toldTo(server), undefined);
  assert.equal(forgotten(), 2);
  // The same facts again end no answers, and the same settings do not.
  const before = client.disclosure;
  subnets.put({ ...fact, isPaused: true });
  subnets.setServers(["10.0.0.1"]);
  assert.equal(client.disclosure, before);
  // Another client of the container, as when it is attached again.
  const again = aServedClient().client;
  subnets.open("web", again);
  assert.deepEqual(again.disclosure?.optionFor(FILTER), subnetOption("172.18.0.2"));
  client.close();
  subnets.put(aContainer({ id: "web", endpoints: [anEndpoint({ ipv4: "172.18.0.9" })] }));
  assert.equal(client.disclosure, before);
  assert.deepEqual(again.disclosure?.optionFor(FILTER), subnetOption("172.18.0.9"));
  subnets.remove("web");
  subnets.setServers([]);
  assert.equal(again.disclosure, undefined);
});

test("the address is that on the network of the default gateway", () => {
  const a = anEndpoint({ networkName: "a", ipv4: "172.18.0.2", ipv4Gateway: undefined, gatewayPriority: 0 });
  const b = anEndpoint({ networkName: "b", ipv4: "172.19.0.2", ipv4Gateway: "172.19.0.1", gatewayPriority: 0 });
  const c = anEndpoint({ networkName: "c", ipv4: "172.20.0.2", ipv4Gateway: "172.20.0.1", gatewayPriority: 0 });
  const v6 = anEndpoint({ networkName: "d", ipv4: undefined, ipv6: "fd00::2", gatewayPriority: 9 });
  const of = (...endpoints: (typeof a)[]): string | undefined =>
    outgoingAddress(aContainer({ endpoints, onDefaultBridge: undefined }));
  assert.equal(of(c, a, b), "172.19.0.2");
  assert.equal(of(b, { ...c, gatewayPriority: 1 }), "172.20.0.2");
  assert.equal(of(v6, a), "172.18.0.2");
  assert.equal(of(v6), "fd00::2");
  assert.equal(of(), undefined);
  const onBridge = { names: [], links: [], ipv4: "172.17.0.2", ipv6: undefined };
  assert.equal(outgoingAddress(aContainer({ endpoints: [], onDefaultBridge: onBridge })), "172.17.0.2");
});
