/**
 * QuestionRoutes: what can be asked of a running dns11 about names, servers and replies, and that it reads its settings
 * again. What is asked is read here, strictly: a word that nobody knows is a mistake and no wish.
 */
import { Fault } from "../base/lib/fault.ts";
import { cacheReport, flushCache } from "./cache-report.ts";
import type { ApiRequest, Routes } from "./http.ts";
import type { ControlPorts } from "./ports.ts";
import { explain } from "./explain.ts";
import { lookup } from "./lookup.ts";
import { upstreams } from "./upstreams.ts";

export function resolverRoutes(ports: ControlPorts): Routes {
  return {
    "POST /v1/lookup": async (call) => {
      const body = fieldsOf(call, ["container", "name", "type", "tcp", "search"]);
      const order = { ...nameRequest(body), tcp: booleanField(body, "tcp"), search: booleanField(body, "search") };
      return await lookup(ports, order, call.signal);
    },
    "POST /v1/explain": async (call) => {
      return await explain(ports, nameRequest(fieldsOf(call, ["container", "name", "type"])));
    },
    "GET /v1/upstreams": () => upstreams(ports),
    "GET /v1/cache": () => cacheReport(ports),
    "POST /v1/cache/flush": (call) => flushCache(ports, textField(fieldsOf(call, ["name"]), "name")),
    "POST /v1/reload": async () => await ports.reload(),
  };
}

type Body = Readonly<Record<string, unknown>>;

function fieldsOf({ body }: ApiRequest, keys: readonly string[]): Body {
  if (body === undefined) return {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Fault("BAD_BODY", `An object is needed, with ${keys.join(", ")}`);
  }
  const unknown = Object.keys(body).find((key) => !keys.includes(key));
  if (unknown !== undefined)
    throw new Fault("BAD_BODY", `"${unknown}" means nothing here; there are ${keys.join(", ")}`);
  return body as Body;
}

function nameRequest(body: Body): { container: string; name: string; type: string | undefined } {
  const container = textField(body, "container");
  const name = textField(body, "name");
  if (container === undefined) throw new Fault("BAD_BODY", "In which container? It is told as container");
  if (name === undefined) throw new Fault("BAD_BODY", "Which name? It is told as name");
  return { container, name, type: textField(body, "type") };
}

function textField(body: Body, key: string): string | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "") throw new Fault("BAD_BODY", `${key} is a text that is not empty`);
  return value;
}

function booleanField(body: Body, key: string): boolean {
  const value = body[key] ?? false;
  if (typeof value !== "boolean") throw new Fault("BAD_BODY", `${key} is true or false`);
  return value;
}
