// Reverse lookups: for the addresses of containers and others, with correct names and with names that are nearly correct.

import { NETWORKS } from "../topology.ts";
import { TYPE } from "../octets.ts";
import { type Project, get } from "../project.ts";
import { type Question, byTcp, byUdp, query } from "../question.ts";

export function reverseQuestions(project: Project): Question[] {
  const rolesByClient = new Map<string, readonly string[]>([
    [
      "plain",
      ["alpha", "beta", "unnamed", "longName", "renamed", "paused", "stopped", "wideName", "dotName", "everywhere"],
    ],
    ["everywhere", ["alpha", "beta", "everywhere", "dotted", "sixOnly", "signName", "crowd1", "onBridge"]],
    ["wideName", ["wideName", "dotName", "signName"]],
    ["signName", ["signName", "dotName", "longName", "wideName", "crowd0"]],
    ["fromBridge", ["onBridge", "fromBridge", "alpha"]],
  ]);
  const addresses = [...rolesByClient].flatMap(([from, roles]) => {
    return roles.flatMap((role) => addressesOf(project, role)).map((address) => ({ from, address }));
  });
  const strangers = ["127.0.0.1", "127.0.0.11", "0.0.0.0", "8.8.8.8", gatewayOf(project), "::1", "::", "fd11::1"];
  return [...addresses, ...strangers.map((address) => ({ from: "plain", address }))].flatMap(({ from, address }) => {
    return reverseForms(address).flatMap((name) => [
      byUdp(from, `PTR ${name}`, query({ name, type: TYPE.PTR })),
      byTcp(from, `PTR ${name}`, query({ name, type: TYPE.PTR })),
    ]);
  });
}

function addressesOf(project: Project, role: string): string[] {
  const networks = Object.values(get(project, role).NetworkSettings.Networks);
  return networks.flatMap(({ IPAddress, GlobalIPv6Address }) => [IPAddress, GlobalIPv6Address]).filter(Boolean);
}

function gatewayOf(project: Project): string {
  return get(project, "alpha").NetworkSettings.Networks[NETWORKS.net1]?.Gateway ?? "";
}

function reverseForms(address: string): string[] {
  const labels = address.includes(":") ? nibbles(address) : address.split(".");
  const name = labels.toReversed().join(".");
  const [tree, other] = address.includes(":") ? ["ip6.arpa", "in-addr.arpa"] : ["in-addr.arpa", "ip6.arpa"];
  return [
    ...[`${name}.${tree}`, `${name}.${tree.toUpperCase()}`, `${name.toUpperCase()}.${tree}`, `${name}.${other}`],
    ...[`0${name}.${tree}`, `x.${name}.${tree}`, `${name}.${tree}.net1`, `${name}.${tree}.${tree}`, tree, name],
    ...(address.includes(":") ? [`${nibblesAsDocker(address).toReversed().join(".")}.${tree}`] : []),
    ...[`${labels.slice(1).toReversed().join(".")}.${tree}`, `${name.replace(".", "\\.")}.${tree}`],
  ];
}

export function nibbles(address: string): string[] {
  const [head = "", tail = ""] = address.split("::", 2);
  const groups = (text: string): string[] =>
    text
      .split(":")
      .filter(Boolean)
      .map((group) => group.padStart(4, "0"));
  const [front, back] = [groups(head), groups(tail)];
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => "0000");
  return [...[...front, ...zeros, ...back].join("")];
}

// Docker expands each end of an address that begins or ends with "::" as if it were in the middle.
function nibblesAsDocker(address: string): string[] {
  const groups = address.split(":");
  const zeros = "0000".repeat(9 - groups.length);
  return [...groups.map((group) => (group === "" ? zeros : group.padStart(4, "0"))).join("")];
}
