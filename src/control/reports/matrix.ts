/**
 * Matrix: which containers can resolve which services, decided by the tables that answer queries. It is computed in short turns,
 * because it has up to 65,536 cells.
 */
import { byName } from "../../base/lib/text.ts";
import type { MatrixColumn, MatrixReport, MatrixRow } from "../../api/containers.ts";
import { wireLabels } from "../../base/dns/name.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes } from "../../base/model/address.ts";
import { StoredName } from "../../base/model/label-table.ts";
import { FOUND, MISS } from "../../base/model/visible-names.ts";
import type { View } from "../../base/model/view.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { LocalNames } from "../../query/lookup/local-names.ts";
import type { KnownContainer } from "../causes/known-container.ts";
import { namespaceOwner } from "../situation/find-container.ts";
import type { ApiRequest } from "../server/http.ts";
import { addressesOf } from "./name-resolver.ts";
import { refuseUnknown } from "../server/parameters.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { Situations } from "../situation/situations.ts";

const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

/** A column, with what cells need of it. */
interface Target {
  readonly column: MatrixColumn;
  /** undefined for a name that no query can have. */
  readonly name: StoredName | undefined;
  /** The container of each address, as text in hexadecimal. */
  readonly byAddress: ReadonlyMap<string, string>;
}

/** `GET /v1/matrix` with `project`. */
export async function matrix(ports: ControlPorts, { query }: Pick<ApiRequest, "query">): Promise<MatrixReport> {
  refuseUnknown(query, ["project"]);
  const project = query.get("project") ?? "";
  const { known } = await Situations.open(ports);
  const wanted = known.all.filter(({ compose }) => project === "" || compose?.project === project);
  const { facts: byId } = ports.containers;
  const composeOf = new Map(wanted.map(({ id, compose }) => [id, compose]));
  const targets = await gatherInSlices(eachTarget(wanted));
  const facts = wanted.flatMap(({ id }) => byId.get(id) ?? []).toSorted(byName);
  const shown = targets.slice(0, LIMITS.matrixSide);
  const names = new LocalNames(ports.resolver().behaviour);
  const eachRow = function* (): Generator<MatrixRow> {
    for (const fact of facts.slice(0, LIMITS.matrixSide)) {
      const view = viewOf(ports, fact);
      const cells = shown.map((target) => (view === undefined ? 0 : cellOf(view, target, names)));
      yield rowOf(fact, composeOf.get(fact.id), view, cells);
    }
  };
  const rows = await gatherInSlices(eachRow(), 1);
  return {
    columns: shown.map(({ column }) => column),
    rows,
    omittedColumns: targets.length - shown.length,
    omittedRows: facts.length - rows.length,
  };
}

/** The order is by project, then by name. */
function* eachTarget(all: readonly KnownContainer[]): Generator<Target | undefined> {
  const groups = new Map<string, KnownContainer[]>();
  for (const container of all) {
    const { project = null, service = container.name } = container.compose ?? {};
    const key = JSON.stringify([project ?? "", project === null ? container.name : service]);
    groups.set(key, [...(groups.get(key) ?? []), container]);
    yield undefined;
  }
  for (const key of [...groups.keys()].toSorted()) yield targetOf(groups.get(key) ?? []);
}

function targetOf(containers: readonly KnownContainer[]): Target {
  const [first] = containers as [KnownContainer];
  const name = (first.compose?.service ?? first.name).toLowerCase();
  const labels = wireLabels(name);
  const byAddress = new Map<string, string>();
  for (const { id, endpoints } of containers) {
    for (const address of endpoints.flatMap(addressesOf)) byAddress.set(keyOf(addressBytes(address)), id);
  }
  return {
    column: {
      name,
      project: first.compose?.project ?? null,
      service: first.compose?.service ?? null,
      containers: containers.map((each) => each.name).toSorted(),
      running: containers.filter(({ ended }) => ended === undefined).length,
    },
    name: labels && new StoredName(labels),
    byAddress,
  };
}

/** undefined if the namespace that it uses is gone. */
function viewOf({ containers }: ControlPorts, fact: ContainerFact): View | undefined {
  try {
    return containers.viewOf(namespaceOwner(containers.facts, fact));
  } catch {
    return undefined;
  }
}

function rowOf(
  { id, name, endpoints }: ContainerFact,
  compose: KnownContainer["compose"],
  view: View | undefined,
  cells: readonly number[],
): MatrixRow {
  return {
    container: name,
    containerId: id,
    project: compose?.project ?? null,
    service: compose?.service ?? null,
    networks: view?.names.flatMap(({ places }) => places) ?? endpoints.map(({ networkName }) => networkName),
    cells,
  };
}

/** How many containers of the column the name leads to. */
function cellOf(view: View, { name, byAddress }: Target, names: LocalNames): number {
  const found = name === undefined ? MISS : names.find(name, view);
  if (found === MISS) return 0;
  if (found !== FOUND) return -1;
  const { v4, v6 } = names.search.addresses;
  const ids = new Set([...holders(v4, IPV4_BYTES, byAddress), ...holders(v6, IPV6_BYTES, byAddress)]);
  return ids.size === 0 ? -1 : ids.size;
}

function* holders(addresses: Uint8Array, size: number, byAddress: Target["byAddress"]): Generator<string> {
  for (let at = 0; at < addresses.length; at += size) {
    const id = byAddress.get(keyOf(addresses.subarray(at, at + size)));
    if (id !== undefined) yield id;
  }
}

function keyOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : Buffer.from(bytes).toString("hex");
}
