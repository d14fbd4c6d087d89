/**
 * Breakage: one way in which users break the names of a Compose project, and what has to come of it: dns11 names the cause, each command
 * shows it with its fix, the fix is run as it is printed, and then every name of the project resolves as `docker compose up` would
 * have made it. A row of the table; tests, the table in the documents and the times until a cause is named are made from it.
 */
import assert from "node:assert/strict";

import type { Cause, CauseCode, LastingFix } from "../../../src/api/causes.ts";
import { isFailing } from "../../../src/api/failures.ts";
import { dig } from "../../support/client/dig.ts";
import type { Container } from "../../support/engine/container.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { Shop, unwrapped } from "./shop.ts";

export interface Breakage {
  /** What has happened, as the documents say it. */
  readonly what: string;
  readonly code: CauseCode;
  /** The command that is printed. Words in capitals stand for what differs, here and below. */
  readonly fix?: string;
  /** The key of the Compose file that has to change, or that is right although the container is not as it says. */
  readonly change?: string;
  /** What is printed where no command helps, or its beginning. */
  readonly advice?: string;
  /** The doctor warns: it breaks nothing for certain, or nothing of the project. */
  readonly isWarning?: true;
  /** It keeps no query from its answer, so it is told by explain alone. */
  readonly isExplained?: true;
  /** What the doctor says where its own check finds it, before the failure does. */
  readonly doctor?: RegExp;
  readonly break: (shop: Shop) => Promise<Broken>;
}

export interface Broken {
  readonly client: Container;
  /** The name that the client looks up. */
  readonly name: string;
  /** How the client finds out; by default it queries the name. */
  readonly ask?: () => Promise<unknown>;
  /** Changes the Compose file as it is printed. */
  readonly edit?: (change: LastingFix) => void;
  /** Does what the printed words say, with the container as it is then. */
  readonly follow?: () => Promise<void>;
  /** Proves that the client gets what it needs; by default the name has an answer. */
  readonly again?: (client: Container) => Promise<void>;
  /** Takes away what is beside the project. */
  readonly clean?: () => Promise<void>;
}

/** How a fix is applied: the command at once, or the change of the file with its command, or words alone. */
type Way = "now" | "for good" | "by hand";

export async function openBrokenShop(): Promise<Shop> {
  const shop = await Shop.open(["shared"]);
  await restore(shop);
  return shop;
}

/** The project as its file has it before anything is broken. */
export async function restore(shop: Shop): Promise<void> {
  const { project } = shop;
  project.keepFirst();
  for (const service of [...project.services.keys()]) project.set(service, undefined);
  project.set("web", { networks: ["front"] });
  project.set("api", { networks: ["front", "back"], scale: 2 });
  project.set("db", { networks: ["back"] });
  await project.up("--force-recreate", "--remove-orphans");
  for (const { name } of await project.containers()) await shop.instance.waitFor(name, "attached");
}

export async function assertFixed(shop: Shop, row: Breakage): Promise<void> {
  for (const way of waysOf(row)) {
    const broken = await row.break(shop);
    try {
      // On a busy machine the Compose files that have just been written are not read yet the first time.
      await named(shop, row, broken);
      const cause = await named(shop, row, broken);
      assertPrinted(cause, row);
      await assertShown(shop, row, broken, cause);
      if (way !== undefined) await assertWayWorks(shop, row, broken, cause, way);
    } finally {
      await broken.clean?.();
      await restore(shop);
    }
  }
}

/** What is only explained has no fix to run. */
function waysOf({ fix, change, advice }: Breakage): readonly (Way | undefined)[] {
  const ways: Way[] = [
    ...(fix === undefined ? [] : (["now"] as const)),
    ...(change === undefined ? [] : (["for good"] as const)),
  ];
  if (ways.length > 0) return ways;
  return [advice === undefined ? undefined : "by hand"];
}

/** Until the cause is known. */
async function named(shop: Shop, { code, isExplained }: Breakage, broken: Broken): Promise<Cause> {
  const { client, name, ask = async () => await dig(client, "+time=2", name) } = broken;
  if (isExplained !== true) return await shop.causeIn(client.name, code, ask);
  const api = shop.client;
  return await waitFor(`${name} to be explained by ${code}`, async () => {
    const { causes } = await api.explain({ container: client.name, name });
    return causes.find((each) => each.code === code);
  });
}

