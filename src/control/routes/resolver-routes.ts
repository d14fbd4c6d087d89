/**
 * ResolverRoutes: lookups, explanations, upstream servers, cache and reload. Request bodies are validated strictly: an unknown
 * field is an error.
 */
import { Fault } from "../../base/lib/fault.ts";
import { cacheEntries } from "../reports/cache-entries.ts";
import { cacheReport, flushCache } from "../reports/cache-report.ts";
import type { ApiRequest, Routes } from "../server/http.ts";
import type { ControlPorts } from "../situation/ports.ts";
import { explain } from "../explain/explain.ts";
import { lookup } from "../explain/lookup.ts";
import { upstreams } from "../reports/upstreams.ts";

export function resolverRoutes(ports: ControlPorts): Routes {
  return {
    "POST /v1/lookup": async (call) => {
      const body = fieldsOf(call, ["container", "name", "type", "tcp", "search"]);
      const lookupRequest = {
        ...nameRequest(body),
        tcp: booleanField(body, "tcp"),
        search: booleanField(body, "search"),
      };
      return await lookup(ports, lookupRequest, call.signal);
    },
    "POST /v1/explain": async (call) => {
      return await explain(ports, nameRequest(fieldsOf(call, ["container", "name", "type"])), call.signal);
    },
    "GET /v1/upstreams": async () => await upstreams(ports),
    "GET /v1/cache": () => cacheReport(ports),
    "GET /v1/cache/entries": async (call) => await cacheEntries(ports, call),
    "POST /v1/cache/flush": (call) => flushCache(ports, textField(fieldsOf(call, ["name"]), "name")),
    "POST /v1/reload": async () => await ports.reload(),
  };
}

type Body = Readonly<Record<string, unknown>>;

function fieldsOf({ body }: ApiRequest, keys: readonly string[]): Body {
  if (body === undefined) return {};
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new Fault("BAD_BODY", `Invalid request body: use a JSON object with the fields ${keys.join(", ")}`);
  }
  const unknown = Object.keys(body).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw new Fault("BAD_BODY", `Unknown field "${unknown}": use ${keys.join(", ")}`);
  return body as Body;
}

function nameRequest(body: Body): { container: string; name: string; type: string | undefined } {
  const container = textField(body, "container");
  const name = textField(body, "name");
  if (container === undefined) throw new Fault("BAD_BODY", 'Field missing: "container"');
  if (name === undefined) throw new Fault("BAD_BODY", 'Field missing: "name"');
  return { container, name, type: textField(body, "type") };
}

function textField(body: Body, key: string): string | undefined {
  const value = body[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string" || value === "")
    throw new Fault("BAD_BODY", `Invalid value for "${key}": use a non-empty string`);
  return value;
}

function booleanField(body: Body, key: string): boolean {
  const value = body[key] ?? false;
  if (typeof value !== "boolean") throw new Fault("BAD_BODY", `Invalid value for "${key}": use true or false`);
  return value;
}
