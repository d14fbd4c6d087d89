/**
 * Addresses for other machines whose port is another program's, or a container's: these keep it, and it is served when they are gone.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf } from "../../support/client/dig.ts";
import { runContainer } from "../../support/engine/container.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { AT, AT6, HOST, LanMachines } from "./lan-machines.ts";

let lan: LanMachines;
before(async () => void (lan = await LanMachines.start()));
after(async () => await lan[Symbol.asyncDispose]());

test("a program that takes port 53 keeps it, and is named", async () => {
  const other = await startUpstream(lan.engine, { address: HOST });
  try {
    await lan.until("the port to be taken", (all) => all.some(({ state }) => state === "failed"));
    const [first] = await lan.states();
    assert.equal(first?.code, "LISTEN_PORT_TAKEN");
    assert.match(
      first.reason ?? "",
      /Port 53 of 192\.168\.77\.10 is taken: by another program, at 192\.168\.77\.10 \(udp and tcp\)/,
    );
    assert.equal((await lan.asks(AT, "taken.ok.test")).status, "NOERROR", "the other program answers");
    assert.deepEqual(dataOf(await lan.asks(AT6, "web.docker")), [HOST]);
  } finally {
    await other[Symbol.asyncDispose]();
  }
  await lan.serving(2);
  assert.deepEqual(dataOf(await lan.asks(AT, "web.docker")), [HOST]);
});

test("a container that publishes port 53 keeps it, and is named", async () => {
  const resolver = await runContainer(lan.engine, {
    name: "resolver",
    networks: ["n1"],
    args: ["--publish", `${HOST}:53:53/udp`],
  });
  await lan.until("the port to be taken", (all) => all.some(({ state }) => state === "failed"));
  assert.match((await lan.states())[0]?.reason ?? "", /by the container "resolver", which publishes it/);
  await resolver.remove();
  await lan.serving(2);
});
