/**
 * HTTP client for dns11's metrics and health endpoints, by TCP or through the control socket, and an independent parser
 * of the Prometheus text format.
 */
import { request } from "node:http";

export type Scraped = { readonly status: number; readonly type: string; readonly text: string };

/** For a server that does not reply; on a busy machine a reply may take long. */
const TIMEOUT_MS = 60_000;

/** `address` is ADDRESS:PORT, or the path of a control socket; `host` is the header, if it is for another one. */
export async function page(address: string, path: string, host?: string): Promise<Scraped> {
  const where = address.startsWith("/") ? { socketPath: address } : urlParts(address);
  const headers = host === undefined ? {} : { host };
  return await new Promise((resolve, reject) => {
    const outgoing = request({ ...where, path, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        resolve({ status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", text });
      });
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${path}: timeout`)));
    outgoing.on("error", reject);
    outgoing.end();
  });
}

function urlParts(address: string): { host: string; port: string } {
  const { hostname, port } = new URL(`http://${address}`);
  return { host: hostname.replaceAll(/[[\]]/g, ""), port };
}

export interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function seriesIn(text: string): Series[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = "", value = ""] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === "") throw new Error(`not a line of metrics: ${line}`);
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = "", text_ = ""]) => [key, text_]);
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) };
    });
}

/** Sum of the series with this name and these labels. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  return seriesIn(text)
    .filter((one) => one.name === name)
    .filter((one) => Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}

/** Violations of Prometheus naming conventions; empty if there are none. */
export function lint(text: string): string[] {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  const helps = new Map([...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = "", help = ""]) => [name, help]));
  const problems: string[] = [];
  const series = new Set<string>();
  for (const [name, type] of types) {
    if ((helps.get(name) ?? "") === "") problems.push(`${name} has no help text`);
    if ((type === "counter") !== name.endsWith("_total")) problems.push(`${name} is a ${type}`);
    if (/_(?:ms|milliseconds|minutes|kb|kilobytes|megabytes)(?:_|$)/.test(name))
      problems.push(`${name} has no base unit`);
    if (!/^[a-z][a-z0-9_]*$/.test(name)) problems.push(`${name} is not a valid name`);
    if (type === "gauge" && /_(?:count|sum|bucket|total)$/.test(name)) problems.push(`${name} is a gauge`);
  }
  for (const { name, labels, value } of seriesIn(text)) {
    const key = `${name} ${JSON.stringify(labels)}`;
    if (series.has(key)) problems.push(`${key} is there twice`);
    series.add(key);
    const family = types.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, "");
    if (!types.has(family)) problems.push(`${name} has no type`);
    if (!Number.isFinite(value)) problems.push(`${key} is ${value}`);
  }
  return problems;
}
