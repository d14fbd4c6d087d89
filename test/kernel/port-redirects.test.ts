// Proves which users of a port of a namespace are found: rules that redirect it, as written by iptables and nft, and sockets
// that listen there.

import assert from "node:assert/strict";
import { openSync, closeSync } from "node:fs";
import { after, before, test } from "node:test";

import { listenersAt } from "../../src/container/namespace/listeners.ts";
import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { chainsRedirecting } from "../../src/container/rules/port-redirects.ts";
import { NetlinkMemory } from "../../src/kernel/netlink-socket.ts";
import { Netns } from "../support/rig/netns.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";

const runner = new NamespaceRunner();
const memory = new NetlinkMemory();
let netns: Netns;
let fd = -1;

before(async () => {
  netns = await Netns.create();
  fd = openSync(netns.netnsPath, "r");
});
after(async () => {
  closeSync(fd);
  runner.close();
  await netns[Symbol.asyncDispose]();
});

async function nft(...lines: string[]): Promise<void> {
  const { code, stderr } = await netns.enter("nft", ["-f", "-"], { input: `flush ruleset\n${lines.join("\n")}\n` });
  assert.equal(code, 0, stderr);
}

const leading = (): string[] => runner.within(fd, () => chainsRedirecting(memory, 53));

test("a rule that redirects port 53 is found, of nft and of iptables", async () => {
  await nft("table ip a { chain b { type nat hook prerouting priority -100; udp dport 53 dnat to 192.0.2.1:53; }; }");
  assert.deepEqual(leading(), ["a b"]);
  await nft();
  const args = ["-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "53", "-j", "DNAT", "--to", "192.0.2.1:53"];
  assert.equal((await netns.enter("iptables-nft", args)).code, 0);
  assert.deepEqual(leading(), ["nat PREROUTING"]);
});

test("other ports, rules without DNAT, and Docker's and our own rules are not", async () => {
  await nft(
    "table ip a { chain b { type nat hook prerouting priority -100; udp dport 5353 dnat to 192.0.2.1:53; }; }",
    "table ip c { chain d { type filter hook input priority 0; udp dport 53 accept; }; }",
    "table ip docker-dns { chain e { type nat hook output priority -100; udp dport 53 dnat to 127.0.0.11:4000; }; }",
    "table ip dns11 { chain f { type nat hook output priority -101; udp dport 53 dnat to 127.0.0.11:4001; }; }",
    "table ip nat { chain DOCKER_OUTPUT { udp dport 53 dnat to 127.0.0.11:4000; }; }",
    "table ip g { chain h { type nat hook prerouting priority -100; udp sport 53 dnat to 192.0.2.1:53; }; }",
  );
  assert.deepEqual(leading(), []);
});

test("a socket that receives what is sent to the address is found, also one on all addresses", async () => {
  const at = (address: string, port: number): string[] => runner.within(fd, () => listenersAt(address, port));
  assert.deepEqual(at("127.0.0.1", 5399), []);
  await using _ = await startDnsmasq(netns, { address: "127.0.0.1", port: 5399, lines: [] });
  assert.deepEqual([at("127.0.0.1", 5399), at("127.0.0.2", 5399)], [["udp", "tcp"], []]);
  // On all addresses of both families; on those of IPv6 alone; with one peer.
  const program = `
    const { createSocket } = require("node:dgram");
    const bind = (type, ...to) => new Promise((done) => { const socket = createSocket(type).bind(...to, () => done(socket)); });
    void (async () => {
      await bind("udp6", 5398);
      await bind({ type: "udp6", ipv6Only: true }, 5397);
      (await bind("udp4", 5396, "127.0.0.1")).connect(9, "127.0.0.1", () => console.log("all"));
    })();
    process.stdin.on("end", process.exit).resume()`;
  let [end, begin] = [(): void => undefined, (): void => undefined];
  const until = new Promise<void>((resolve) => (end = resolve));
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const others = netns.enter(process.execPath, ["-e", program], { until, onOutput: () => begin() });
  await Promise.race([begun, others]);
  assert.deepEqual([at("127.0.0.1", 5398), at("::1", 5398)], [["udp"], ["udp"]]);
  assert.deepEqual([at("127.0.0.1", 5397), at("::1", 5397)], [[], ["udp"]]);
  assert.deepEqual([at("127.0.0.1", 5396), at("::1", 5396)], [[], []]);
  end();
  await others;
});
