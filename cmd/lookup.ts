/**
 * dns11 lookup: resolves a name from inside a container, as a program in it would, and prints the reply. It reports what
 * the container gets, whichever server answers; `dns11 explain` reports why.
 */
import type { Command } from "commander";

import type { Lookup } from "../src/api/names.ts";
import { requestsFor } from "./container-argument.ts";
import { clientFor } from "./control-options.ts";
import { EXIT } from "./exit-code.ts";
import { type NameOptions, addNameOptions, nameRequestOf } from "./name-options.ts";
import { printableText } from "./printable.ts";
import { milliseconds, replyLines } from "./reply.ts";
import { table } from "./table.ts";

interface LookupOptions extends NameOptions {
  readonly tcp?: boolean;
  readonly search?: boolean;
  readonly fail?: boolean;
}

export function addLookup(program: Command): void {
  const command = program
    .command("lookup")
    .summary("Resolve a name from inside a container")
    .description("Resolve a name from inside a container, using the nameservers of its own resolv.conf");
  addNameOptions(command)
    .option("--tcp", "query over TCP")
    .option("--search", "apply the search list of the container's resolv.conf, as programs do")
    .option("--fail", `exit with ${EXIT.failure} unless the reply has records`)
    .action(async (name: string, options: LookupOptions) => {
      const { tcp = false, search = false, fail, json } = options;
      const lookupRequest = { ...nameRequestOf(name, options, "lookup"), tcp, search };
      const client = await clientFor(options);
      for (const request of await requestsFor(client, lookupRequest, options)) {
        const found = await client.lookup(request);
        process.stdout.write(json === true ? `${JSON.stringify(found)}\n` : printableText(lookupText(found)));
        if (found.rcode === null) process.exitCode = EXIT.noReply;
        else if (fail === true && found.answers.length === 0) process.exitCode ??= EXIT.failure;
      }
    });
}

function lookupText(found: Lookup): string {
  const { question, container, rcode, server, protocol, ms, attempts } = found;
  const what = `${question.name} ${question.type} in "${container.name}"`;
  const head =
    rcode === null
      ? `${what}: no reply after ${milliseconds(ms)}\n`
      : `${what}: ${rcode} from ${server} over ${protocol} in ${milliseconds(ms)}${emptyText(found)}\n`;
  return `${head}${replyLines(found)}${attempts.length > 1 || rcode === null ? attemptsText(attempts) : ""}`;
}

function emptyText({ rcode, answers }: Lookup): string {
  return rcode === "NOERROR" && answers.length === 0 ? ", no records of this type" : "";
}

function attemptsText(attempts: Lookup["attempts"]): string {
  const rows = attempts.map(({ name, server, protocol, ms, outcome }) => [
    name,
    server,
    protocol,
    milliseconds(ms),
    outcome,
  ]);
  return `queries:\n${table(["NAME", "SERVER", "OVER", "TIME", "RESULT"], rows)}`;
}
