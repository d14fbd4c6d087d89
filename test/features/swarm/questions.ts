// Questions about names of a swarm: services, tasks, aliases and slots, in every spelling, of types that exist and that do
// not, with and without EDNS; and the addresses of all of them.

import { TYPE } from "../../docker/differential/octets.ts";
import { type Question, byTcp, byUdp, query } from "../../docker/differential/question.ts";
import { OPTS } from "../../docker/differential/questions/opts.ts";
import { nibbles } from "../../docker/differential/questions/reverse.ts";

const SERVICES = ["web", "rr", "sick", "open", "front", "client", "me", "db", "nobody", "Odd.Name_1", "odd.name_1"];
const TYPES = [
  TYPE.AAAA,
  TYPE.MX,
  TYPE.TXT,
  TYPE.SRV,
  TYPE.SOA,
  TYPE.PTR,
  TYPE.CAA,
  TYPE.HTTPS,
  TYPE.ANY,
  TYPE.PRIVATE,
];

export function swarmQuestions(from: string, task: string, addresses: readonly string[]): Question[] {
  const slot = task.slice(0, task.lastIndexOf("."));
  const names = [...SERVICES.flatMap((name) => [name, `tasks.${name}`]), task, slot, "tasks", "web.7", "tasks.web.1"];
  const spelled = names.flatMap((name) => [
    name,
    name.toUpperCase(),
    `${name}.mesh`,
    `${name}.MESH`,
    `${name}.ingress`,
  ]);
  const reverse = addresses.map((address) =>
    address.includes(":")
      ? `${nibbles(address).toReversed().join(".")}.ip6.arpa`
      : `${address.split(".").toReversed().join(".")}.in-addr.arpa`,
  );
  return [
    ...spelled.map((name) => byUdp(from, `A ${name}`, query({ name }))),
    ...["web", "tasks.web", "front.mesh", task, "sick"].flatMap((name) => [
      byTcp(from, `A ${name}`, query({ name })),
      ...TYPES.map((type) => byUdp(from, `type ${type} ${name}`, query({ name, type }))),
    ]),
    ...Object.entries(OPTS).flatMap(([label, records]) =>
      ["web", "tasks.web"].map((name) => byUdp(from, `EDNS ${label}: ${name}`, query({ name, records }))),
    ),
    ...[...reverse, ...reverse.map((name) => name.toUpperCase())].flatMap((name) => [
      byUdp(from, `PTR ${name}`, query({ name, type: TYPE.PTR })),
      byUdp(from, `A ${name}`, query({ name })),
    ]),
    byUdp(from, "outside", query({ name: "ok.example.org" })),
  ];
}
