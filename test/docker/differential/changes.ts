// Changes to the project while both resolvers run, and the questions after each round: about names that were added, removed
// or moved.

import type { Engine } from "../../support/engine/engine.ts";
import { NETWORKS } from "./topology.ts";
import { TYPE } from "./octets.ts";
import { type Project, get, nameOf } from "./project.ts";
import { type Question, byTcp, byUdp, query } from "./question.ts";

const { net1, dotted, dual, inner } = NETWORKS;

// Arguments of the docker command; the changes of one round run at the same time.
const ROUNDS: readonly (readonly string[])[][] = [
  [
    ["rename", "alpha", "zeta"],
    ["start", "stopped"],
    ["stop", "Beta"],
    ["pause", "paused"],
    ["network", "disconnect", dotted, "c1.net1"],
    ["network", "connect", "--alias", "late", "--link", "Beta:lateLink", dual, "plain"],
    ["network", "connect", "--alias", "joined", net1, "inner-only"],
    ["network", "disconnect", inner, "multi"],
    ["rm", "--force", "server"],
  ],
  [
    ["rename", "zeta", "alpha"],
    ["rm", "--force", "stopped"],
    ["start", "Beta"],
    ["unpause", "paused"],
    ["network", "connect", "--alias", "again", dotted, "c1.net1"],
    ["network", "disconnect", dual, "plain"],
    ["network", "disconnect", net1, "inner-only"],
    ["network", "connect", "--link", "alpha:again", inner, "multi"],
    ["rename", "everywhere", "nowhere"],
  ],
];

export async function* roundsOfChanges(engine: Engine): AsyncGenerator<number> {
  try {
    for (const [index, round] of ROUNDS.entries()) {
      await Promise.all(round.map(async (command) => await engine.docker(...command)));
      yield index;
    }
  } finally {
    // A paused container cannot be killed, and the engine would not stop.
    await engine.dockerCommand(["unpause", "paused"]);
  }
}

export function changedQuestions(project: Project): Question[] {
  const ids = ["alpha", "stopped", "everywhere"].map((role) => get(project, role).Id.slice(0, 12));
  const names = [
    ...[
      "alpha",
      "zeta",
      "alpha.net1",
      "ZETA.net1",
      "Al1",
      "hostA",
      "stopped",
      "gone",
      "shared",
      "shared.Dual",
      "paused",
    ],
    ...["Beta", "Beta.net1", "beta.Dual", "UPPER", "fq.dn.example", "late", "late.Dual", "plain", "plain.Dual"],
    ...[
      "joined",
      "inner-only",
      "inner-only.net1",
      "server",
      "server.inner",
      "c1.net1",
      "c1.net1.br.net1",
      "again",
      "again.inner",
    ],
    ...["everywhere", "nowhere", "nowhere.Dual", "ev", "LnkA", "LnkA.net1", "lateLink", "lateLink.Dual", "byhost"],
    ...["OnDual", "single", "x9.ok.test", ...ids, nameOf(project, "unnamed")],
  ];
  const addresses = ["alpha", "beta", "stopped", "everywhere"].flatMap((role) => {
    return Object.values(get(project, role).NetworkSettings.Networks).map(({ IPAddress }) => IPAddress);
  });
  const reverse = addresses
    .filter(Boolean)
    .map((address) => `${address.split(".").toReversed().join(".")}.in-addr.arpa`);
  // Queried again here: the kernel limits how often it sends ICMP port unreachable, and may have reached the limit before.
  const closed = [byUdp, byTcp].map((by) => by("closedFirst", "closedFirst", query({ name: "x.ok.test" })));
  const changed = ["plain", "innerOnly", "linker", "multi"].flatMap((from) => [
    ...names.flatMap((name) => [
      byUdp(from, `${from}: A ${name}`, query({ name })),
      byTcp(from, `${from}: AAAA ${name}`, query({ name, type: TYPE.AAAA })),
      byUdp(from, `${from}: MX ${name}`, query({ name, type: TYPE.MX })),
    ]),
    ...reverse.map((name) => byUdp(from, `${from}: PTR ${name}`, query({ name, type: TYPE.PTR }))),
  ]);
  return [...changed, ...closed];
}
