/**
 * PolicyRenewal: has the namespaces that are served follow changed policies: their keeper is told at once, their rules follow one after
 * the other, because those of many may take as many programs.
 */
import { guard } from "../../base/lib/guard.ts";
import type { Attachment } from "./attachment.ts";

export class PolicyRenewal {
  readonly #updateRules: (containerId: string) => void;
  #last: Promise<void> = Promise.resolve();

  constructor(updateRules: (containerId: string) => void) {
    this.#updateRules = updateRules;
  }

  renew(attachments: Iterable<readonly [string, Attachment]>): void {
    const changed = [...attachments].filter(([, attachment]) => attachment.renewPolicy());
    if (changed.length === 0) return;
    const follow = async (): Promise<void> => {
      for (const [id, attachment] of changed) {
        this.#updateRules(id);
        await attachment.endOf(attachment.idle(), "slow");
      }
    };
    this.#last = this.#last.then(follow).catch((error: unknown) => guard.report(error, "attach"));
  }
}
