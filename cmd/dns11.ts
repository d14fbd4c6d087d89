#!/usr/bin/env node
/**
 * dns11: refuses a Node that is too old, before it loads what such a one cannot run, and runs the command line.
 */
import { oldNodeText } from "../src/base/lib/node-version.ts";

const CANNOT_WORK_HERE = 3;

const refusal = oldNodeText();
if (refusal === undefined) await import("./command-line.ts");
else {
  process.stderr.write(`dns11: ${refusal}\n`);
  process.exitCode = CANNOT_WORK_HERE;
}
