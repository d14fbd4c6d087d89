/**
 * Watch: repeats what a command prints until it is stopped: on a terminal in place, otherwise one output after the other.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { type Command, Option } from "commander";

import { abortOnSignal } from "../process/own-process.ts";
import { Screen } from "./screen.ts";

export interface WatchOptions {
  readonly watch?: boolean;
  readonly json?: boolean;
}

const EVERY_MS = 2_000;

export function addWatchOption(command: Command): Command {
  return command.addOption(new Option("--watch", "repeat every 2 seconds; q ends it"));
}

/** Prints what `read` returns, once or again and again. */
export async function printOrWatch(options: WatchOptions, read: () => Promise<string>): Promise<void> {
  if (options.watch !== true) process.stdout.write(await read());
  else if (process.stdout.isTTY && options.json !== true) await watchOnScreen(read);
  else await watchLines(read);
}

async function watchLines(read: () => Promise<string>): Promise<void> {
  const signal = abortOnSignal();
  while (!signal.aborted) {
    process.stdout.write(await read());
    await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function watchOnScreen(read: () => Promise<string>): Promise<void> {
  const quit = new AbortController();
  const signal = AbortSignal.any([abortOnSignal(), quit.signal]);
  // The first output, or its error, before the screen is taken.
  let text = await read();
  const draw = (): void => screen.draw(text.trimEnd().split("\n"));
  const screen = new Screen(() => quit.abort(), draw);
  try {
    while (!signal.aborted) {
      draw();
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) text = await read();
    }
  } finally {
    screen.close();
  }
}
