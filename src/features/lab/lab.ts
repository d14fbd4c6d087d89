import type { FailuresReport } from "../../api/failures.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { gauge, sample, verdictFamily } from "../../metrics/family.ts";
import type { RunCore, Running } from "../contract.ts";
import { Leases } from "./leases.ts";
import { leaseRoutes } from "./routes.ts";
import { RuleBook } from "./rule-book.ts";

/** Faults, answers and recordings for test suites, each for as long as a connection to the control socket. */
export function open({ observe }: RunCore): Running {
  const book = new RuleBook();
  observe({
    open: (containerId, client) => {
      book.open(client, containerId);
      return undefined;
    },
    close: () => undefined,
  });
  let facts = (): ReadonlyMap<string, ContainerFact> => new Map();
  /** A KIND node, of which nothing is learned, has no labels. */
  let learnLabel = async (_key: string): Promise<void> => await Promise.resolve();
  const leases = new Leases({ book, facts: () => facts(), learnLabel: async (key) => await learnLabel(key) });
  return {
    engine: (core) => {
      ({ learnLabel } = core);
    },
    containersChange: () => book.containersChanged(),
    routes: ({ containers, holderOf }) => {
      facts = () => containers.facts;
      return leaseRoutes(leases, holderOf);
    },
    failures: (isMeant): Partial<FailuresReport> => {
      const injected = leases.injected(isMeant);
      return injected.length > 0 ? { injected } : {};
    },
    metrics: () => [
      gauge("dns11_leases", "Leases of tests that are open.", [sample(leases.count)]),
      gauge("dns11_lease_rules", "Rules and recordings of these leases.", [sample(leases.rules)]),
      verdictFamily(Object.entries(book.counts).map(([verdict, count]) => sample(count, { verdict }))),
    ],
  };
}
