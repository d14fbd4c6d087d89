/**
 * dns11 cache: statistics of the reply cache, its entries, and flushing it.
 */
import { type Command, InvalidArgumentError, Option } from "commander";

import type { CacheEntriesReport, CacheReport, FlushReport } from "../src/api/cache.ts";
import { type ProjectOptions, addProjectOption, namesOfProject } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption, clientFor } from "./options/control-options.ts";
import { jsonLine, printable } from "./text/printable.ts";
import { type Column, table } from "./text/table.ts";
import { type Display, PLAIN, displayOf } from "./text/terminal.ts";

const OFF = "the cache is off (cache.size: 0, or forward.order: docker, which strict sets)\n";
const KIB = 1024;
const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "ENTRIES", isNumber: true },
  { title: "SIZE" },
  { title: "HITS", isNumber: true },
];
const ENTRIES_HEAD: readonly Column[] = [
  { title: "NAME", min: 16 },
  { title: "TYPE" },
  { title: "EXPIRES", isNumber: true },
  { title: "CONTAINER", min: 12, drop: 2 },
  { title: "SIZE", drop: 3 },
  { title: "ANSWER" },
];
const SHOWN = 100;
const SHOWN_MAX = 1_000;

interface ShowOptions extends ControlOptions {
  readonly limit?: number;
}

export function addCache(program: Command): void {
  const cache = program
    .command("cache")
    .description("Show the reply cache (stats, show) or empty it (flush)")
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
  const show = cache
    .command("show")
    .description("Show the cached replies, by name")
    .argument("[pattern]", "only names that match it (* any text, ? one character); all names if omitted")
    .addOption(new Option("--limit <number>", `show at most so many (default: ${SHOWN})`).argParser(readCount))
    .exitOverride();
  addJsonOption(addControlOptions(show)).action(async (pattern: string | undefined, options: ShowOptions) => {
    const report = await (await clientFor(options)).cacheEntries(options.limit ?? SHOWN, pattern);
    const isJson = options.json === true;
    process.stdout.write(isJson ? jsonLine(report) : entriesText(report, pattern, displayOf(process.stdout)));
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
    `${many(entries, "entry", "entries")}, ${kib(bytes)} of ${kib(bytesMax)}\n` +
    `${many(hits, "hit", "hits")}${share}, ${many(misses, "miss", "misses")}, ${stale} stale, ${failures} cached failures\n` +
    `${prefetches} prefetches, ${evictions} evictions\n`;
  const rows = containers.map((each) => [
    each.container ?? "(removed)",
    String(each.entries),
    kib(each.bytes),
    String(each.hits),
  ]);
  return rows.length === 0 ? head : `${head}\n${table(HEAD, rows, display)}`;
}

function entriesText(
  { isCaching, entries, omitted }: CacheEntriesReport,
  pattern: string | undefined,
  display: Display = PLAIN,
): string {
  if (!isCaching) return OFF;
  if (entries.length === 0)
    return pattern === undefined ? "the cache is empty\n" : printable(`no cached name matches ${pattern}`) + "\n";
  const rows = entries.map(({ name, type, rcode, answers, expiresInS, bytes, container }) => [
    name,
    type,
    expiresInS < 0 ? "expired" : `${Math.round(expiresInS)} s`,
    container ?? "(removed)",
    kib(bytes),
    answers.length === 0 ? (rcode === "NOERROR" ? "no records of this type" : rcode) : answers.join(", "),
  ]);
  const more =
    omitted === 0
      ? ""
      : `${omitted} more ${omitted === 1 ? "entry is" : "entries are"} not shown (--limit, or a pattern)\n`;
  return table(ENTRIES_HEAD, rows, display) + more;
}

function readCount(text: string): number {
  if (/^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= SHOWN_MAX) return Number(text);
  throw new InvalidArgumentError(`Use a whole number from 1 to ${SHOWN_MAX}.`);
}

function flushText({ isCaching, name, replies, inFlight }: FlushReport): string {
  if (!isCaching) return OFF;
  const scope = name === null ? "" : ` for ${name}`;
  const pending =
    inFlight === 0 ? "" : `; ${inFlight} in-flight ${inFlight === 1 ? "reply" : "replies"} will not be cached`;
  return `${many(replies, "entry", "entries")}${scope} removed${pending}\n`;
}

function many(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}`;
}

function kib(bytes: number): string {
  return `${(bytes / KIB).toFixed(bytes < 10 * KIB ? 1 : 0)} KiB`;
}
