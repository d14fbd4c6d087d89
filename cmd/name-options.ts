/**
 * Options shared by the commands that query a name in a container: name, type and container.
 */
import { isIP } from "node:net";

import type { Command } from "commander";

import { Fault } from "../src/base/lib/fault.ts";
import type { NameRequest } from "../src/api/names.ts";
import { type ProjectOptions, addEachOption, addProjectOption } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, addJsonOption } from "./control-options.ts";

export interface NameOptions extends ControlOptions, ProjectOptions {
  readonly in?: string;
  readonly all?: boolean;
  readonly type?: string;
  readonly x?: boolean;
}

export function addNameOptions(command: Command): Command {
  command
    .argument("<name>", "the name to query, or an IP address for a reverse lookup")
    .option("--in <container>", "container to query from (required): its name, Compose service or ID")
    .option("-t, --type <type>", 'record type: A, AAAA, MX, TXT ..., or TYPEnnn (default: "A", for an address "PTR")')
    .option("-x", "reverse lookup; NAME must be an IP address");
  return addJsonOption(addControlOptions(addEachOption(addProjectOption(command))));
}

export function nameRequestOf(
  name: string,
  { in: container, type, x: isReverse }: NameOptions,
  command: string,
): NameRequest {
  if (container === undefined || container === "") {
    throw new Fault("USAGE", `Container missing: use dns11 ${command} ${name} --in CONTAINER`, {
      remedy: "A name may resolve differently in each container. dns11 ps lists them.",
    });
  }
  if (isReverse === true && (isIP(name.split("%", 1)[0] ?? "") === 0 || type !== undefined)) {
    throw new Fault(
      "USAGE",
      `-x requires an IP address and no type, but got "${name}"${type === undefined ? "" : ` and type ${type}`}`,
      { remedy: "Give an address without -t." },
    );
  }
  return { container, name, ...(type !== undefined && { type }) };
}
