import type { PolicyAllowed, PolicyLogReport, PolicyRefusal } from "../../../api/policies.ts";
import { bareName } from "../../../base/dns/name.ts";
import { Fault, reasonOf } from "../../../base/lib/fault.ts";
import { type ApiRequest, type Routes, holderText } from "../../../control/server/http.ts";
import { isTrue, numberOf, refuseUnknown } from "../../../control/server/parameters.ts";
import { COMPOSE_KEYS, composeFilterOf } from "../../../control/situation/address-owners.ts";
import { findContainer, namespaceOwner } from "../../../control/situation/find-container.ts";
import { type ControlPorts, followedContainer } from "../../../control/situation/ports.ts";
import type { PolicyBook } from "../book/policy-book.ts";
import { readRule } from "../model/policy-rule.ts";
import { checkPolicy } from "./policy-check.ts";
import { listPolicies, refusalReport } from "./policy-list.ts";

const LAST_DEFAULT = 100;
const LAST_MAX = 2_000;
const DAY_MS = 86_400_000;

interface Ports extends ControlPorts {
  readonly policies: PolicyBook;
}

/**
 * `GET /v1/policies`; `GET /v1/policies/check` with `container`, `name` and `type`; `GET /v1/policies/log` with
 * `container`, `project`, `service`, `last` and `follow=true`; and `POST /v1/policies/allow`, with which an operator allows a name for a while.
 */
export function policyRoutes(ports: Ports): Routes {
  return {
    "GET /v1/policies": ({ query }) => {
      refuseUnknown(query, []);
      return listPolicies(ports);
    },
    "GET /v1/policies/check": ({ query }) => {
      refuseUnknown(query, ["container", "name", "type"]);
      const type = query.get("type");
      return checkPolicy(ports, {
        container: required(query, "container"),
        name: required(query, "name"),
        ...(type !== null && type !== "" && { type }),
      });
    },
    "GET /v1/policies/log": async (request) => await readLog(ports, request),
    "POST /v1/policies/allow": (request) => allow(ports, request),
  };
}

async function readLog(
  ports: Ports,
  { query, signal }: ApiRequest,
): Promise<PolicyLogReport | AsyncIterable<PolicyRefusal>> {
  refuseUnknown(query, ["container", ...COMPOSE_KEYS, "last", "follow"]);
  const { facts } = ports.containers;
  const container = query.get("container") ?? "";
  const id = container === "" ? undefined : namespaceOwner(facts, findContainer(facts.values(), container)).id;
  const filter = await composeFilterOf(query, ports);
  const isNamed = id === undefined ? undefined : followedContainer(container, id, (each) => facts.get(each)?.name);
  const isChosen = (each: string): boolean => isNamed?.(each) !== false && filter?.acceptsId(each) !== false;
  const last = numberOf(query, "last", LAST_MAX) ?? LAST_DEFAULT;
  const { log } = ports.policies;
  if (!isTrue(query, "follow"))
    return { refusals: log.read(last, 0, isChosen).map((each) => refusalReport(each, facts)) };
  return reports(log.follow(last, isChosen, signal), facts);
}

async function* reports(
  refusals: ReturnType<PolicyBook["log"]["follow"]>,
  facts: ControlPorts["containers"]["facts"],
): AsyncGenerator<PolicyRefusal, void> {
  for await (const each of refusals) yield refusalReport(each, facts);
}

/** Whoever may use the control socket is an operator: no container can. */
function allow(ports: Ports, { body, socket }: ApiRequest): PolicyAllowed {
  const fields = typeof body === "object" && body !== null ? (body as Readonly<Record<string, unknown>>) : {};
  const { container, name, forMs } = fields;
  if (typeof container !== "string" || typeof name !== "string" || container === "" || name === "")
    throw new Fault("BAD_QUERY", 'Fields missing: use {"container": "app", "name": "x.test", "forMs": 900000}');
  if (typeof forMs !== "number" || !Number.isInteger(forMs) || forMs < 1 || forMs > DAY_MS)
    throw new Fault("BAD_QUERY", `Invalid forMs: use a whole number from 1 to ${DAY_MS}`);
  const { facts } = ports.containers;
  const fact = findContainer(facts.values(), container);
  const owner = namespaceOwner(facts, fact);
  if (ports.policies.assignmentOf(owner.id).policies.length === 0)
    throw new Fault("NO_POLICY", `No policy is for "${fact.name}", so nothing has to be allowed`);
  const by = socket === undefined ? "an operator" : holderText(ports.holderOf(socket));
  try {
    const { pattern, port } = readRule(bareName(name));
    if (pattern === undefined || port !== undefined)
      throw new Error(`invalid name ${JSON.stringify(name)}: use a name without a port; the settings allow addresses`);
    ports.policies.grant(owner.id, bareName(name), forMs, by);
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault("BAD_QUERY", reasonOf(error));
  }
  const until = new Date(Date.now() + forMs).toISOString();
  return { container: fact.name, name: bareName(name), until, ...(owner !== fact && { sharedWith: owner.name }) };
}

function required(query: ApiRequest["query"], key: string): string {
  const text = query.get(key) ?? "";
  if (text === "") throw new Fault("BAD_QUERY", `Parameter ${key} missing`);
  return text;
}