/** The templates of the row, which the documents show, are what is printed. */
function assertPrinted(cause: Cause, { fix, change, advice }: Breakage): void {
  const text = JSON.stringify(cause);
  assert.match(cause.fix ?? "", fix === undefined ? /^$/ : patternOf(`${fix}$`), text);
  assert.match(cause.lastingFix?.key ?? "", change === undefined ? /^$/ : patternOf(`${change}$`), text);
  assert.match(cause.advice ?? "", advice === undefined ? /^/ : patternOf(advice), text);
}

function patternOf(template: string): RegExp {
  const escaped = template.replaceAll(/[.*+?^{}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll(/\b[A-Z]{3,}\b/g, String.raw`\S+`)}`);
}

/** `dns11 failures`, explain and doctor all show the cause and what to do. */
async function assertShown(shop: Shop, row: Breakage, { client, name }: Broken, cause: Cause): Promise<void> {
  const { failures, explain, doctor } = await shop.diagnose(client.name, name, cause);
  const { fix, advice, lastingFix, sentence } = cause;
  // How long something took is another time for each query.
  const timeless = (text: string): string => unwrapped(text).replaceAll(/\b[\d.]+ (?:ms|s|min)\b/g, "TIME");
  const beginning = timeless(sentence).slice(0, 60);
  for (const { stdout } of row.isExplained === true ? [explain] : [failures, explain]) {
    const text = unwrapped(stdout);
    assert.ok(timeless(stdout).includes(beginning), `${beginning}, in: ${text}`);
    if (fix !== null) assert.ok(stdout.includes(fix), stdout);
    if (advice !== undefined) assert.ok(text.includes(unwrapped(advice)), `${advice}, in: ${text}`);
    if (lastingFix !== null) assert.ok(text.includes(unwrapped(lastingFix.change)), text);
    if (lastingFix?.command !== undefined) assert.ok(stdout.includes(lastingFix.command), stdout);
  }
  if (row.isExplained === true && row.doctor === undefined) return;
  const text = unwrapped(doctor.stdout);
  if (row.doctor === undefined) {
    assert.ok(timeless(doctor.stdout).includes(beginning), text);
    if (fix !== null) assert.ok(doctor.stdout.includes(fix), doctor.stdout);
    if (lastingFix?.command !== undefined) assert.ok(doctor.stdout.includes(lastingFix.command), doctor.stdout);
  } else assert.match(text, row.doctor);
  assert.equal(doctor.code, row.isWarning === true ? 0 : 1, text);
}

async function assertWayWorks(shop: Shop, row: Breakage, broken: Broken, cause: Cause, way: Way): Promise<void> {
  const { client, name, edit, follow } = broken;
  const lasting = cause.lastingFix?.command;
  if (way === "now" && cause.fix !== null) {
    if (cause.fix.startsWith("dns11 ")) await shop.command(...cause.fix.split(" ").slice(1));
    else await shop.run(cause.fix);
    // What holds until the container is made again is what the changed file would make.
    if (cause.lastingFix !== null) edit?.(cause.lastingFix);
  } else if (way === "for good") {
    edit?.(cause.lastingFix ?? assert.fail("no change"));
    await shop.run(lasting ?? assert.fail(`no command for good: ${JSON.stringify(cause)}`));
  }
  if (way !== "for good") await follow?.();
  const again = await shop.called(client.name);
  if (broken.again === undefined) await shop.resolves(again, name);
  else await broken.again(again);
  await assertOver(shop, row, client.name);
  // Last, because names that a container is not meant to resolve fail in it.
  await shop.assertWhole();
}

/** Nothing is left but what was. */
async function assertOver(shop: Shop, { code }: Breakage, client: string): Promise<void> {
  let left: unknown;
  const isOver = async (): Promise<true | undefined> => {
    const { failures, misleading, unwatched } = await shop.failures(client);
    left = [...failures.filter(isFailing), ...misleading, ...unwatched].filter(({ cause }) => cause?.code === code);
    return (left as unknown[]).length === 0 ? true : undefined;
  };
  try {
    await waitFor(`${code} to be over`, isOver);
  } catch (error) {
    throw new Error(JSON.stringify(left), { cause: error });
  }
  const doctor = await shop.command("doctor", client);
  assert.doesNotMatch(doctor.stdout, /does not resolve/);
}
