/**
 * What a page of the documents has for its reader to copy: files, and commands with what they print. Tests run it as it is printed.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { waitFor } from "../rig/wait.ts";
import { tryOnHost } from "./compose-project.ts";
import type { Engine } from "./engine.ts";

/** What is typed, and what its output must have, line by line. */
export interface PrintedCommand {
  readonly line: string;
  readonly output: readonly string[];
}

export interface PrintedBlock {
  /** As in the fence: text, yaml, console. */
  readonly kind: string;
  readonly text: string;
  /** The last piece of code before it, which is the name of a file. */
  readonly name: string;
}

/** The blocks below a heading, in their order. */
export function printedBlocks(path: string, title: string): PrintedBlock[] {
  const section = readFileSync(path, "utf8")
    .split(/^## /m)
    .find((each) => each.startsWith(`${title}\n`));
  assert.ok(section !== undefined, `${path} has no "${title}"`);
  return [...section.matchAll(/```(\w+)\n([\s\S]*?)```/g)].map(({ 1: kind = "", 2: text = "", index }) => {
    const spans = [
      ...section
        .slice(0, index)
        .replaceAll(/```[\s\S]*?```/g, "")
        .matchAll(/`([^`\n]+)`/g),
    ];
    return { kind, text, name: spans.at(-1)?.[1] ?? "" };
  });
}

export function commandsOf(text: string): PrintedCommand[] {
  const typed = text.split(/^\$ /m).slice(1);
  assert.ok(typed.length > 0);
  return typed.map((each) => {
    const [line = "", ...output] = each.trimEnd().split("\n");
    return { line, output: output.filter((one) => one !== "") };
  });
}

/** Until it prints what the page has: services have been started, and need a moment until they serve. Without output it has to succeed. */
export async function runAsPrinted(engine: Engine, folder: string, { line, output }: PrintedCommand): Promise<void> {
  let last = "";
  const isAsPrinted = async (): Promise<true | undefined> => {
    const { stdout, stderr, code } = await tryOnHost(engine, `cd ${folder} && ${line}`);
    last = `${code}: ${stdout}${stderr}`;
    if (output.length === 0) return code === 0 ? true : undefined;
    const lines = new Set(`${stdout}\n${stderr}`.split("\n").map((each) => each.trim().replaceAll(/\s+/g, " ")));
    return output.every((each) => lines.has(each)) ? true : undefined;
  };
  try {
    await waitFor(`"${output.join(", ")}" from ${line}`, isAsPrinted);
  } catch (error) {
    throw new Error(`the last time it printed ${last}`, { cause: error });
  }
}
