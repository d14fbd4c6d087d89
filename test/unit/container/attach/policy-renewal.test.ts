import assert from "node:assert/strict";
import { test } from "node:test";

import type { Attachment } from "../../../../src/container/attach/attachment.ts";
import { PolicyRenewal } from "../../../../src/container/attach/reconciler.ts";

/** An attachment whose changes end when the test says so. */
class Changing {
  readonly steps: string[];
  readonly name: string;
  readonly #isChanged: boolean;
  end: () => void = () => undefined;

  constructor(name: string, isChanged: boolean, steps: string[]) {
    this.name = name;
    this.#isChanged = isChanged;
    this.steps = steps;
  }

  get entry(): readonly [string, Attachment] {
    const only: Pick<Attachment, "renewPolicy" | "idle" | "endOf"> = {
      renewPolicy: () => {
        this.steps.push(`${this.name}: told`);
        return this.#isChanged;
      },
      idle: async () => undefined,
      endOf: async () => await new Promise<void>((resolve) => (this.end = resolve)),
    };
    return [this.name, only as Attachment];
  }
}

test("every keeper is told at once, and rules follow one after the other, where they have to", async () => {
  const steps: string[] = [];
  const all = ["a", "b", "c"].map((name) => new Changing(name, name !== "b", steps));
  const renewal = new PolicyRenewal((id) => steps.push(`${id}: rules`));
  const settle = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));
  renewal.renew(all.map(({ entry }) => entry));
  const told = ["a: told", "b: told", "c: told"];
  await settle();
  assert.deepEqual(steps, [...told, "a: rules"]);
  all[0]?.end();
  await settle();
  assert.deepEqual(steps, [...told, "a: rules", "c: rules"]);
  renewal.renew(all.slice(0, 1).map(({ entry }) => entry));
  await settle();
  assert.deepEqual(steps.slice(5), ["a: told"]);
  all[2]?.end();
  await settle();
  assert.deepEqual(steps.slice(5), ["a: told", "a: rules"]);
});
