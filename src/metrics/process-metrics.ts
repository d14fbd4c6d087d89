/**
 * ProcessMetrics: the standard process metrics of Prometheus clients, read from /proc at each scrape.
 */
import { readFileSync, readdirSync, statSync } from "node:fs";

import type { Family } from "./exposition.ts";

const USEC = 1_000_000;
/** Computed only once: a value that moves with the clock would look like a restart. */
const START_SECONDS = Date.now() / 1_000 - process.uptime();

export function processFamilies(descriptorsMax: number): Family[] {
  const { user, system } = process.cpuUsage();
  return [
    one("process_cpu_seconds_total", "counter", "Total user and system CPU time in seconds.", (user + system) / USEC),
    one("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", process.memoryUsage.rss()),
    one(
      "process_start_time_seconds",
      "gauge",
      "Start time of the process since the Unix epoch in seconds.",
      START_SECONDS,
    ),
    one("process_open_fds", "gauge", "Number of open file descriptors.", openDescriptors()),
    ...(Number.isFinite(descriptorsMax)
      ? [one("process_max_fds", "gauge", "Maximum number of open file descriptors.", descriptorsMax)]
      : []),
    one("process_threads", "gauge", "Number of threads.", threads()),
  ];
}

/** Since Linux 6.2 the kernel has their number. To list the ten thousand of a thousand containers takes milliseconds. */
function openDescriptors(): number {
  return statSync("/proc/self/fd").size || readdirSync("/proc/self/fd").length;
}

function threads(): number {
  return Number(/^Threads:\s*(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0);
}

function one(name: string, type: Family["type"], help: string, value: number): Family {
  return { name, type, help, values: [{ labels: {}, value }] };
}
