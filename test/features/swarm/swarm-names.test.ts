// Which names of a container on a swarm network Docker's resolver is asked for, and which go where any other name goes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { presentation, wireLabels } from "../../../src/base/dns/name.ts";
import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import { hashOf, StoredName } from "../../../src/base/model/label-table.ts";
import { ONLY_DOCKER, DENIED, MISS, NameSearch } from "../../../src/base/model/visible-names.ts";
import { DockerNetworks } from "../../../src/container/names/docker/networks.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { swarmList } from "../../../src/features/swarm/engine-lists.ts";
import { SwarmLists } from "../../../src/features/swarm/swarm-lists.ts";
import type { SwarmNames } from "../../../src/features/swarm/swarm-names.ts";
import { SwarmNetworks } from "../../../src/features/swarm/swarm-networks.ts";
import { aContainer, aNetworkFact, anEndpoint } from "../../support/scripted/builders.ts";

const TASK = "web.1.mn3d8mjmcpnqwzperqfuomv2v";
const NODE = "vwu2ff4a9fh4r26m97okwdoo6";
const AGENT = `agent.${NODE}.sojlj3hno08z49y3zzr4mbyud`;
const HOST = { "Host IP": "192.0.2.1" };

function setUp({ isIngress = false, asksDocker = true, engineVersion = 28 } = {}): {
  source: SwarmNetworks;
  names: SwarmNames | undefined;
  container: ContainerFact;
} {
  const networks = new DockerNetworks(LABEL_DEFAULTS);
  const swarm = { isIngress, subnets: ["10.0.1.0/24", "fd00:1::/64"] };
  const mesh = aNetworkFact({ name: "mesh", driver: "overlay", scope: "swarm", swarm });
  networks.putNetwork(mesh);
  networks.putNetwork(aNetworkFact({ name: "n1" }));
  const endpoints = [anEndpoint({ networkName: "mesh", networkId: mesh.id, names: ["own"], ipv4: "10.0.1.7" })];
  const container = aContainer({ endpoints: [...endpoints, anEndpoint({ networkName: "n1" })] });
  networks.join({ fact: container, before: undefined, labels: {}, project: undefined, traits: {} });
  const lists = new SwarmLists();
  const source = new SwarmNetworks({ networks, lists, asksDocker, engineVersion: () => engineVersion });
  const task = (Name: string, EndpointIP: string): object => ({ Name, EndpointIP, Info: HOST });
  const Services = {
    "": { VIP: "<nil>", Tasks: [task("far.box", "10.0.1.9"), task("far", "10.0.1.10"), task("own", "10.0.1.7")] },
    web: { VIP: "10.0.1.2", Tasks: [task(TASK, "10.0.1.3")] },
    agent: { VIP: "10.0.1.4", Tasks: [task(AGENT, "10.0.1.5")] },
  };
  const sick = { Spec: { Name: "sick", TaskTemplate: { Networks: [{ Target: mesh.id, Aliases: ["old.name"] }] } } };
  lists.put(mesh.id, swarmList(mesh.id, { Services }, [sick]));
  return { source, names: source.namesFor(container, undefined), container };
}

function found(names: SwarmNames | undefined, name: string): string {
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  const result = names?.find(new StoredName(wireLabels(name) ?? assert.fail()), search);
  if (result !== ONLY_DOCKER) return result === DENIED ? "denied" : result === MISS ? "elsewhere" : String(result);
  const { labels, isDenied } = search.dockerQuestion ?? assert.fail();
  return `${presentation(labels, 0, labels.length)}${isDenied ? ", or nobody" : ""}`;
}

test("names that may be the swarm's are asked for; others are not delayed", () => {
  const { names } = setUp();
  const expected: Record<string, string> = {
    WEB: "web, or nobody",
    alias: "alias",
    "web.Mesh": "web.mesh, or nobody",
    "alias.mesh": "alias.mesh",
    "tasks.web": "tasks.web, or nobody",
    "tasks.alias": "tasks.alias",
    [TASK]: `${TASK}, or nobody`,
    [`${TASK}.mesh`]: `${TASK}.mesh, or nobody`,
    "web.1": `${TASK}, or nobody`,
    "web.1.mesh": `${TASK}.mesh, or nobody`,
    "web.2": "denied",
    [`agent.${NODE}`]: `${AGENT}, or nobody`,
    sick: "sick, or nobody",
    "old.name": "old.name, or nobody",
    "tasks.old.name": "tasks.old.name, or nobody",
    "far.box": "far.box",
    "example.org": "elsewhere",
    "tasks.example.org": "elsewhere",
    "db.n1": "elsewhere",
    "other.1": "elsewhere",
    "a.b.mesh": "a.b.mesh",
  };
  const actual = Object.fromEntries(Object.keys(expected).map((name) => [name, found(names, name)]));
  assert.deepEqual(actual, expected);
});

