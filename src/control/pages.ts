/**
 * Pages: what machines that watch machines read: /metrics, /health and /ready.
 */
import type { LifeReport } from "../api/status.ts";
import { LIMITS } from "../base/limits.ts";
import { Gathered } from "../base/lib/gathered.ts";
import { Page, type Routes } from "./http.ts";

const OK = 200;
const UNAVAILABLE = 503;
const EXPOSITION = "text/plain; version=0.0.4; charset=utf-8";

/** What they are made of. */
export interface PageParts {
  /** In the text format of Prometheus. */
  readonly metrics: () => Promise<string>;
  readonly life: () => LifeReport;
}

export function pages(parts: PageParts): Routes {
  const health = (): Page => new Page(OK, "text/plain; charset=utf-8", "OK\n");
  const ready = new Gathered(() => {
    const report = parts.life();
    return new Page(report.ready ? OK : UNAVAILABLE, "application/json", `${JSON.stringify(report)}\n`);
  }, LIMITS.pageEveryMs);
  const metrics = new Gathered(async () => new Page(OK, EXPOSITION, await parts.metrics()), LIMITS.pageEveryMs);
  return {
    "GET /metrics": async () => await metrics.get(),
    "GET /health": health,
    "GET /healthz": health,
    "GET /ready": async () => await ready.get(),
    "GET /readyz": async () => await ready.get(),
  };
}
