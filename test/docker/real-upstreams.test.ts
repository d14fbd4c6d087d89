// Real nameservers: dnsmasq and unbound give the same replies directly and through dns11, in both modes. Their compression,
// truncation and EDNS were not written for a test.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type DigReply, dig } from "../support/client/dig.ts";
import { startDns11 } from "../support/program/dns11.ts";
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
const AT_ONCE = 8;

for (const [mode, args] of [
  ["default", []],
  ["strict", ["--strict"]],
] as const) {
  test(`${mode} mode: replies of dnsmasq and unbound arrive unchanged`, { timeout: 120_000 }, async (context) => {
    await using engine = await startEngine({ suite: "forky", resolvConf: `nameserver ${DNSMASQ}\n` });
    await using _dnsmasq = await startDnsmasq(engine, { address: DNSMASQ, lines: DNSMASQ_LINES });
    await using _unbound = await startUnbound(engine, { address: UNBOUND, lines: UNBOUND_LINES });
    await createNetwork(engine, "n1");
    const ofDnsmasq = await runContainer(engine, { networks: ["n1"] });
    const ofUnbound = await runContainer(engine, { networks: ["n1"], dns: [UNBOUND] });
    await using _dns11 = await startDns11(engine, { args });
    const differences: string[] = [];
    const left = [ofDnsmasq, ofUnbound].flatMap((container) =>
      CLIENT_OPTIONS.flatMap((options) =>
        QUESTIONS.map((question) => ({ container, words: [...question, ...options] })),
      ),
    );
    const total = left.length;
    const queryNext = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) {
        const { container, words } = next;
        const server = container === ofDnsmasq ? DNSMASQ : UNBOUND;
        differences.push(...(await differenceOf(engine, container, server, words)));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, queryNext));
    assert.equal(differences.join("\n\n"), "");
    context.diagnostic(`${total} questions`);
  });
}

async function differenceOf(engine: Engine, container: Container, server: string, words: string[]): Promise<string[]> {
  const direct = await dig(engine, `@${server}`, ...words);
  const through = await dig(container, "+time=5", ...words);
  assert.notEqual(direct.status, "", `${server} does not reply to ${words.join(" ")}`);
  const [expected, got] = [replyText(direct), replyText(through)];
  return expected === got ? [] : [`${server} ${words.join(" ")}:\n  directly: ${expected}\n  through:  ${got}`];
}

// The content of a reply, without the order of its records and their TTLs.
function replyText({ status, answer, authority }: DigReply): string {
  const records = (all: DigReply["answer"]): string[] => {
    return all.map(({ name, type, data }) => `${name} ${type} ${data}`).toSorted();
  };
  return JSON.stringify([status, records(answer), records(authority)]);
}
