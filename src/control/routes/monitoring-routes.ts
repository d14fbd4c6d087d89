/**
 * MonitoringRoutes: the endpoints for monitoring: /metrics, /health and /ready.
 */
import type { LifecycleReport } from "../../api/status.ts";
import { LIMITS } from "../../base/limits.ts";
import { CoalescedCall } from "../../base/lib/coalesced-call.ts";
import { printable, printableJson } from "../../base/lib/printable.ts";
import type { ProbeResult } from "../explain/probe-pages.ts";
import { TextResponse, type Routes } from "../server/http.ts";

const OK = 200;
const NOT_FOUND = 404;
const UNAVAILABLE = 503;
const EXPOSITION = "text/plain; version=0.0.4; charset=utf-8";

export interface MonitoringSources {
  /** The metrics in Prometheus' text format. */
  readonly metrics: () => Promise<string>;
  readonly life: () => LifecycleReport;
  /** Undefined where no probe has this page. */
  readonly probe: (page: string) => Promise<ProbeResult | undefined>;
}

export function monitoringRoutes(sources: MonitoringSources): Routes {
  const health = (): TextResponse => new TextResponse(OK, "text/plain; charset=utf-8", "OK\n");
  const ready = new CoalescedCall(() => {
    const report = sources.life();
    return new TextResponse(report.ready ? OK : UNAVAILABLE, "application/json", `${printableJson(report)}\n`);
  }, LIMITS.pageEveryMs);
  const metrics = new CoalescedCall(
    async () => new TextResponse(OK, EXPOSITION, await sources.metrics()),
    LIMITS.pageEveryMs,
  );
  return {
    "GET /metrics": async () => await metrics.get(),
    "GET /health": health,
    "GET /healthz": health,
    "GET /ready": async () => await ready.get(),
    "GET /readyz": async () => await ready.get(),
    "GET /readiness": async () => await ready.get(),
    "GET /healthz-*": async ({ rest }) => probeResponse(await sources.probe(rest)),
  };
}

function probeResponse(result: ProbeResult | undefined): TextResponse {
  const { isHealthy, text } = result ?? {
    isHealthy: false,
    text: "no probe has this page: see the setting health-probes",
  };
  const status = result === undefined ? NOT_FOUND : isHealthy ? OK : UNAVAILABLE;
  return new TextResponse(status, "text/plain; charset=utf-8", `${printable(text)}\n`);
}
