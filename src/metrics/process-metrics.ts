/**
 * What every process tells of itself to Prometheus, by the names that all its clients use. Read when asked, from /proc.
 */
import { readFileSync, readdirSync } from "node:fs";

import type { Family } from "./exposition.ts";

const USEC = 1_000_000;
/** Once: what is computed at each scrape moves with the clock, and would look like a restart. */
const START_SECONDS = Date.now() / 1_000 - process.uptime();

export function processFamilies(descriptorsMax: number): Family[] {
  const { user, system } = process.cpuUsage();
  return [
    one("process_cpu_seconds_total", "counter", "Time of the processor that was spent.", (user + system) / USEC),
    one("process_resident_memory_bytes", "gauge", "Memory that the process has.", process.memoryUsage.rss()),
    one("process_start_time_seconds", "gauge", "When the process began, since 1970.", START_SECONDS),
    one("process_open_fds", "gauge", "Files and sockets that are open.", readdirSync("/proc/self/fd").length),
    ...(Number.isFinite(descriptorsMax)
      ? [one("process_max_fds", "gauge", "Files and sockets that may be open.", descriptorsMax)]
      : []),
    one("process_threads", "gauge", "Threads of the process.", threads()),
  ];
}

function threads(): number {
  return Number(/^Threads:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0);
}

function one(name: string, type: Family["type"], help: string, value: number): Family {
  return { name, type, help, values: [{ labels: {}, value }] };
}
