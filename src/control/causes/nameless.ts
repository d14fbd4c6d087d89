/**
 * Nameless: a container that is on no network with names, so that no name leads to it. Docker connects it to one only if it has an
 * interface of its own that is not the host's; any other has to be created again.
 */
import type { Cause } from "../../api/causes.ts";
import { recreateCommand, serviceChange } from "./fixes.ts";
import type { KnownContainer } from "./known-container.ts";
import { connectCommand } from "./reconnect.ts";
import { type Situation, cause } from "./situation.ts";

const SHARED = "container:";

/** The name is that of a running container without such a network, or of its service. */
export function namelessCause(situation: Situation, container: KnownContainer): Cause {
  const { name, owner } = situation;
  const { why, isConnectable, advice } = modeOf(container, situation);
  const network = networkFor(owner);
  const lastingFix = lastingChange(container, network);
  const byHand = network === undefined ? undefined : `create ${container.name} again on network ${network}`;
  const words = advice ?? (lastingFix === null ? byHand : undefined);
  return cause("no-dns-name", `"${name}" is container ${container.name}, which has no DNS name, because ${why}`, {
    fix: isConnectable && network !== undefined ? connectCommand(container, network, situation) : null,
    ...(!isConnectable && words !== undefined && { advice: words }),
    lastingFix,
    isBreaking: true,
  });
}

interface Mode {
  readonly why: string;
  readonly isConnectable: boolean;
  readonly advice?: string;
}

function modeOf({ networkMode = "", isOnDefaultBridge }: KnownContainer, { owner, known }: Situation): Mode {
  if (networkMode === "host") return { why: "it uses the network of the host", isConnectable: false };
  if (networkMode === "none") return { why: "it has no network (network mode none)", isConnectable: false };
  if (networkMode.startsWith(SHARED)) {
    const other = known.byId(networkMode.slice(SHARED.length));
    if (other === undefined) return { why: "it uses the network of another container", isConnectable: false };
    const service = other.compose?.service ?? other.name;
    const advice = `change the name to "${service}" where ${owner.name} is given it: its environment, arguments or settings`;
    return { why: `it uses the network of ${other.name}`, isConnectable: false, advice };
  }
  const hint =
    owner.isOnDefaultBridge && isOnDefaultBridge
      ? "; with the setting default-bridge: names, containers there resolve each other"
      : "";
  return { why: `it is on no user-defined network${hint}`, isConnectable: true };
}

/** A network of the client's own project, if it has one. */
function networkFor({ endpoints, compose }: KnownContainer): string | undefined {
  const own = endpoints.find(({ networkName }) => networkName.startsWith(`${compose?.project ?? ""}_`));
  return (own ?? endpoints[0])?.networkName;
}

/** Compose sets a network mode only where the file has one; without one, it may have been disconnected. */
function lastingChange(container: KnownContainer, network: string | undefined): Cause["lastingFix"] {
  const { compose, networkMode = "" } = container;
  if (compose === undefined) return null;
  const own = `${compose.project}_`;
  if (networkMode.startsWith(own))
    return serviceChange(container, "networks", "it is right: create the container again", recreateCommand(container));
  const key = network?.startsWith(own) === true ? network.slice(own.length) : "default";
  const change =
    key === "default"
      ? "remove it: the service is then on the project's network"
      : `replace it by "networks: [${key}]"`;
  return serviceChange(container, "network_mode", change);
}
