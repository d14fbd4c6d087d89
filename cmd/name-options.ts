/**
 * What the commands have in common that ask for a name in a container: how name, type and place are said.
 */
import { isIP } from "node:net";

import type { Command } from "commander";

import { Fault } from "../src/base/lib/fault.ts";
import type { NameRequest } from "../src/api/names.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./control-options.ts";

export interface NameOptions extends ControlOptions {
  readonly in?: string;
  readonly type?: string;
  readonly x?: boolean;
}

export function addNameOptions(command: Command): Command {
  command
    .argument("<name>", "what to ask for; of an address, the name that belongs to it")
    .option("--in <container>", "where to ask: a container's name, or the beginning of its id")
    .option("-t, --type <type>", 'A, AAAA, MX, TXT ..., or TYPE and its number (default: "A", of an address "PTR")')
    .option("-x", "NAME is an address: ask for the name that belongs to it");
  return addJsonOption(addControlOptions(command));
}

export function nameRequestOf(
  name: string,
  { in: container, type, x: isReverse }: NameOptions,
  verb: string,
): NameRequest {
  if (container === undefined || container === "") {
    throw new Fault(
      "USAGE",
      `In which container? A name may mean something else in each: dns11 ${verb} ${name} --in CONTAINER`,
      {
        remedy: "dns11 status lists them.",
      },
    );
  }
  if (isReverse === true && (isIP(name.split("%", 1)[0] ?? "") === 0 || type !== undefined)) {
    throw new Fault(
      "USAGE",
      `-x wants an address and no type, and was given "${name}"${type === undefined ? "" : ` and ${type}`}`,
    );
  }
  return { container, name, ...(type !== undefined && { type }) };
}
