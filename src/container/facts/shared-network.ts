/** SharedNetwork: the mode of a container that was started in the network namespace of another one (--network container:NAME). */
const PREFIX = "container:";

/** The other one, by ID or name; undefined for a container with a namespace of its own. */
export function sharedWith(networkMode: string): string | undefined {
  return networkMode.startsWith(PREFIX) ? networkMode.slice(PREFIX.length) : undefined;
}
