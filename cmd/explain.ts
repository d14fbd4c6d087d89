/**
 * dns11 explain: how dns11 resolves a name for a container: every layer that the question passed, in order, and why.
 */
import type { Command } from "commander";

import type { ExplainedStep, Explanation } from "../src/api/names.ts";
import { causeLines } from "./cause-lines.ts";
import { requestsFor } from "./container-argument.ts";
import { clientFor } from "./control-options.ts";
import { type NameOptions, addNameOptions, nameRequestOf } from "./name-options.ts";
import { milliseconds, replyLines } from "./reply.ts";
import { printableText } from "./printable.ts";
import { table } from "./table.ts";

export function addExplain(program: Command): void {
  const command = program
    .command("explain")
    .summary("Explain how a name resolves, or why it fails")
    .description("Explain, step by step, how dns11 resolves a name for a container, or why it fails");
  addNameOptions(command).action(async (name: string, options: NameOptions) => {
    const client = await clientFor(options);
    for (const request of await requestsFor(client, nameRequestOf(name, options, "explain"), options)) {
      const explained = await client.explain(request);
      process.stdout.write(
        options.json === true ? `${JSON.stringify(explained)}\n` : printableText(explanationText(explained)),
      );
    }
  });
}

/** The verdict first: the answer, why, and what to do; then how it came about. */
function explanationText(explained: Explanation): string {
  const { container, question, networks, steps, answeredBy, server, ms, reply, causes } = explained;
  const { name, sharedWith } = container;
  const shared = sharedWith === undefined ? "" : ` (network namespace of "${sharedWith}")`;
  const head = `${question.name} ${question.type} in "${name}"${shared}, networks: ${networks.join(", ") || "none"}\n`;
  const rows = steps.flatMap((step) => [row(step), ...eventRows(step)]);
  const from =
    answeredBy === "servers" && server !== null ? server : (answeredBy ?? "dns11, as no layer had an answer");
  const answer =
    reply === null ? `no reply after ${milliseconds(ms)}\n` : `${reply.rcode} from ${from} in ${milliseconds(ms)}\n`;
  const why = causes.map((each) => `${causeLines(each).join("\n")}\n`).join("");
  return `${head}${answer}${why}${reply === null ? "" : replyLines(reply)}\n${table(["STEP", "ANSWERED", "WHY"], rows)}`;
}

function row({ layer, isAnswer, why }: ExplainedStep): string[] {
  return [layer, isAnswer ? "yes" : "no", why];
}

function eventRows({ events = [] }: ExplainedStep): string[][] {
  return events.map(({ atMs, server, what }) => [
    "",
    "",
    `${atMs.toFixed(1).padStart(8)} ms  ${server === undefined ? "" : `${server}: `}${what}`,
  ]);
}
