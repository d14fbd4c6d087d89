/**
 * Runner of other programs. The tests change the kernel through system tools (ip, nsenter, docker), so an error must
 * contain the tool's own message.
 */
import { spawn } from "node:child_process";

export type CommandResult = { readonly code: number; readonly stdout: string; readonly stderr: string };

export interface CommandOptions {
  readonly input?: string | Buffer | undefined;
  /** stdin stays open until this resolves. */
  readonly until?: Promise<unknown> | undefined;
  /** Called with each chunk of stdout. */
  readonly onOutput?: ((text: string) => void) | undefined;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

/** For programs that hang; no program of the tests takes as long, however busy the machine is. */
const TIMEOUT_MS = 120_000;

/** The PATH of an ordinary user, and so of a test, may lack the sbin folders. */
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
    // Ignore a broken pipe: a program that does not read its input is judged by its exit code.
    child.stdin.on("error", () => {});
    if (options.until === undefined) child.stdin.end(options.input);
    else void options.until.finally(() => child.stdin.end(options.input));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const errors = Buffer.concat(stderr).toString();
      resolve({
        code: code ?? -1,
        stdout: Buffer.concat(stdout).toString(),
        stderr: signal === null ? errors : `${errors}(killed by ${signal})`,
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
