/**
 * Fixes: what to do about a cause, as a command and in the words of a Compose file. Names in a command are quoted for a
 * shell, because the reader copies it.
 */
import type { Cause, LastingFix } from "../../api/causes.ts";
import type { ComposeServiceText } from "../../base/model/compose.ts";
import { commandOf } from "../../base/lib/text.ts";
import type { KnownContainer } from "./known-container.ts";

/** What Compose accepts as the name of a project or a service. */
const COMPOSE_NAME = /^[a-zA-Z0-9][\w.-]*$/;
/** Files in one command. */
const FILES_MAX = 4;
const FILE_LENGTH_MAX = 200;
/** A label may hold any bytes; in a terminal, a command must be what it looks like. */
const PLAIN_PATH = /^[\P{C}]+$/u;

/** Makes the container of a service again: `up` alone does not if its part of the file is as it was. */
export function recreateCommand(container: KnownContainer): string | undefined {
  return composeCommand(container, "--force-recreate");
}

/** Applies a change of the Compose file, or makes the container that is not there. */
export function upCommand(
  container: Pick<KnownContainer, "compose">,
  ...options: readonly string[]
): string | undefined {
  return composeCommand(container, ...options);
}

/** As whoever ran Compose may run it again, in any folder; undefined if its labels are not what Compose writes. */
function composeCommand(
  { compose }: Pick<KnownContainer, "compose">,
  ...options: readonly string[]
): string | undefined {
  if (compose === undefined) return undefined;
  const { project, service, files, folder } = compose;
  const isKnown = files.length > 0 && files.length <= FILES_MAX && files.every((file) => isPath(file));
  if (!isKnown || !COMPOSE_NAME.test(project) || !COMPOSE_NAME.test(service)) return undefined;
  const isElsewhere = folder !== undefined && folder !== folderOf(files[0] ?? "");
  if (isElsewhere && !isPath(folder)) return undefined;
  return commandOf(
    ...["docker", "compose", "-p", project],
    ...(isElsewhere ? ["--project-directory", folder] : []),
    ...files.flatMap((file) => ["-f", file]),
    ...["up", "-d", ...options, service],
  );
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function isPath(text: string): boolean {
  return text.startsWith("/") && text.length <= FILE_LENGTH_MAX && PLAIN_PATH.test(text);
}

/** One change of a service of a container, in the file in which its key stands. */
export function serviceChange(
  container: Pick<KnownContainer, "compose" | "project">,
  key: string,
  change: string,
  command = upCommand(container),
): LastingFix | null {
  const { compose } = container;
  if (compose === undefined) return null;
  const text = definitionOf(container);
  const { file, service } = text?.keys.get(key.split(".", 1)[0] ?? "") ?? text?.location ?? compose;
  return { file, service, key: `services.${service}.${key}`, change, ...(command !== undefined && { command }) };
}

/** What the Compose files say of the service of a container; undefined if that is not known. */
export function definitionOf({
  compose,
  project,
}: Pick<KnownContainer, "compose" | "project">): ComposeServiceText | undefined {
  return compose === undefined ? undefined : project?.()?.services.get(compose.service);
}

/** A cause with its fix in one line. */
export function causeText({ sentence, fix, advice }: Cause): string {
  if (fix !== null) return `${sentence}; to fix it: ${fix}`;
  return advice === undefined ? sentence : `${sentence}; ${advice}`;
}
