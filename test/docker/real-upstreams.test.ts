// Real nameservers: dnsmasq and unbound give the same replies directly and through dns11, in both modes. Their compression,
// truncation and EDNS were not written for a test.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type DigReply, digMany } from "../support/client/dig.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDnsmasq, startUnbound } from "../support/servers/real-server.ts";

const DNSMASQ = "10.53.0.1";
const UNBOUND = "10.53.0.2";
const MANY = 100;

const addresses = Array.from({ length: MANY }, (_, index) => `198.18.1.${index + 1}`);
// Three strings that together exceed a packet of 512 octets, and one record that exceeds 1232.
const texts = ["a", "b", "c"].map((letter) => letter.repeat(250));
const hugeText = Array.from({ length: 8 }, (_, index) => `"${String(index).repeat(250)}"`).join(" ");

const DNSMASQ_LINES = [
  "local=/test/",
  "local-ttl=300",
  "address=/wild.test/192.0.2.1",
  "address=/wild.test/2001:db8::1",
  "host-record=host.test,192.0.2.2,2001:db8::2",
  "cname=alias.test,host.test",
  `txt-record=text.test,${texts.join(",")}`,
  "mx-host=mail.test,host.test,10",
  "srv-host=_sip._tcp.test,host.test,5060,1,2",
  "ptr-record=2.2.0.192.in-addr.arpa,host.test",
  "caa-record=host.test,0,issue,ca.test",
  "dns-rr=private.test,65280,deadbeef",
  ...addresses.map((address) => `host-record=many.test,${address}`),
];

const UNBOUND_LINES = [
  "local-zone: test. static",
  'local-data: "test. SOA ns.test. admin.test. 1 7200 3600 1209600 30"',
  'local-data: "host.test. 300 A 192.0.2.2"',
  'local-data: "host.test. 300 AAAA 2001:db8::2"',
  'local-data: "host.test. 300 CAA 0 issue ca.test"',
  `local-data: 'text.test. 300 TXT ${texts.map((text) => `"${text}"`).join(" ")}'`,
  `local-data: 'huge.test. 300 TXT ${hugeText}'`,
  'local-data: "mail.test. 300 MX 10 host.test."',
  'local-data: "_sip._tcp.test. 300 SRV 1 2 5060 host.test."',
  'local-data: "private.test. 300 TYPE65280 \\# 4 deadbeef"',
  "local-zone: 2.0.192.in-addr.arpa. nodefault",
  'local-data-ptr: "192.0.2.2 host.test"',
  ...addresses.map((address) => `local-data: "many.test. 300 A ${address}"`),
];

// The EDNS sizes and transports of the client.
const CLIENT_OPTIONS = [
  ["+noedns"],
  ["+bufsize=512"],
  ["+bufsize=1232"],
  ["+bufsize=4096", "+dnssec"],
  ["+tcp"],
  ["+noedns", "+tcp"],
];
const QUESTIONS: readonly (readonly string[])[] = [
  ...["A", "AAAA", "CAA", "MX", "TXT"].map((type) => ["host.test", type]),
  ...["A", "AAAA", "TXT"].map((type) => ["x.y.wild.test", type]),
  ["alias.test", "A"],
  ["text.test", "TXT"],
  ["huge.test", "TXT"],
  ["many.test", "A"],
  ["many.test", "AAAA"],
  ["mail.test", "MX"],
  ["_sip._tcp.test", "SRV"],
  ["private.test", "TYPE65280"],
  ["nobody.test", "A"],
  ["-x", "192.0.2.2"],
];
const QUERIES = CLIENT_OPTIONS.flatMap((options) => QUESTIONS.map((question) => [...question, ...options]));

let engine: Engine;
const shared = new SharedDns11(() => engine);
// Each server with its container, and its own replies.
const servers: { readonly server: string; readonly container: Container; readonly direct: readonly string[] }[] = [];

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${DNSMASQ}\n` });
  await startDnsmasq(engine, { address: DNSMASQ, lines: DNSMASQ_LINES });
  await startUnbound(engine, { address: UNBOUND, lines: UNBOUND_LINES });
  await createNetwork(engine, "n1");
  for (const server of [DNSMASQ, UNBOUND]) {
    const container = await runContainer(engine, { networks: ["n1"], dns: server === DNSMASQ ? [] : [server] });
    const direct = (await digMany(engine, server, QUERIES)).map(replyText);
    servers.push({ server, container, direct });
  }
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

for (const [mode, setting] of [
  ["default", "strict: false"],
  ["strict", "strict: true"],
] as const) {
  test(`${mode} mode: replies of dnsmasq and unbound arrive unchanged`, async (context) => {
    await shared.under(setting);
    const differences: string[] = [];
    for (const { server, container, direct } of servers) {
      const through = (await digMany(container, "127.0.0.11", QUERIES)).map(replyText);
      for (const [index, words] of QUERIES.entries()) {
        if (direct[index] === through[index]) continue;
        const [expected, got] = [direct[index], through[index]];
        differences.push(`${server} ${words.join(" ")}:\n  directly: ${expected}\n  through:  ${got}`);
      }
    }
    assert.equal(differences.join("\n\n"), "");
    context.diagnostic(`${QUERIES.length * servers.length} questions`);
  });
}

// The content of a reply, without the order of its records and their TTLs.
function replyText({ status, answer, authority }: DigReply): string {
  const records = (all: DigReply["answer"]): string[] => {
    return all.map(({ name, type, data }) => `${name} ${type} ${data}`).toSorted();
  };
  return JSON.stringify([status, records(answer), records(authority)]);
}
