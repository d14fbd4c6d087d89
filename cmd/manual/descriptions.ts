/**
 * Descriptions of the exit codes, for the manual.
 */
import type { EXIT } from "../exit-code.ts";

export const EXIT_DESCRIPTIONS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "Success. For run: stopped by a signal, all containers handed back.",
  failure: "The operation failed, or a check found a problem.",
  usage:
    "The command line, the environment or the settings file is invalid; there is no such container, node or project. For the doctor commands: some checks could not be done.",
  cannotServe: "dns11 cannot work here: capabilities, kernel, platform, or an engine whose namespaces are elsewhere.",
  locked: "Another instance already serves this engine.",
  noReply: "A lookup got no reply.",
};
