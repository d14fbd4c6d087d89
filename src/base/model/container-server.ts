/**
 * ContainerServer: a running container as an upstream server. Where it is comes from the engine's state and never from
 * DNS, so that it can be the server of the very names that lead to it.
 *
 *   container:pihole           the container, on the first network where it can be queried
 *   container:pihole@infra     on that network only
 *   container:pihole:5353      at another port; also with #5353
 *   node:kind-control-plane    not the container, but the DNS servers of the cluster that it is a node of, queried from inside it
 */
export interface ContainerServer {
  /** The name of the container. */
  readonly target: string;
  readonly network: string | undefined;
  readonly port: number;
  /** It is on a network of the container that queries, and only because a label asks for it. */
  readonly isShared?: true;
  /** It is a node: the DNS servers of its cluster are queried from inside it. */
  readonly isNode?: true;
}

/** What to write. */
export const CONTAINER_SERVER_FORM = "container:NAME[@NETWORK]";
export const NODE_SERVER_FORM = "node:NAME";

/** Names as Docker allows them. One of digits and dots alone is a mistyped address, and "host" is a word of its own. */
const FORM = /^(?!(?:[\d.]+|host)(?:[:#@]|$))([a-zA-Z0-9][\w.-]*)(?:@([a-zA-Z0-9][\w.-]*))?(?:[:#](\d+))?$/;

export function isContainerServer(server: object | string): server is ContainerServer {
  return typeof server === "object" && "target" in server;
}

/** Parses what follows `container:`, with the port as text; undefined if it is not a container. */
export function containerIn(
  text: string,
): { readonly target: string; readonly network: string | undefined; readonly port: string | undefined } | undefined {
  const [, target, network, port] = FORM.exec(text) ?? [];
  return target === undefined ? undefined : { target, network, port };
}

/** Writes what `parseServer` parses; without the port if it is `usualPort`. */
export function containerServerText(server: ContainerServer, usualPort: number): string {
  const { target, network, port, isNode } = server;
  const place = network === undefined ? "" : `@${network}`;
  return `${isNode === true ? "node" : "container"}:${target}${place}${port === usualPort ? "" : `:${port}`}`;
}
