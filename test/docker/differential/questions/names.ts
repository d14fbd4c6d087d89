// Questions about container names: in every spelling, and from every container for which the answer may differ.

import { TYPE } from "../octets.ts";
import { CROWD_LONG_ALIAS, NETWORKS, ODD_ALIASES } from "../topology.ts";
import { type Project, get, nameOf } from "../project.ts";
import { type Question, byTcp, byUdp, query } from "../question.ts";

const { net1, dotted, dual, six, inner } = NETWORKS;

export function nameQuestions(project: Project): Question[] {
  return [
    ...manyTypes(project),
    ...questionsFrom("plain", [...formsOf(project, "alpha", net1), ...formsOf(project, "beta", net1)]),
    ...questionsFrom("plain", ODD_ALIASES.flatMap(spellings)),
    ...questionsFrom("plain", plainNames(project)),
    ...questionsFrom("linker", LINKED_NAMES),
    ...["multi", "preferring", "everywhere", "innerOnly", "sixOnly", "dotted", "fromBridge"].flatMap((from) => {
      return questionsFrom(from, [...networkNames(), ...formsOf(project, "everywhere", net1)]);
    }),
    ...questionsFrom("signName", oddNetworks()),
    ...crowdQuestions(),
  ];
}

function questionsFrom(from: string, names: readonly string[]): Question[] {
  return [...new Set(names)].flatMap((name) => [
    byUdp(from, `A ${name}`, query({ name, type: TYPE.A })),
    byUdp(from, `AAAA ${name}`, query({ name, type: TYPE.AAAA })),
    byTcp(from, `MX ${name}`, query({ name, type: TYPE.MX })),
  ]);
}

function manyTypes(project: Project): Question[] {
  const id = get(project, "alpha").Id;
  const names = [
    "alpha",
    "Al1",
    id.slice(0, 12),
    "hostA",
    "alpha.net1",
    "Beta",
    "c1.net1",
    "nobody",
    "x1.ok.test",
    ".",
  ];
  const types = [...Object.values(TYPE), 0, 3, 99, 254, 65535];
  return names.flatMap((name) => types.map((type) => byUdp("plain", `type ${type} ${name}`, query({ name, type }))));
}

function formsOf(project: Project, role: string, network: string): string[] {
  const { Id: id } = get(project, role);
  const name = nameOf(project, role);
  const short = id.slice(0, 12);
  const bases = [name, name.toUpperCase(), name.toLowerCase(), short, short.toUpperCase(), id];
  const tails = ["", `.${network}`, `.${network.toUpperCase()}`, `.${network}.${network}`, ".nonet", ".net1.Dual"];
  return bases.flatMap((base) => tails.map((tail) => base + tail));
}

// For wireName: as it is, and with every octet escaped that may have a special meaning.
function spellings(alias: string): string[] {
  const octets = [...Buffer.from(alias, "utf8")];
  const labels = alias.split(".").map((label) => [...Buffer.from(label, "utf8")].map(escaped).join(""));
  const unescaped = alias.includes("\\") ? [alias, `${alias}.net1`] : [];
  const whole = octets.map(escaped).join("");
  return [whole, labels.join("."), `${labels.join(".")}.net1`, ...unescaped].filter((name) => fits(name));
}

function escaped(octet: number): string {
  return /[A-Za-z0-9_-]/.test(String.fromCharCode(octet)) && octet < 0x7f
    ? String.fromCharCode(octet)
    : `\\${String(octet).padStart(3, "0")}`;
}

function fits(name: string): boolean {
  return name
    .replaceAll(/\\\d{3}/g, "x")
    .split(".")
    .every((label) => label.length < 64);
}

