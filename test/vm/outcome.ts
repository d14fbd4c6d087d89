/** Outcome: what a machine says about itself and about each part of its run: one line of JSON each, from the inside to the host. */

export type Outcome =
  | { readonly is: "machine"; readonly kernel: string; readonly docker: string; readonly systemd: string }
  | {
      readonly is: "served";
      /** How rules are installed, and who answers container names. */
      readonly rules: string;
      readonly answers: string;
      /** Why the process answers. */
      readonly reason: string | null;
      /** From SIGKILL without a keeper until the kernel has removed the rules of one container. */
      readonly removedMs: number | null;
      /** Whether a table can outlive its owner. */
      readonly persists: boolean;
      /** Whether the kernel has sock_diag. */
      readonly listsSockets: boolean;
    }
  | {
      readonly is: "part";
      readonly name: string;
      readonly passed: number;
      readonly failed: readonly string[];
      readonly seconds: number;
    }
  | { readonly is: "end" };

/** Lines that are none are left out: the kernel may print in between. */
export function outcomesIn(text: string): Outcome[] {
  return text.split(/\r?\n/).flatMap((line): Outcome[] => {
    try {
      return line.startsWith('{"is":') ? [JSON.parse(line) as Outcome] : [];
    } catch {
      return [];
    }
  });
}
