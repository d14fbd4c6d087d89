// Faults in DNS for containers that testcontainers starts: `node testcontainers.mjs`, beside a running dns11.
// TESTCONTAINERS_RYUK_DISABLED=true saves its second container; everything here is removed at the end.
import assert from "node:assert/strict";

import { connect } from "dns11/client";
import { GenericContainer, LABEL_TESTCONTAINERS_SESSION_ID, Network, Wait } from "testcontainers";

const image = process.env.IMAGE ?? "busybox";
const dns = await connect({ stateDir: process.env.DNS11_STATE_DIR });
const network = await new Network().start();
const started = [];
const start = async (name, command) => {
  const container = await new GenericContainer(image)
    .withName(name)
    .withNetwork(network)
    .withCommand(["sh", "-c", command])
    .withWaitStrategy(Wait.forLogMessage(/done/))
    .start();
  started.push(container);
  return container;
};
// The label of every container of testcontainers: what the lab does is there before they are.
const lab = await dns.lab({ label: LABEL_TESTCONTAINERS_SESSION_ID });
try {
  await start("db", "echo done; sleep infinity");
  await dns.waitUntilResolves("db", "db");
  await lab.fault("db", { nxdomain: true });
  await lab.answer("served.test", "192.0.2.1");

  // Until dns11 has seen a container start, Docker's resolver answers it. The first query that dns11 sees already fails.
  const tape = await lab.record();
  await start("early", "echo done; while :; do nslookup db; sleep 0.1; done");
  await lab.asked("db", { by: "early", within: 60_000 });
  await tape.stop();
  const [first] = tape.queries.filter(({ container, name }) => container === "early" && name === "db");
  assert.equal(first.rcode, "NXDOMAIN");

  // A program that may not see Docker's answers waits for a name that only the lab knows.
  const untilServed = "until nslookup served.test >/dev/null 2>&1; do sleep 0.1; done";
  const app = await start("app", `${untilServed}; nslookup db >/tmp/first 2>&1; echo done; sleep infinity`);
  const { output } = await app.exec(["cat", "/tmp/first"]);
  assert.match(output, /NXDOMAIN/);
  console.log("as expected");
} finally {
  await lab.close();
  dns.close();
  for (const container of started) await container.stop();
  await network.stop();
}