function plainNames(project: Project): string[] {
  const { Id: id } = get(project, "unnamed");
  const name = nameOf(project, "unnamed");
  const roles = ["longName", "wideName", "dotName", "signName"].map((role) => nameOf(project, role));
  return [
    ...[
      "hostA",
      "hosta",
      "HOSTA.net1",
      "al1",
      "AL1",
      "under_score.net1",
      "k",
      "K",
      "kk",
      "KK",
      "i",
      "ix",
      "IX",
      "A",
      "a",
    ],
    ...["fq.dn.example", "FQ.dn.Example", "fq", "fq.dn", "fq.dn.example.net1", "upper", "UPPER", "Upper.net1"],
    ...["shared", "SHARED", "shared.net1", "gone", "stopped", "paused", "PAUSED.net1", "before", "after", "kept"],
    ...["plain", "localhost", "plain.localhost", "plain.local", "host.docker.internal", "gateway.docker.internal"],
    ...[name, `${name}.net1`, id.slice(0, 12), id.slice(0, 11), id.slice(0, 13), "unnamed", "bridged", "bridged-too"],
    ...[
      ...roles,
      "long",
      "d",
      "d.",
      "net1",
      "net1.net1",
      "br.net1",
      "c1",
      "c1.net1",
      "c1.net1.br.net1",
      "server",
      "inner-only",
    ],
    ...[
      `${"a.".repeat(126)}a`,
      `${"a.".repeat(50)}alpha.net1`,
      "alpha.net1.example",
      "alpha.com",
      ".",
      "x.ok.test",
      "com",
    ],
    ...["alpha\\046net1", "alpha\\.net1", "alpha\\000", "\\097lpha", "alpha\\046", "\\.", "a\\.b.net1", "x\\.y.net1"],
  ].filter(fits);
}

const LINKED_NAMES = [
  ...["LnkA", "lnka", "LNKA", "LnkA.net1", "lnka.net1", "LnkA.NET1", "LnkA.Dual", "LnkA.net1.net1", "UPPER.link"],
  ...["upper.link", "UPPER.link.net1", "beta", "BETA", "Beta", "Beta.net1", "beta.net1", "beta.Dual", "BETA.Dual"],
  ...["Dangling", "dangling", "nosuch", "Al1", "al1", "AL1.net1", "byhost", "twice", "TWICE", "sp\\032ace", "sp ace"],
  ...["it's", "it\\'s", "legacy", "/c1/legacy", "foo", "net1.Dual", "net1", "NET1", "escaped", "dots", "many", "alpha"],
  ...[
    "OnDual",
    "ondual",
    "OnDual.Dual",
    "OnDual.net1",
    "OnDual.dual",
    ".",
    "toempty",
    "alpha.net1",
    "shared",
    "nobody",
  ],
];

function networkNames(): string[] {
  const networks = [net1, dotted, dual, six, inner];
  return [
    ...networks.flatMap((network) => [
      `ev.${network}`,
      `on-${network}`,
      `everywhere.${network}`,
      `EVERYWHERE.${network}`,
    ]),
    ...["ev", "shared", "shared.Dual", "shared.six", "shared.dual", "c1.net1", "c1.net1.br.net1", "C1.net1.br.net1"],
    ...["c1.net1.br.NET1", "c1.net1.br.net1.google.com", "c1", "c1.br.net1", "dotted.br.net1", "onodd", "onend.end"],
    ...[
      "onend.end.",
      "onend.end\\.",
      "server",
      "server.inner",
      "six-only",
      "inner-only",
      "alpha",
      "bridged-too",
      "bridged",
    ],
    ...["bridged-too.bridge", "from-bridge", "everywhere.bridge", "nobody"],
  ];
}

function oddNetworks(): string[] {
  const { odd, escaped: withEscapes, halfEscaped, endsInDot } = NETWORKS;
  return [odd, withEscapes, halfEscaped, endsInDot].flatMap((network) => [
    `s_-.x.${network}`,
    `s_-.x.${[...Buffer.from(network)].map(escaped).join("")}`,
  ]);
}

function crowdQuestions(): Question[] {
  const names = ["crowd", "CROWD.Dual", CROWD_LONG_ALIAS, CROWD_LONG_ALIAS.toUpperCase()];
  return ["crowd0", "linker", "plain"].flatMap((from) => questionsFrom(from, names));
}
