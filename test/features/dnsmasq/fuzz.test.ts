// Fuzz of the files of a dnsmasq folder, from fragments that mean something and bytes that do not. Each is read or refused with a short
// reason.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readDnsmasqFiles } from "../../../src/features/dnsmasq/files.ts";
import { Random } from "../../fuzz/random.ts";
import { INPUTS, SEED, routesOf } from "../../fuzz/routes.ts";

const DNSMASQ_WORDS = [
  ..."server= local= address= rev-server= host-record= cname= ptr-record= txt-record= srv-host= mx-host= resolv-file=".split(
    " ",
  ),
  ..."all-servers domain-needed bogus-priv no-resolv local-ttl= cache-size= conf-dir= dhcp-range= strict-order servers-file=".split(
    " ",
  ),
  ..."/cluster.local/ /in-addr.arpa/ /#/ // / # 172.30.0.1 10.0.0.1#5353 fd00::1 127.0.0.1 10.0.0.0/24 eth0 @eth0 container:web".split(
    " ",
  ),
  ...'web.test *.shop.test a.b , = " \\ ; 0 60 4294967296 -1 \u0000 é'.split(" "),
  "x".repeat(64),
  "x.".repeat(130),
];

function dnsmasq(random: Random): string {
  return Array.from({ length: random.below(random.once(4) ? 12 : 3) }, () => {
    const words = Array.from({ length: 1 + random.below(4) }, () => random.pick(DNSMASQ_WORDS));
    return random.once(20) ? random.bytes(random.below(80)).toString("latin1") : words.join(random.once(8) ? " " : "");
  }).join("\n");
}

test("files of a dnsmasq folder", () => {
  let read = 0;
  for (let index = 0; index < INPUTS; index++) {
    const random = new Random(SEED, index);
    const files = Array.from({ length: 1 + random.below(3) }, (_, at) => ({
      path: `${at}.conf`,
      text: dnsmasq(random),
    }));
    const routes = routesOf(() => readDnsmasqFiles(files).values.dns ?? [], index, /^\d\.conf:\d+: /);
    if (routes !== undefined) read += 1;
  }
  assert.ok(read > INPUTS / 20 && read < INPUTS, `${read} of ${INPUTS} were read`);
});
