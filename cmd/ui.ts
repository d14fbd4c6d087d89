/**
 * dns11 ui: the page in a browser, or a snapshot of it as a folder.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { type Command, InvalidArgumentError, Option } from "commander";

import type * as ClientModules from "./modules/client-modules.ts";
import { type ControlOptions, addControlOptions, noteSilence } from "./options/control-options.ts";
import { onThisPlatform } from "./modules/platform.ts";
import { printableText } from "./text/printable.ts";
import { abortOnSignal } from "./process/own-process.ts";
import type * as UiModules from "./modules/ui-modules.ts";

interface UiOptions extends ControlOptions {
  readonly port: number;
  readonly open: boolean;
  readonly static?: string;
  readonly redact: boolean;
}

const DEFAULT_PORT = 9512;
const PORT_MAX = 65_535;
const KIB = 1024;

export function addUi(program: Command): void {
  const command = program
    .command("ui")
    .summary("Show what fails and why on a page in the browser")
    .description("Show a page in the browser on 127.0.0.1, for as long as the command runs")
    .addOption(
      new Option("--port <port>", "port of 127.0.0.1; 0 for any free one").default(DEFAULT_PORT).argParser(readPort),
    )
    .option("--no-open", "only print the URL")
    .option("--static <folder>", "write what the page shows now to a new folder instead, for bug reports")
    .option("--no-redact", "with --static, keep names and addresses as they are");
  addControlOptions(command).action(async (options: UiOptions) => {
    await (options.static === undefined ? serve(options) : writeStatic(options, options.static));
  });
}

async function serve(options: UiOptions): Promise<void> {
  const { ControlClient, locateControl, UiServer, readPageFiles } = await modules();
  const socketPath = await locateControl(options.stateDir, options.host, noteSilence);
  // Errors are clearer in the terminal than in the page.
  await new ControlClient(socketPath).status();
  const host = options.host === undefined ? [] : [`--host=${options.host}`];
  // Where this was started as docker's plugin, it has other arguments.
  const program = fileURLToPath(new URL("dist/cmd/dns11.js", import.meta.resolve("dns11/package.json")));
  const doctor = [process.execPath, program, "doctor", "--json-lines", `--state-dir=${options.stateDir}`, ...host];
  const server = await UiServer.listen({ port: options.port, socketPath, files: readPageFiles(), doctor });
  const signal = abortOnSignal();
  process.stdout.write(`${server.url}\n`);
  process.stderr.write("The page is served until this command ends: Ctrl-C ends it.\n");
  const closeBrowser = options.open && hasBrowser(process.env) ? openBrowser(server.url) : () => undefined;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  closeBrowser();
  server.close();
}

async function writeStatic(options: UiOptions, path: string): Promise<void> {
  const { ControlClient, SnapshotFolder, locateControl, readPageFiles, readSnapshot, redactSnapshot } = await modules();
  const snapshot = await readSnapshot(
    new ControlClient(await locateControl(options.stateDir, options.host, noteSilence)),
  );
  const folder = new SnapshotFolder(path, readPageFiles());
  const { files, bytes } = folder.write(options.redact ? redactSnapshot(snapshot) : snapshot);
  const names = options.redact ? "names and public addresses are replaced" : "names and addresses are not replaced";
  const size = `${files} files, ${Math.ceil(bytes / KIB)} KiB`;
  process.stderr.write(
    printableText(`wrote ${join(path, "index.html")} (${size}); ${names}: look at it before you share it\n`),
  );
}

async function modules(): Promise<typeof UiModules & typeof ClientModules> {
  const load = async (): Promise<typeof UiModules & typeof ClientModules> => ({
    ...(await import("./modules/ui-modules.ts")),
    ...(await import("./modules/client-modules.ts")),
  });
  return await onThisPlatform(load);
}

/** A desktop of the user: root's browser would run with root's rights, and behind SSH there is none. */
function hasBrowser(env: NodeJS.ProcessEnv): boolean {
  const hasDisplay = Boolean(env["DISPLAY"] ?? env["WAYLAND_DISPLAY"]);
  return process.getuid?.() !== 0 && hasDisplay && env["SSH_CONNECTION"] === undefined && env["SSH_TTY"] === undefined;
}

/**
 * Opens a file of the user that leads to the page, because every user of the machine can read the arguments of a program, and the URL
 * has the token. Returns a function that removes it.
 */
function openBrowser(url: string): () => void {
  const folder = mkdtempSync(join(process.env["XDG_RUNTIME_DIR"] ?? tmpdir(), "dns11-ui-"));
  const file = join(folder, "open.html");
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0;url=${url}">\n`, {
    mode: 0o600,
    flag: "wx",
  });
  const child = spawn("xdg-open", [file], { stdio: "ignore", detached: true });
  const report = (): void => void process.stderr.write("Cannot start a browser (xdg-open): open the URL yourself.\n");
  child.on("error", report);
  child.on("exit", (code) => code !== 0 && report());
  child.unref();
  return () => rmSync(folder, { recursive: true, force: true });
}

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= PORT_MAX) return Number(text);
  throw new InvalidArgumentError(`Use a number from 0 to ${PORT_MAX}.`);
}
