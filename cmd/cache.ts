/**
 * dns11 cache: statistics of the reply cache, and flushing it.
 */
import type { Command } from "commander";

import type { CacheReport, FlushReport } from "../src/api/cache.ts";
import { type ProjectOptions, addProjectOption, namesOfProject } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { jsonLine } from "./printable.ts";
import { type Column, table } from "./table.ts";
import { type Display, displayOf } from "./terminal.ts";

const OFF = "the cache is off (switch cache; --strict turns it off)\n";
const KIB = 1024;
const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "ENTRIES", isNumber: true },
  { title: "SIZE" },
  { title: "HITS", isNumber: true },
];

export function addCache(program: Command): void {
  const cache = program
    .command("cache")
    .description("Show cache statistics (stats) or empty it (flush)")
    .helpCommand(false);
  const stats = cache
    .command("stats")
    .description("Show cache size, hits and misses, in total and per container")
    .exitOverride();
  addJsonOption(addControlOptions(addProjectOption(stats))).action(async (options: ControlOptions & ProjectOptions) => {
    const client = await clientFor(options);
    const report = ofProject(await client.cache(), await namesOfProject(client, options));
    process.stdout.write(options.json === true ? jsonLine(report) : reportText(report, displayOf(process.stdout)));
  });
  const flush = cache
    .command("flush")
    .description("Remove the entries of one name (all types), or all entries; replies in flight are not cached either")
    .argument("[name]", "the name to remove; all names if omitted")
    .exitOverride();
  addJsonOption(addControlOptions(flush)).action(async (name: string | undefined, options: ControlOptions) => {
    const report = await (await clientFor(options)).flushCache(name);
    process.stdout.write(options.json === true ? jsonLine(report) : flushText(report));
  });
}

/** The counters above the containers are those of the whole cache. */
function ofProject(report: CacheReport, names: ReadonlySet<string> | undefined): CacheReport {
  if (names === undefined) return report;
  return { ...report, containers: report.containers.filter(({ container }) => names.has(container ?? "")) };
}

function reportText(report: CacheReport, display: Display): string {
  if (!report.isCaching) return OFF;
  const { entries, bytes, bytesMax, hits, misses, stale, failures, prefetches, evictions, containers } = report;
  const lookups = hits + misses;
  const share = lookups === 0 ? "" : ` (${Math.round((100 * hits) / lookups)} %)`;
  const head =
    `${entries} entries, ${kib(bytes)} of ${kib(bytesMax)}\n` +
    `${hits} hits${share}, ${misses} misses, ${stale} stale, ${failures} cached failures\n` +
    `${prefetches} prefetches, ${evictions} evictions\n`;
  const rows = containers.map((each) => [
    each.container ?? "(removed)",
    String(each.entries),
    kib(each.bytes),
    String(each.hits),
  ]);
  return rows.length === 0 ? head : `${head}\n${table(HEAD, rows, display)}`;
}

function flushText({ isCaching, name, replies, inFlight }: FlushReport): string {
  if (!isCaching) return OFF;
  const scope = name === null ? "" : ` for ${name}`;
  const pending =
    inFlight === 0 ? "" : `; ${inFlight} in-flight ${inFlight === 1 ? "reply" : "replies"} will not be cached`;
  return `${replies} ${replies === 1 ? "entry" : "entries"}${scope} removed${pending}\n`;
}

function kib(bytes: number): string {
  return `${(bytes / KIB).toFixed(bytes < 10 * KIB ? 1 : 0)} KiB`;
}
