/**
 * NameClient: resolves and explains names through the running dns11, or without one by reading the engine and querying from
 * inside the container.
 */
import type { ControlClient } from "../../src/api/control-client.ts";
import type { NameRequest } from "../../src/api/names.ts";
import { codeOf } from "../../src/base/lib/fault.ts";
import type { NamedContainer } from "../../src/base/model/container-choice.ts";
import { containersToAsk, note } from "./container-argument.ts";
import { clientFor } from "./control-options.ts";
import { type NameOptions, type Question, orderNote, questionOf, withContainerHint } from "./name-options.ts";
import { hostModules } from "../modules/platform.ts";
import { enterRootless } from "../process/rootless.ts";
import { abortOnSignal } from "../process/own-process.ts";

interface NameClient extends Pick<ControlClient, "explain" | "lookup"> {
  readonly containers: () => Promise<readonly NamedContainer[]>;
}

type Ask<R> = (client: NameClient, request: NameRequest) => Promise<R>;

/** The result for each name in each container that the words of a command select, in order. */
export async function askForNames<R>(
  words: readonly string[],
  options: NameOptions,
  command: string,
  ask: Ask<R>,
): Promise<R[]> {
  const question = questionOf(words, options, command);
  try {
    return await withNameClient(
      options,
      async (client) =>
        await askEach(client, question, options, ask, (containers) => noteOrder(words, options, command, containers)),
    );
  } catch (error) {
    throw withContainerHint(error, words, options, command);
  }
}

async function askEach<R>(
  client: NameClient,
  { names, container, type }: Question,
  options: NameOptions,
  ask: Ask<R>,
  onContainers: (containers: readonly NamedContainer[]) => void,
): Promise<R[]> {
  const results: R[] = [];
  const containers = await client.containers();
  onContainers(containers);
  for (const id of idsToAsk(containers, container, options)) {
    for (const name of names) results.push(await ask(client, { container: id, name, type }));
  }
  return results;
}

/** One that does not run is known by its name, where somebody knows it. */
function idsToAsk(containers: readonly NamedContainer[], word: string, options: NameOptions): readonly string[] {
  try {
    return containersToAsk(containers, word, options).map(({ id }) => id);
  } catch (error) {
    if (codeOf(error) !== "NO_SUCH_CONTAINER" || options.project !== undefined) throw error;
    return [word];
  }
}

function noteOrder(
  words: readonly string[],
  options: NameOptions,
  command: string,
  containers: readonly NamedContainer[],
): void {
  const text = orderNote(words, options, command, (word) =>
    containers.some(({ name, service }) => name === word || service === word),
  );
  if (text !== undefined) note(text);
}

async function withNameClient<T>(options: NameOptions, work: (client: NameClient) => Promise<T>): Promise<T> {
  try {
    const client = await clientFor(options);
    return await work({
      explain: async (request) => await client.explain(request),
      lookup: async (request) => await client.lookup(request),
      containers: async () => (await client.status()).containers,
    });
  } catch (error) {
    if (codeOf(error) !== "NOT_RUNNING") throw error;
  }
  await enterRootless(options);
  const { Standalone } = await hostModules();
  const standalone = await Standalone.open(options.host, abortOnSignal());
  try {
    return await work(standalone);
  } finally {
    standalone.close();
  }
}
