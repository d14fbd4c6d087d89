/**
 * Owns the running of another program and the reading of what it said. Everything the rig does to the kernel it does
 * through the system's own tools (ip, nsenter, docker), so a failure has to carry the tool's own words.
 */
import { spawn } from "node:child_process";

export type CommandResult = { readonly code: number; readonly stdout: string; readonly stderr: string };

export interface CommandOptions {
  readonly input?: string | Buffer | undefined;
  /** The program's input ends only then. */
  readonly until?: Promise<unknown> | undefined;
  /** Called with what it says, as it says it. */
  readonly onOutput?: ((text: string) => void) | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

/** For a program that hangs; none that a test waits for takes as long, however busy the machine is. */
const TIMEOUT_MS = 120_000;

/** A login shell of an ordinary user, and so the test that it started, may lack the sbin folders. */
export const SYSTEM_PATH = `${process.env["PATH"] ?? ""}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin`;

export async function run(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return await new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env, PATH: SYSTEM_PATH },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: options.timeoutMs ?? TIMEOUT_MS,
      killSignal: "SIGKILL",
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => {
      stdout.push(chunk);
      options.onOutput?.(chunk.toString());
    });
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    // A program that ends without reading its input is judged by its exit code, not by the broken pipe.
    child.stdin.on("error", () => {});
    if (options.until === undefined) child.stdin.end(options.input);
    else void options.until.finally(() => child.stdin.end(options.input));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const errors = Buffer.concat(stderr).toString();
      resolve({
        code: code ?? -1,
        stdout: Buffer.concat(stdout).toString(),
        stderr: signal === null ? errors : `${errors}(ended by ${signal})`,
      });
    });
  });
}

export async function check(command: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  return stdoutOf(await run(command, args, options), `${command} ${args.join(" ")}`);
}

export function stdoutOf(result: CommandResult, what: string): string {
  if (result.code === 0) return result.stdout;
  throw new Error(`${what}: exit ${result.code}: ${result.stderr.trim() || result.stdout.trim()}`);
}
