/**
 * dns11 lookup: asks for a name from inside a container, as a program in there would, and shows the answer. It tells what
 * is, whoever answers there; why dns11 answers what it does is told by dns11 explain.
 */
import type { Command } from "commander";

import type { Lookup } from "../src/api/names.ts";
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
    .description("Ask for a name from inside a container, of the nameservers that its own resolv.conf names");
  addNameOptions(command)
    .option("--tcp", "ask by TCP")
    .option("--search", "complete the name by the search list of the container's resolv.conf, as programs do")
    .option("--fail", `exit with ${EXIT.failure} unless there is an answer with records`)
    .action(async (name: string, options: LookupOptions) => {
      const { tcp = false, search = false, fail, json } = options;
      const order = { ...nameRequestOf(name, options, "lookup"), tcp, search };
      const found = await (await clientFor(options)).lookup(order);
      process.stdout.write(json === true ? `${JSON.stringify(found)}\n` : printableText(lookupText(found)));
      if (found.rcode === null) process.exitCode = EXIT.noReply;
      else if (fail === true && found.answers.length === 0) process.exitCode = EXIT.failure;
    });
}

function lookupText(found: Lookup): string {
  const { question, container, rcode, server, protocol, ms, attempts } = found;
  const what = `${question.name} ${question.type} in "${container.name}"`;
  const head =
    rcode === null
      ? `${what}: no reply in ${milliseconds(ms)}\n`
      : `${what}: ${rcode} from ${server} by ${protocol} in ${milliseconds(ms)}${emptyText(found)}\n`;
  return `${head}${replyLines(found)}${attempts.length > 1 || rcode === null ? attemptsText(attempts) : ""}`;
}

function emptyText({ rcode, answers }: Lookup): string {
  return rcode === "NOERROR" && answers.length === 0 ? ", without records of this type" : "";
}

function attemptsText(attempts: Lookup["attempts"]): string {
  const rows = attempts.map(({ name, server, protocol, ms, outcome }) => [
    name,
    server,
    protocol,
    milliseconds(ms),
    outcome,
  ]);
  return `asked:\n${table(["NAME", "SERVER", "BY", "TIME", "CAME"], rows)}`;
}
