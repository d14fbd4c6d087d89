/**
 * dns11 cache: what is kept of what servers said, and how to forget it.
 */
import type { Command } from "commander";

import type { CacheReport, FlushReport } from "../src/api/cache.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./control-options.ts";
import { table } from "./table.ts";

const OFF = "nothing is kept: the switch cache is off, as it is with --strict\n";
const KIB = 1024;

export function addCache(program: Command): void {
  const cache = program
    .command("cache")
    .description("Show what is kept of what servers said, or forget it")
    .helpCommand(false);
  const stats = cache
    .command("stats")
    .description("Show how much is kept, for whom, and what use it was")
    .exitOverride();
  addJsonOption(addControlOptions(stats)).action(async (options: ControlOptions) => {
    const report = await (await clientFor(options)).cache();
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : reportText(report));
  });
  const flush = cache
    .command("flush")
    .description("Forget what servers said of a name, with all its types, or of all names; what is on its way, too")
    .argument("[name]", "only this one")
    .exitOverride();
  addJsonOption(addControlOptions(flush)).action(async (name: string | undefined, options: ControlOptions) => {
    const report = await (await clientFor(options)).flushCache(name);
    process.stdout.write(options.json === true ? `${JSON.stringify(report)}\n` : flushText(report));
  });
}

function reportText(report: CacheReport): string {
  if (!report.isCaching) return OFF;
  const { entries, bytes, bytesMax, hits, misses, stale, failures, prefetches, evictions, containers } = report;
  const asked = hits + misses;
  const share = asked === 0 ? "" : ` (${Math.round((100 * hits) / asked)} %)`;
  const head =
    `${entries} replies, ${kib(bytes)} of ${kib(bytesMax)}\n` +
    `${hits} hits${share}, ${misses} misses, ${stale} stale, ${failures} failures told again\n` +
    `${prefetches} asked anew before they were over, ${evictions} thrown out to make room\n`;
  const rows = containers.map((each) => [
    each.container ?? "(gone)",
    String(each.entries),
    kib(each.bytes),
    String(each.hits),
  ]);
  return rows.length === 0 ? head : `${head}\n${table(["CONTAINER", "REPLIES", "SIZE", "HITS"], rows)}`;
}

function flushText({ isCaching, name, replies, inFlight }: FlushReport): string {
  if (!isCaching) return OFF;
  const whose = name === null ? "" : ` of ${name}`;
  const onTheWay = inFlight === 0 ? "" : `; ${inFlight} on the way will not be kept`;
  return `${replies} ${replies === 1 ? "reply" : "replies"}${whose} forgotten${onTheWay}\n`;
}

function kib(bytes: number): string {
  return `${(bytes / KIB).toFixed(bytes < 10 * KIB ? 1 : 0)} KiB`;
}
