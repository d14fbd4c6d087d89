/**
 * QueryDetails: adds to queries of the history what the history does not have: the containers that have the addresses of an
 * answer, and the cause of a failure. Both follow from what is known now; no query is sent.
 */
import type { Cause } from "../../api/causes.ts";
import { gatherInSlices } from "../../base/lib/slices.ts";
import type { MissedReport, QueryReport, SkippedReport } from "../../api/queries.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { ownersOf } from "../situation/address-owners.ts";
import { causesOf } from "../causes/causes.ts";
import type { KnownContainer, KnownContainers } from "../causes/known-container.ts";
import { findContainer, namespaceOwner } from "../situation/find-container.ts";
import { type SituationPorts, Situations, knownRunning } from "../situation/situations.ts";

/** Different failures of one batch whose cause is found out: a flood of failures has a few causes at most. */
const CAUSES_MAX = 64;

/** How many queries are not in a stream. */
type Count = MissedReport | SkippedReport;

/** What is known for one batch of queries. */
interface Knowledge {
  readonly known: KnownContainers;
  /** The key is the name; only running containers send queries. */
  readonly clients: ReadonlyMap<string, KnownContainer>;
  /** undefined where no causes are wanted. */
  readonly situations: Situations | undefined;
  readonly causes: Map<string, Cause | null>;
}

export class QueryDetails {
  readonly #ports: SituationPorts;

  constructor(ports: SituationPorts) {
    this.#ports = ports;
  }

  /** Adds owners, and causes if they are wanted. Queries that arrive together are explained together. */
  async add(queries: readonly QueryReport[], wantsCauses: boolean): Promise<QueryReport[]> {
    const needsCauses = wantsCauses && queries.some(isFailure);
    const situations = needsCauses ? await Situations.open(this.#ports) : undefined;
    const { containers } = this.#ports;
    const known = situations?.known ?? (await knownRunning(containers));
    const running = known.all.filter(({ ended }) => ended === undefined);
    const clients = new Map(running.map((client) => [client.name, client]));
    const knowledge = { known, clients, situations, causes: new Map<string, Cause | null>() };
    return await gatherInSlices(this.#detailing(queries, knowledge));
  }

  /** The same for a stream: batch after batch. */
  async *follow(
    batches: AsyncIterable<readonly (QueryReport | Count)[]>,
    wantsCauses: boolean,
  ): AsyncGenerator<QueryReport | Count, void> {
    for await (const batch of batches) {
      yield* batch.filter(isCount);
      const queries = batch.filter((each): each is QueryReport => !isCount(each));
      if (queries.length > 0) yield* await this.add(queries, wantsCauses);
    }
  }

  *#detailing(queries: readonly QueryReport[], knowledge: Knowledge): Generator<QueryReport> {
    for (const query of queries) yield this.#detailed(query, knowledge);
  }

  #detailed(query: QueryReport, knowledge: Knowledge): QueryReport {
    const { known, clients, situations, causes } = knowledge;
    const { facts, elsewhere } = this.#ports.containers;
    const client = clients.get(query.container);
    const fact = client && facts.get(client.id);
    const { owners } = ownersOf(query.addresses, known, client, (address) =>
      fact === undefined ? undefined : elsewhere?.ownerOf(namespaceOwner(facts, fact), address),
    );
    if (situations === undefined || !isFailure(query)) return { ...query, owners };
    const key = JSON.stringify([query.container, query.name, query.type, query.rcode]);
    if (!causes.has(key) && causes.size < CAUSES_MAX) causes.set(key, this.#causeOf(query, situations));
    return { ...query, owners, cause: causes.get(key) ?? null };
  }

  #causeOf({ container, name, type, rcode }: QueryReport, situations: Situations): Cause | null {
    const { facts } = this.#ports.containers;
    if (name === null || type === null) return null;
    let fact: ContainerFact;
    let owner: ContainerFact;
    try {
      fact = findContainer(facts.values(), container);
      owner = namespaceOwner(facts, fact);
    } catch {
      // It has ended.
      return null;
    }
    const [cause = null] = causesOf(
      situations.of(fact, owner, {
        name,
        typeName: type,
        failure: rcode === "NOERROR" ? "NODATA" : rcode,
        isFromUpstream: false,
        isTruncated: false,
      }),
    );
    return cause;
  }
}

function isCount(each: QueryReport | Count): each is Count {
  return "missed" in each || "skipped" in each;
}

/** An empty answer is usual for IPv6 addresses; without an IPv4 address the name is of no use to most programs. */
function isFailure({ rcode, type, answers }: QueryReport): boolean {
  return rcode !== "NOERROR" || (type === "A" && answers === 0);
}
