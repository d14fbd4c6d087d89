// Why a name fails that may be a swarm's, by what the engine lists: no task of the service is healthy, or gossip has lost all machines.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Cause } from "../../../src/api/causes.ts";
import type { SwarmPlace } from "../../../src/api/names.ts";
import type { FailedName } from "../../../src/control/situation/ports.ts";
import { swarmCause } from "../../../src/features/swarm/swarm.ts";
import { aContainer } from "../../support/scripted/builders.ts";

const SICK: SwarmPlace = {
  network: "mesh",
  service: "sick",
  name: "sick",
  machine: null,
  virtualAddress: "10.0.1.2",
  tasks: 0,
  machines: 0,
};

function causeOf(
  name: string,
  { service, isAlone = false }: { readonly service?: SwarmPlace; readonly isAlone?: boolean },
  parts: Partial<FailedName> = {},
): Cause | undefined {
  const source = {
    serviceCalled: () => service,
    aloneOn: () => (isAlone ? { network: "mesh", forMs: 42_000 } : undefined),
  };
  const failed = {
    name,
    failure: "NXDOMAIN",
    client: aContainer(),
    isKept: false,
    isRefused: false,
    route: undefined,
    ...parts,
  };
  return swarmCause(failed, source);
}

test("a name that another machine may have, while gossip has lost them all, unless something else keeps it", () => {
  for (const name of ["far", "tasks.far", "far.mesh", "tasks.far.MESH."]) {
    const { code, sentence, fix } = causeOf(name, { isAlone: true }) ?? assert.fail(name);
    assert.deepEqual([code, fix], ["swarm-alone", "dns11 doctor"], name);
    assert.match(sentence, /gossip has brought none on mesh for 42 seconds$/);
  }
  assert.equal(causeOf("www.example.com", { isAlone: true }), undefined);
  assert.equal(causeOf("far", { isAlone: true }, { isKept: true }), undefined);
  assert.equal(causeOf("far", {}), undefined);
});

test("a service without a healthy task, whatever keeps its name from servers, and a slot without one", () => {
  const { code, sentence, fix, isBreaking } = causeOf("sick", { service: SICK }, { isKept: true }) ?? assert.fail();
  assert.deepEqual([code, fix, isBreaking], ["no-healthy-task", "docker service ps sick", true]);
  assert.equal(sentence, 'the swarm service "sick" has no running, healthy task on mesh, so it has no name');
  const running = { service: { ...SICK, tasks: 1 } };
  for (const name of ["sick.9", "Sick.9.mesh."])
    assert.match(causeOf(name, running)?.sentence ?? "", new RegExp(`healthy task on mesh that "${name}" names$`));
  for (const name of ["sick", "sick.mesh"]) assert.equal(causeOf(name, running), undefined, name);
  assert.equal(causeOf("sick.9", running, { failure: "SERVFAIL" }), undefined);
});
