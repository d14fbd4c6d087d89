/**
 * ContainerTexts: what a bug report needs from inside each container: the lines of its resolv.conf that the C library reads,
 * and dns11's rules.
 */
import type { ContainerFact } from "../../container/facts/fact.ts";
import { shortened } from "../../base/lib/shortened.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { tableListing } from "../../container/rules/table-listing.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { readContainerResolvConf } from "../container-resolv-conf.ts";
import { inspectContainers } from "../inspected-container.ts";
import { type MachineOptions, checkMachine } from "../machine-check.ts";

export interface ContainerTexts {
  readonly facts: readonly ContainerFact[];
  readonly resolvConfs: string;
  readonly rules: string;
}

const DIRECTIVE = /^\s*(?:nameserver|search|domain|options|sortlist)\s/;
const LINES_MAX = 20;
const LINE_CHARS_MAX = 500;
const CONTAINERS_MAX = 200;

/** undefined if the containers cannot be read; the doctor's findings say why. */
export async function readContainerTexts(options: MachineOptions): Promise<ContainerTexts | undefined> {
  const { context } = await checkMachine(options);
  if (context === undefined) return undefined;
  try {
    const inspected = await inspectContainers(context);
    const facts = inspected.map(({ fact }) => fact);
    const resolvConfs: string[] = [];
    const rules: string[] = [];
    for (const { fact, namespaceKind } of inspected.slice(0, CONTAINERS_MAX)) {
      if (namespaceKind === "elsewhere") continue;
      const { text, origin } = readContainerResolvConf(fact, context);
      resolvConfs.push(`# ${fact.name} (${origin})\n${directivesIn(text)}`);
      const { id: containerId, sandboxKey, pid } = fact;
      rules.push(`# ${fact.name}\n${rulesIn({ containerId, sandboxKey, pid }, context)}`);
    }
    return { facts, resolvConfs: resolvConfs.join("\n"), rules: rules.join("\n") };
  } finally {
    context.close();
  }
}

function directivesIn(text: string | undefined): string {
  if (text === undefined) return "(cannot be read)\n";
  const lines = text.split("\n").filter((line) => DIRECTIVE.test(line));
  return lines
    .slice(0, LINES_MAX)
    .map((line) => `${shortened(line, LINE_CHARS_MAX)}\n`)
    .join("");
}

type Context = NonNullable<Awaited<ReturnType<typeof checkMachine>>["context"]>;

function rulesIn(claim: Parameters<typeof proveNamespace>[0], { host, runner }: Context): string {
  let fd = -1;
  try {
    fd = proveNamespace(claim, host, runner.homeId).fd;
    return tableListing(fd);
  } catch (error) {
    return `(${reasonOf(error)})\n`;
  } finally {
    closeQuietly(fd);
  }
}
