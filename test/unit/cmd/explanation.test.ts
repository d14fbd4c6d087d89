// Proves the text of `dns11 explain` for each kind of verdict, at 80 and 160 columns, as captured.

import assert from "node:assert/strict";
import { test } from "node:test";

import { explanationText } from "../../../cmd/text/explanation-text.ts";
import type { Cause } from "../../../src/api/causes.ts";
import type { Explanation, AddressOwner } from "../../../src/api/names.ts";
import type { RecordText, ReplyText } from "../../../src/base/model/reply-text.ts";
import { PLAIN } from "../../../cmd/text/terminal.ts";
import { assertGolden } from "../support/golden.ts";

const SERVER = "host(10.99.0.1)";
const STEPS: Explanation["steps"] = [
  { layer: "names", isAnswer: false, why: 'no container is called "db" on network "shop_front"' },
  { layer: "reverse", isAnswer: false, why: "not a reverse name" },
  { layer: "route", isAnswer: false, why: `no domain-specific route; default upstreams: ${SERVER}` },
  { layer: "special", isAnswer: false, why: "not a special name" },
  { layer: "cache", isAnswer: false, why: "miss" },
  {
    layer: "servers",
    isAnswer: true,
    why: `answered by ${SERVER}`,
    events: [
      { atMs: 0.2, server: SERVER, what: "sent over udp: first in order" },
      { atMs: 1.1, server: SERVER, what: "answered NXDOMAIN" },
    ],
  },
];

const OTHER_NETWORK: Cause = {
  code: "other-network",
  sentence: '"db" is container shop-db-1 on network shop_back; shop-web-1 is not on shop_back',
  fix: "docker network connect shop_back shop-web-1",
  lastingFix: { file: "/srv/shop/compose.yaml", service: "web", key: "services.web.networks", change: 'add "back"' },
  isBreaking: true,
};

function aReply(parts: Partial<ReplyText> = {}): ReplyText {
  return {
    rcode: "NOERROR",
    isTruncated: false,
    isAuthoritative: false,
    answers: [],
    authority: [],
    additional: [],
    extendedErrors: [],
    isUnreadable: false,
    ...parts,
  };
}

function explained(parts: Partial<Explanation> = {}): Explanation {
  return {
    container: { id: "c1", name: "shop-web-1" },
    question: { name: "db", type: "A" },
    networks: ["shop_front"],
    steps: STEPS,
    answeredBy: "servers",
    server: SERVER,
    ms: 1.14,
    reply: aReply({ rcode: "NXDOMAIN" }),
    owners: [],
    causes: [],
    hints: [],
    notServed: null,
    notQueried: null,
    ...parts,
  };
}

/** An answer from the names of containers. */
function local(answers: readonly RecordText[], parts: Partial<Explanation> = {}): Explanation {
  const steps: Explanation["steps"] = [{ layer: "names", isAnswer: true, why: 'container on network "shop_back"' }];
  return explained({ steps, answeredBy: "names", server: null, ms: 0.08, reply: aReply({ answers }), ...parts });
}

function a(data: string, name = "db."): RecordText {
  return { name, type: "A", ttl: 5, data };
}

function anAlias(name: string, data: string): RecordText {
  return { name, type: "CNAME", ttl: 300, data };
}

function owner(address: string, container: string, project: string | null): AddressOwner {
  return { address, container, network: "shop_back", project, service: project === null ? null : "db" };
}

function cause(code: Cause["code"], sentence: string, parts: Partial<Cause> = {}): Cause {
  return { ...OTHER_NETWORK, code, sentence, fix: null, lastingFix: null, isBreaking: false, ...parts };
}

