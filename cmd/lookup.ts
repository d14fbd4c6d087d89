/**
 * dns11 lookup: resolves names from inside a container, as a program in it would, and prints the replies. It reports what
 * the container gets, whichever server answers; `dns11 explain` reports why. It needs no running dns11.
 */
import type { Command } from "commander";

import { type Lookup, recordsFor } from "../src/api/names.ts";
import { EXIT } from "./process/exit-code.ts";
import { askForNames } from "./options/name-client.ts";
import { type NameOptions, addNameOptions } from "./options/name-options.ts";
import { jsonLine, printable } from "./text/printable.ts";
import { loadReports } from "../src/features/load.ts";
import { type OwnerReports, milliseconds, replyLines } from "./text/reply.ts";
import { table } from "./text/table.ts";
import { type Display, displayOf } from "./text/terminal.ts";

interface LookupOptions extends NameOptions {
  readonly tcp?: boolean;
  readonly search?: boolean;
  readonly fail?: boolean;
}

export function addLookup(program: Command): void {
  const command = program
    .command("lookup")
    .summary("Resolve a name from inside a container")
    .description(
      "Resolve names from inside a container, using the nameservers of its own resolv.conf; works without a running dns11",
    );
  addNameOptions(command)
    .option("--tcp", "query over TCP")
    .option("--search", "apply the search list of the container's resolv.conf, as programs do")
    .option("--fail", `exit with ${EXIT.failure} unless each reply has records`)
    .action(async (words: readonly string[], options: LookupOptions) => await lookup(words, options));
}

async function lookup(words: readonly string[], options: LookupOptions): Promise<void> {
  const { tcp = false, search = false } = options;
  const found = await askForNames(
    words,
    options,
    "lookup",
    async (client, each) => await client.lookup({ ...each, tcp, search }),
  );
  const reports = options.json === true ? [] : await loadReports();
  const texts =
    options.json === true
      ? found.map(jsonLine).join("")
      : found.map((each) => lookupText(each, reports, displayOf(process.stdout))).join("\n");
  process.stdout.write(texts);
  if (found.some(({ rcode }) => rcode === null)) process.exitCode = EXIT.noReply;
  else if (options.fail === true && found.some((each) => !hasRecords(each))) process.exitCode = EXIT.failure;
}

function lookupText(found: Lookup, reports: OwnerReports, display: Display): string {
  const { question, container, rcode, server, protocol, ms, attempts, owners } = found;
  const what = `${question.name} ${question.type} in "${container.name}"`;
  const head =
    rcode === null
      ? `${what}: no reply after ${milliseconds(ms)}`
      : `${what}: ${rcode} from ${server} over ${protocol} in ${milliseconds(ms)}${emptyText(found)}`;
  const queries = attempts.length > 1 || rcode === null ? attemptsText(attempts, display) : "";
  return `${printable(head)}\n${replyLines(found, owners, reports, display)}${queries}`;
}

function emptyText(found: Lookup): string {
  return found.rcode === "NOERROR" && !hasRecords(found) ? ", no records of this type" : "";
}

function hasRecords(found: Lookup): boolean {
  return recordsFor(found, found.question.type).length > 0;
}

function attemptsText(attempts: Lookup["attempts"], display: Display): string {
  const rows = attempts.map(({ name, server, protocol, ms, outcome }) => [
    name,
    server,
    protocol,
    milliseconds(ms),
    outcome,
  ]);
  return `queries:\n${table(["NAME", "SERVER", "OVER", "TIME", "RESULT"], rows, display)}`;
}
