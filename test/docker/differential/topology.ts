// The topology of the differential test: every network and container, with common and with odd names, aliases and links,
// as far as Docker accepts them.

import type { ContainerOptions } from "../../support/engine/container.ts";

// The addresses of the upstream servers, in the order in which every resolv.conf and most lists name them.
export const SERVERS = ["10.53.0.1", "10.53.0.2", "10.53.0.3", "10.53.0.4", "fd53::1"] as const;
// The host exists, but nothing listens there.
export const CLOSED_SERVER = "10.53.0.9";
// Unreachable: packets to it are lost.
export const LOST_SERVER = "192.0.2.53";

export const NETWORKS = {
  net1: "net1",
  dotted: "br.net1",
  dual: "Dual",
  six: "six",
  inner: "inner",
  odd: "Ö d;'q",
  escaped: "es\\195\\.c",
  halfEscaped: "end\\",
  endsInDot: "end.",
  wide: `${"w".repeat(60)}.`.repeat(4).slice(0, -1),
} as const;

const CROWD = 45;
export const CROWD_LONG_ALIAS = `${"crowd-of-many-".repeat(4)}x.${"y".repeat(60)}.${"Z".repeat(60)}`;

const { net1, dotted, dual, six, inner, odd, escaped, halfEscaped, endsInDot, wide } = NETWORKS;

export const ODD_ALIASES = [
  "",
  "a b",
  "it's",
  "es\\032c",
  "esc\\ aped",
  "a\\.b",
  'q"q',
  "é",
  "\\195\\169",
  "\\195\\169\\.x.y",
  "\\065",
  "K\u212a",
  "\u0130x",
  "dotend.",
  ".dotfirst",
  "two..dots",
  "*",
  "x/y",
  "x:y",
  "192.0.2.77",
  "under_score",
  "_sip._tcp",
  "-dash-",
  "back\\slash",
  "back\\\\slash",
  "\\",
  "new\nline",
  "\\010line",
  "tab\ttab",
  "semi;colon",
  "semi\\;colon",
  "at\\@at",
  "(round)",
  "\\(round\\)",
  "l".repeat(63),
  "L".repeat(64),
  `${"m".repeat(63)}.${"n".repeat(63)}.${"o".repeat(63)}.${"p".repeat(61)}`,
  `${"m".repeat(63)}.${"n".repeat(63)}.${"o".repeat(63)}.${"p".repeat(62)}`,
  "localhost",
  "alias.ok.test",
  "x.nx.test",
  "net1",
  "deep.net1",
  "com",
] as const;

const LINKS = [
  "alpha:LnkA",
  "alpha:UPPER.link",
  "nosuch:beta",
  "nosuch:Dangling",
  "Al1",
  "hostA:byhost",
  "alpha:twice",
  "beta:twice",
  "alpha:sp ace",
  "alpha:sp\\ ace",
  "alpha:it's",
  "alpha:it\\'s",
  "alpha:",
  "/alpha:/c1/legacy",
  "alpha:net1.Dual",
  "a\\.b:escaped",
  "dotend.:dots",
  ":toempty",
  "shared:many",
];

// In start order; the containers of one stage start together.
export const STAGES: readonly Readonly<Record<string, ContainerOptions>>[] = [
  {
    alpha: { name: "alpha", hostname: "hostA", networks: [{ name: net1, aliases: ["Al1", "shared", ...ODD_ALIASES] }] },
    beta: {
      name: "Beta",
      hostname: "fq.dn.example",
      networks: [
        { name: net1, aliases: ["shared", "UPPER"] },
        { name: dual, aliases: ["shared", "SHARED"] },
      ],
    },
    everywhere: {
      name: "everywhere",
      hostname: "odd host's",
      networks: [net1, dual, six, inner, dotted].map((name) => ({ name, aliases: ["ev", `on-${name}`] })),
    },
    dotted: { name: "c1.net1", networks: [{ name: dotted, aliases: ["dotted", "c1"] }] },
    unnamed: { networks: [{ name: net1, aliases: ["unnamed"] }] },
    longName: { name: "l".repeat(70), networks: [{ name: net1, aliases: ["long"] }, odd] },
    wideName: { name: `${"v".repeat(60)}.`.repeat(4).slice(0, -1), networks: [wide, net1, endsInDot] },
    dotName: {
      name: "d..d.",
      networks: [net1, { name: odd, aliases: ["onodd"] }, { name: endsInDot, aliases: ["onend"] }],
    },
    signName: {
      name: "s_-.x",
      networks: [odd, escaped, halfEscaped, endsInDot, { name: dual, ip6: "fd11:0:d::" }],
    },
    server: { name: "server", networks: [inner] },
    paused: { name: "paused", networks: [net1] },
    stopped: { name: "stopped", networks: [{ name: net1, aliases: ["shared", "gone"] }] },
    renamed: { name: "before", networks: [{ name: net1, aliases: ["kept"] }] },
    onBridge: { name: "bridged" },
  },
  {
    plain: { name: "plain", networks: [net1] },
    linker: {
      name: "linker",
      networks: [
        { name: net1, links: LINKS },
        { name: dual, links: ["beta:OnDual", "Beta:net1"] },
      ],
    },
    multi: { name: "multi", networks: [six, inner, dual, dotted, net1] },
    preferring: { name: "preferring", networks: [net1], args: ["--network", `name=${inner},gw-priority=5`] },
    sixOnly: { name: "six-only", networks: [{ name: six, aliases: ["shared"] }] },
    innerOnly: { name: "inner-only", networks: [inner] },
    ndots0: { name: "ndots0", networks: [net1], args: ["--dns-option", "ndots:0"] },
    ndots5: { name: "ndots5", networks: [dual], args: ["--dns-option", "timeout:1", "--dns-option", "ndots:5"] },
    ndotsBad: { name: "ndots-bad", networks: [net1], args: ["--dns-option", "ndots:many"] },
    given: { name: "given", networks: [net1], dns: SERVERS.slice(0, 4) },
    itself: { name: "itself", networks: [net1], dns: ["127.0.0.11"] },
    itselfToo: { name: "itself-too", networks: [net1], dns: ["127.0.0.11", SERVERS[1], SERVERS[2], SERVERS[3]] },
    loopback: { name: "loopback", networks: [net1], dns: ["127.0.0.1", "127.0.0.2"] },
    closedFirst: { name: "closed-first", networks: [net1], dns: [CLOSED_SERVER, SERVERS[1]] },
    lostFirst: { name: "lost-first", networks: [net1], dns: [LOST_SERVER, SERVERS[1]] },
    sixServer: { name: "six-server", networks: [dual], dns: [SERVERS[4]] },
    bothServers: { name: "both-servers", networks: [net1], dns: [SERVERS[4], SERVERS[1]] },
    fromBridge: { name: "from-bridge" },
    ...crowd(),
  },
];

// Many containers with the same alias, for answers that do not fit into a reply.
function crowd(): Record<string, ContainerOptions> {
  const aliases = ["crowd", CROWD_LONG_ALIAS];
  return Object.fromEntries(
    Array.from({ length: CROWD }, (_, index) => [`crowd${index}`, { networks: [{ name: dual, aliases }] }]),
  );
}