const VERDICTS: readonly (readonly [title: string, explanation: Explanation, isVerbose?: boolean])[] = [
  ["a name on another network", explained({ causes: [OTHER_NETWORK] })],
  ["a name on another network, with -v", explained({ causes: [OTHER_NETWORK] }), true],
  ["one address", local([a("172.19.0.3")], { owners: [owner("172.19.0.3", "shop-db-1", "shop")] })],
  [
    "two services with one name",
    local([a("172.19.0.6"), a("172.19.0.2")], {
      owners: [owner("172.19.0.6", "other-db-1", "other"), owner("172.19.0.2", "shop-db-1", "shop")],
      causes: [
        cause(
          "ambiguous",
          '"db" is 2 services on network shop_back: shop-db-1 (project shop), other-db-1 (project other); answers alternate',
          { fix: "docker network disconnect shop_back other-db-1", isBreaking: true },
        ),
      ],
    }),
  ],
  [
    "an upstream's wildcard",
    explained({
      reply: aReply({ answers: [a("198.51.1.3")] }),
      causes: [
        {
          ...OTHER_NETWORK,
          code: "shadowed",
          sentence: `the answer is not a container's: an upstream server answers for "db"; ${OTHER_NETWORK.sentence}`,
        },
      ],
    }),
  ],
  [
    "records of the outside world",
    explained({
      question: { name: "example.org", type: "MX" },
      reply: aReply({
        answers: [
          { name: "example.org.", type: "MX", ttl: 300, data: "10 mail.example.org." },
          { name: "example.org.", type: "MX", ttl: 300, data: "20 backup.example.org." },
        ],
      }),
    }),
  ],
  [
    "an alias",
    explained({
      question: { name: "www.example.org", type: "A" },
      reply: aReply({
        answers: [anAlias("www.example.org.", "edge.example.net."), a("192.0.2.7", "edge.example.net.")],
      }),
    }),
  ],
  [
    "an alias of a name that does not exist",
    explained({
      question: { name: "www.example.org", type: "A" },
      reply: aReply({ rcode: "NXDOMAIN", answers: [anAlias("www.example.org.", "gone.example.net.")] }),
    }),
  ],
  [
    "an alias of a name without such records",
    explained({
      question: { name: "www.example.org", type: "A" },
      reply: aReply({ answers: [anAlias("www.example.org.", "mail.example.net.")] }),
    }),
  ],
  [
    "no records of the type",
    local([], {
      causes: [cause("no-ipv4", '"db" is container shop-db-1, which has an IPv6 address only: query type AAAA')],
    }),
  ],
  [
    "all servers down",
    explained({
      question: { name: "api.example.org", type: "A" },
      answeredBy: null,
      server: null,
      ms: 4012.3,
      steps: STEPS.map((step) => ({ ...step, isAnswer: false })),
      reply: aReply({ rcode: "SERVFAIL" }),
      causes: [
        cause("upstreams-down", `all 1 upstream servers are down (${SERVER}): connection refused`, {
          fix: "dns11 upstreams",
        }),
        cause(
          "search-list",
          'programs in shop-web-1 then query "api.example.org.corp.example", because of the search list in its resolv.conf (not with musl)',
        ),
      ],
    }),
  ],
  [
    "no reply",
    explained({
      steps: [],
      answeredBy: null,
      server: null,
      ms: 4500,
      reply: null,
      container: { id: "c", name: "side", sharedWith: "web" },
    }),
  ],
  [
    "not served",
    explained({
      container: { id: "c", name: "plain" },
      steps: [],
      answeredBy: null,
      server: "10.99.0.1",
      notServed: 'dns11 does not serve "plain": it is on no user-defined network',
      causes: [{ ...OTHER_NETWORK, fix: "docker network connect shop_back plain", lastingFix: null }],
    }),
  ],
  [
    "not queried",
    explained({
      steps: [],
      answeredBy: null,
      server: null,
      reply: null,
      notServed: "dns11 is not running",
      notQueried: "Missing capabilities: CAP_SYS_ADMIN (to enter the containers' network namespaces)",
      causes: [{ ...OTHER_NETWORK, lastingFix: null }],
    }),
  ],
];

for (const width of [80, 160]) {
  test(`each verdict at ${width} columns is as captured`, () => {
    const display = { ...PLAIN, width };
    const texts = VERDICTS.map(
      ([title, each, isVerbose = false]) => `--- ${title}\n${explanationText(each, isVerbose, display)}`,
    );
    const text = texts.join("\n");
    assertGolden(`explain.${width}`, text);
    const tooLong = text.split("\n").filter((line) => line.length > width && !line.startsWith("  fix "));
    assert.deepEqual(tooLong, []);
  });
}

test("the first three lines are the verdict, the cause and the fix", () => {
  const [verdict, why, fix] = explanationText(explained({ causes: [OTHER_NETWORK] }), false, PLAIN).split("\n");
  assert.equal(verdict, "db (A) in shop-web-1: NXDOMAIN");
  assert.equal(why, `  why       ${OTHER_NETWORK.sentence}`);
  assert.equal(fix, "  fix       docker network connect shop_back shop-web-1");
});

test("verdicts have colours: red for a failure, yellow for a doubtful answer, green for a good one", () => {
  const display = { width: 100, paint: (text: string, colour: string) => `<${colour}>${text}</>` };
  const verdict = (each: Explanation): string => explanationText(each, false, display).split("\n")[0] ?? "";
  assert.match(verdict(explained()), /<red>NXDOMAIN<\/>$/);
  assert.match(verdict(local([a("172.19.0.3")])), /<green>172\.19\.0\.3<\/>$/);
  assert.match(verdict(local([a("172.19.0.3")], { causes: [OTHER_NETWORK] })), /<yellow>/);
});

test("control characters of names, labels and records are escaped", () => {
  const evil = "\u001B[2J\nfix  rm";
  const shown = local([a("172.19.0.3"), { name: evil, type: "A", ttl: 1, data: evil }], {
    container: { id: "c", name: evil, sharedWith: evil },
    networks: [evil],
    owners: [owner("172.19.0.3", evil, evil)],
    causes: [cause("ambiguous", evil, { fix: evil })],
    steps: [{ layer: "names", isAnswer: true, why: evil }],
    notServed: evil,
  });
  for (const width of [80, 160]) {
    const text = explanationText(shown, true, { ...PLAIN, width });
    assert.doesNotMatch(text, /[^\P{Cc}\n]/u);
    assert.doesNotMatch(text, /^fix {2}rm/m);
  }
});
