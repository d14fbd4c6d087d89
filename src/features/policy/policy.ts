import { labelKeysOf } from "../../container/facts/label-keys.ts";
import { gauge, sample, verdictFamily } from "../../metrics/exposition.ts";
import type { PolicyBook } from "./book/policy-book.ts";
import type { NamespacePolicy } from "./judge/namespace-policy.ts";
import type { Policy } from "./model/policy.ts";
import type { Client } from "../../query/client/client.ts";
import type { QueryObserver } from "../../query/client/clients.ts";
import type { EngineCore, Policing, Prepared, RunCore, Running } from "../contract.ts";
import { policiesOf } from "./feature.ts";
import { AnswerGate } from "./gate/answer-gate.ts";
import { PolicyGate } from "./gate/policy-gate.ts";
import { leaseRoutes, openLeases } from "./leases/policy-leases.ts";
import { type PolicedContainers, openPoliced } from "./policed-containers.ts";
import { refusalNow } from "./reports/refusal-now.ts";
import { policyRoutes } from "./reports/routes.ts";
import { openPolicyBook } from "./subjects.ts";
import { UnknownContainers } from "./unknown-containers.ts";
import { openWhy } from "./why/why.ts";

const NOTHING_PREPARED: Prepared = { commit: () => undefined, discard: async () => await Promise.resolve() };

export function open(run: RunCore): Running {
  let { settings } = run;
  const book = openPolicyBook(run, () => settings.queries.names === "full");
  book.isKept = run.canRefuse;
  book.set(policiesOf(settings));
  run.observe(gatesOf(book));
  let engine: EngineCore | undefined;
  const leases = openLeases(book, run, () => engine);
  let policed: PolicedContainers | undefined;
  let policing: Policing | undefined;
  const learnLabels = async (policies: readonly Policy[]): Promise<void> => {
    const keys = labelKeysOf(policies.flatMap(({ scopes }) => scopes));
    for (const key of new Set(keys)) await engine?.learnLabel(key);
  };
  return {
    ...openWhy(book, () => engine),
    engine: (core) => {
      engine = core;
      policed = openPoliced(book, core, run);
      policing = policingOf(book, policed, core);
    },
    get policing() {
      return policing;
    },
    // Also those that a run before has left.
    start: async () => await learnLabels(book.policies),
    // A process before this one may have made some while this one started.
    serving: () => leases.readAgain(),
    prepare: async (next) => {
      await learnLabels(policiesOf(next));
      return NOTHING_PREPARED;
    },
    configure: (next) => {
      settings = next;
      book.set(policiesOf(next));
    },
    containersChange: () => {
      book.containersChanged();
      leases.containersChanged();
    },
    remove: () => leases.containersChanged(),
    synced: () => {
      leases.synced();
      void policed?.synced();
    },
    refusalOf: (asked) => refusalNow(book, asked),
    routes: (ports) => ({ ...policyRoutes({ ...ports, policies: book }), ...leaseRoutes(leases, ports) }),
    metrics: () => [
      gauge("dns11_policy_leases", "Policies that clients have made.", [sample(leases.count)]),
      verdictFamily(book.readings.map(({ policy, mode, verdict, count }) => sample(count, { verdict, policy, mode }))),
    ],
    closing: () => leases.close(),
  };
}

/** Each client has its policy before its first query. */
function gatesOf(book: PolicyBook): QueryObserver {
  const answers = new AnswerGate(book);
  // Clients in one namespace have the same.
  const gates = new WeakMap<NamespacePolicy, PolicyGate>();
  const gateOf = (policy: NamespacePolicy): PolicyGate => {
    const known = gates.get(policy) ?? new PolicyGate(policy, answers);
    gates.set(policy, known);
    return known;
  };
  return {
    open: (containerId: string, client: Client) => {
      const policed = {
        setPolicy: (policy: NamespacePolicy | undefined) => void (client.policy = policy && gateOf(policy)),
        forgetAnswers: () => client.repeater?.forget(),
        onClose: (act: () => void) => client.onClose(act),
      };
      book.open(policed, containerId);
      return undefined;
    },
    close: () => undefined,
  };
}

function policingOf(book: PolicyBook, policed: PolicedContainers, { host, directory, serve }: EngineCore): Policing {
  return {
    get isOn() {
      return book.policies.length > 0;
    },
    isEnforced: (id) => book.isEnforcedFor(id),
    isEnforcedNow: (id) => book.isEnforcedIn(id),
    late: new UnknownContainers({
      ...{ host, serve },
      facts: () => directory().containers,
      isHolding: () => policed.isHolding,
      hold: (id, addresses) => policed.hold(id, addresses),
      release: (id) => policed.release(id),
    }),
    networksChanged: () => policed.networksChanged(),
    close: () => policed.close(),
  };
}
