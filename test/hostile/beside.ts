// Attacks from outside the containers: a local user's connections, and containers that come and go.

import assert from "node:assert/strict";
import { once } from "node:events";
import { type Socket, connect } from "node:net";

import { LIMITS } from "../../src/base/limits.ts";
import { page } from "../support/program/scrape.ts";
import type { Attack, Rig } from "./rig.ts";
import { assertHostUp } from "./servers.ts";

const CONTAINERS = 6;

async function holdPages(rig: Rig): Promise<void> {
  const address = (await rig.instance.status()).metrics ?? "";
  const [host = "", port = ""] = address.split(":");
  const held: Socket[] = [];
  try {
    for (const word of ["", "G", "GET /metrics HTTP/1.1\r\nHost: a\r\nX: "]) {
      for (let count = 0; count < 2 * LIMITS.pageConnections; count++) {
        const socket = connect(Number(port), host);
        socket.on("error", () => undefined);
        held.push(socket);
        await once(socket, "connect");
        socket.write(word);
      }
      for (const path of ["/health", "/metrics"]) assert.equal((await page(address, path)).status, 200, word);
    }
    // As fast as possible.
    const pages = await Promise.allSettled(Array.from({ length: 100 }, async () => await page(address, "/metrics")));
    assert.ok(pages.some(({ status }) => status === "fulfilled"));
  } finally {
    for (const socket of held) socket.destroy();
  }
  assert.equal((await page(address, "/health")).status, 200);
}

// Each sends queries for as long as it lives, also while it ends.
async function comeAndGo(rig: Rig): Promise<void> {
  const run = async (index: number): Promise<string> => {
    const script = `for i in 1 2 3 4 5 6; do nslookup churn${index} 127.0.0.11 >/dev/null & nslookup n${4_000_000 + index}.ok.test 127.0.0.11 >/dev/null & done; sleep 0.1`;
    const args = ["run", "--rm", `--name=churn${index}`, "--network=attackers", ...rig.attackerArgs];
    const killed = index % 3 === 0 ? ["--detach"] : [];
    const id = await rig.engine.docker(...args, ...killed, "dns11-test", "sh", "-c", script);
    if (index % 3 === 0) await rig.engine.dockerCommand(["kill", id]);
    return id;
  };
  await Promise.all(Array.from({ length: CONTAINERS }, async (_, index) => await run(index)));
  const names = (await rig.instance.status()).containers.map(({ name }) => name);
  assert.ok(names.includes("served"), names.join(" "));
  await assertHostUp(rig);
}

export const BESIDE: readonly Attack[] = [
  { title: "a local user holds connections to the metrics server open", act: holdPages },
  { title: "containers that come and go while they send queries", act: comeAndGo },
];
