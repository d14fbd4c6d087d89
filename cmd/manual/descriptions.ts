/**
 * Descriptions of the exit codes, for the manual.
 */
import type { EXIT } from "../process/exit-code.ts";

export const EXIT_DESCRIPTIONS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "Success. For run: stopped by a signal, all containers handed back.",
  failure:
    "The operation failed, or there is no running dns11 to query; a doctor command found a problem; explain --fail found a name that does not resolve.",
  usage:
    "The command line, the environment or the settings file is invalid; there is no such container, node or project.",
  cannotServe: "dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere.",
  locked: "Another instance already serves this engine.",
  unchecked: "A doctor command found nothing wrong, and some checks could not be done.",
  noReply: "A lookup got no reply.",
};