test("IPv6 addresses are asked for where the engine answers for them; engines that cannot refuse to forward get no guard", () => {
  const askOf = (engineVersion: number, name: string): string => {
    const { source, container } = setUp({ engineVersion });
    const search = new NameSearch(DEFAULT_BEHAVIOUR);
    const labels = new StoredName(wireLabels(name) ?? assert.fail());
    assert.equal(source.namesFor(container, undefined)?.find(labels, search), ONLY_DOCKER);
    const { hasIPv6, isGuarded } = search.dockerQuestion ?? assert.fail();
    return `${hasIPv6 ? "both families" : "IPv4"}${isGuarded ? ", guarded" : ""}`;
  };
  const engines = [20, 23, 24, 27, 28].map((major) => [major, askOf(major, "web")]);
  assert.deepEqual(Object.fromEntries(engines), {
    20: "IPv4",
    23: "IPv4",
    24: "IPv4, guarded",
    27: "IPv4, guarded",
    28: "both families, guarded",
  });
});

test("what is asked for stays, when the next question is read into the same memory", () => {
  const question = new StoredName(wireLabels("web") ?? assert.fail());
  const search = new NameSearch(DEFAULT_BEHAVIOUR);
  assert.equal(setUp().names?.find(question, search), ONLY_DOCKER);
  question.folded.fill(0x78);
  const { labels } = search.dockerQuestion ?? assert.fail();
  assert.equal(presentation(labels, 0, labels.length), "web");
});

test("reverse names of the networks' subnets are asked for, those of local containers are known", () => {
  const { names } = setUp();
  const pointer = (text: string): string => {
    const labels = wireLabels(text) ?? assert.fail();
    const reverse = names?.pointer(labels, labels.length, hashOf(labels), DEFAULT_BEHAVIOUR);
    if (reverse === undefined) return "elsewhere";
    const { target, dockerQuestion } = reverse;
    const name = presentation(
      target ?? dockerQuestion?.labels ?? new Uint8Array(0),
      0,
      (target ?? dockerQuestion?.labels)?.length ?? 0,
    );
    return dockerQuestion?.isDenied === true ? `${name}, or nobody` : name;
  };
  assert.equal(pointer("7.1.0.10"), "own.mesh");
  assert.equal(pointer("3.1.0.10"), "3.1.0.10.in-addr.arpa, or nobody");
  assert.equal(pointer("2.1.0.10"), "2.1.0.10.in-addr.arpa, or nobody", "the virtual address of a service");
  assert.equal(pointer("99.1.0.10"), "99.1.0.10.in-addr.arpa", "free: it is forwarded, as in Docker");
  assert.equal(pointer("3.2.0.10"), "elsewhere");
  assert.equal(pointer("1.0.10"), "elsewhere");
  const nibbles = [..."1".padEnd(16, "0"), ..."0".repeat(8), ..."1000", ..."00df"].join(".");
  assert.equal(pointer(nibbles), `${nibbles}.ip6.arpa, or nobody`);
});

test("there are no such names on the ingress network, in strict mode or for a KIND node", () => {
  assert.equal(setUp({ isIngress: true }).names, undefined);
  const { source, container } = setUp();
  assert.equal(source.asksDocker, true);
  const node = { ownAddresses: [], hostDockerInternal: "deny", hostDockerInternalBy: "a setting" };
  assert.equal(source.namesFor(container, node), undefined);
  const strict = setUp({ asksDocker: false });
  assert.deepEqual([strict.names, strict.source.asksDocker], [undefined, false]);
});

test("the list names services, tasks, slots and containers of other machines, for people", () => {
  const listed = [...(setUp().names?.list() ?? [])].map(({ name, source, records = [] }) => [name, source, ...records]);
  assert.deepEqual(listed.slice(0, 2), [
    ["far", "swarm container", "on 192.0.2.1"],
    ["far.box", "swarm container", "on 192.0.2.1"],
  ]);
  assert.deepEqual(
    listed.filter(([name]) => /web/.test(name ?? "")),
    [
      ["web", "swarm service", "virtual, 1 task on 1 machine"],
      ["tasks.web", "swarm service", "1 task on 1 machine"],
      [TASK, "swarm task", "on 192.0.2.1"],
      ["web.1", "swarm task", "on 192.0.2.1"],
    ],
  );
});

test("the list says whose an address is, and which service a name is of; a container's own names are not listed twice", () => {
  const { source, names, container } = setUp();
  const web = {
    network: "mesh",
    service: "web",
    name: "web",
    machine: null,
    virtualAddress: "10.0.1.2",
    tasks: 1,
    machines: 1,
  };
  assert.deepEqual(source.placeOf(container, "10.0.1.2"), web);
  assert.deepEqual(source.placeOf(container, "10.0.1.3"), { ...web, name: TASK, machine: "192.0.2.1" });
  assert.equal(source.placeOf(container, "10.0.1.9")?.service, null);
  assert.equal(source.placeOf(container, "10.0.1.99"), undefined);
  assert.equal(source.placeOf(aContainer(), "10.0.1.2"), undefined);
  for (const name of ["web", "WEB.Mesh.", "tasks.web", "web.9", "web.1.mesh"])
    assert.deepEqual(source.serviceCalled(container, name), web, name);
  const sick = source.serviceCalled(container, "old.name");
  assert.deepEqual([sick?.name, sick?.tasks], ["sick", 0]);
  for (const name of ["example.org", "far", ""]) assert.equal(source.serviceCalled(container, name), undefined, name);
  const listed = (all: Iterable<{ readonly name: string }>): string[] => [...all].map(({ name }) => name);
  assert.equal(listed(names?.list() ?? []).includes("own"), false);
  assert.deepEqual(
    listed(source.allNames()).filter((name) => name === "own" || name === "web"),
    ["own", "web"],
  );
});
