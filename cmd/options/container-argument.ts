/**
 * ContainerArgument: a container as people name it: by name, ID or Compose service, within a project if they say so. Commands
 * that filter take all containers of a service; those that ask one container take the first and say so, or each with --each.
 */
import type { Command } from "commander";

import type { ContainersRequest, ControlClient } from "../../src/api/control-client.ts";
import { codeOf, reasonOf } from "../../src/base/lib/fault.ts";
import {
  type NamedContainer,
  containersCalled,
  inProject,
  severalText,
} from "../../src/base/model/container-choice.ts";
import { printable } from "../text/printable.ts";

export interface ProjectOptions {
  readonly project?: string;
}

interface ChoiceOptions extends ProjectOptions {
  readonly each?: boolean;
}

export function addProjectOption(command: Command): Command {
  return command.option("-p, --project <project>", "only containers of this Compose project");
}

/** For commands that ask one container. */
export function addEachOption(command: Command): Command {
  return command.option("--each", "ask each container of the service, not only the first");
}

/** The containers that a request is about; all without a word and a project. */
export async function containersRequest(
  client: ControlClient,
  word: string | undefined,
  { project }: ProjectOptions,
): Promise<ContainersRequest> {
  if (word === undefined || word === "") return project === undefined ? {} : await projectRequest(client, project);
  const chosen = await runningOrNone(client, word, project);
  // dns11 may know one that has ended.
  if (chosen.length === 0) return { container: word };
  const [first, ...others] = chosen;
  if (first !== undefined && others.length === 0) return { container: first.id };
  note(severalText(word, chosen));
  return { service: word, ...(project !== undefined && { project }) };
}

/** Its containers may have ended, or start later. But it may be a typo. */
async function projectRequest(client: ControlClient, project: string): Promise<ContainersRequest> {
  try {
    inProject((await client.status()).containers, project);
  } catch (error) {
    if (codeOf(error) !== "NO_SUCH_PROJECT") throw error;
    note(reasonOf(error));
  }
  return { project };
}

/** The containers to ask, of those that are running. */
export function containersToAsk(
  running: readonly NamedContainer[],
  word: string,
  { project, each }: ChoiceOptions,
): readonly NamedContainer[] {
  return withoutOthers(containersCalled(running, word, project), word, each);
}

/** The names of a project's containers; undefined for all containers. */
export async function namesOfProject(
  client: ControlClient,
  { project }: ProjectOptions,
): Promise<ReadonlySet<string> | undefined> {
  if (project === undefined) return undefined;
  return new Set(inProject((await client.status()).containers, project).map(({ name }) => name));
}

/** The first of several, unless all are wanted. */
function withoutOthers<T extends NamedContainer>(chosen: readonly T[], word: string, isEach = false): readonly T[] {
  const [first, ...others] = chosen;
  if (first === undefined || others.length === 0 || isEach) return chosen;
  note(`${severalText(word, chosen)}; using ${first.name} (--each uses all of them)`);
  return [first];
}

async function runningOrNone(
  client: ControlClient,
  word: string,
  project: string | undefined,
): Promise<NamedContainer[]> {
  const { containers } = await client.status();
  try {
    return containersCalled(containers, word, project);
  } catch (error) {
    if (project === undefined && codeOf(error) === "NO_SUCH_CONTAINER") return [];
    throw error;
  }
}

/** On stderr, so that the output stays what was asked for. */
export function note(text: string): void {
  process.stderr.write(`dns11: ${printable(text)}\n`);
}
