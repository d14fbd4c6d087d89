import {
  addressText,
  unmappedBytesOf,
  readAddressBlock,
  isInBlock,
  type AddressBlock,
} from "../../base/model/address.ts";
import { namedServerText, parseServer } from "../../base/model/server-text.ts";
import type { Server } from "../../base/model/view.ts";
import { quoting } from "../../config/kinds.ts";
import { featureValues, list } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

/** A network of one's own: neither what carriers share, nor the services of a cloud. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1", "fc00::/7", "fe80::/10"];
/** Amazon's services for its machines. */
const NOT_PRIVATE = ["fd00:ec2::/32"];

const settings = {
  "client-subnet": list(quoting(readServer), "servers that are told the address of the container that asks"),
  "client-subnet-public": list(
    quoting(readServer),
    "those of them that are told although their address is not private",
  ),
};

export const CLIENT_SUBNET = {
  settings,
  conflicts,
  load: async () => await import("./client-subnet.ts"),
} as const;

/** The servers that are told. */
export function subnetServers(all: Pick<Settings, "features">): readonly string[] {
  return featureValues(settings, all)["client-subnet"];
}

/** A server as settings name it. Where it is asked from makes no difference to what it may know. */
export function serverName({ address, port }: Pick<Server, "address" | "port">): string {
  const [bare = "", ...zone] = address.split("%");
  const bytes = unmappedBytesOf(bare);
  const text = bytes === undefined ? bare : addressText(bytes);
  return namedServerText({ from: "host", address: [text, ...zone].join("%"), port });
}

/** Quotes a value in an error. */
type Quote = (value: unknown) => string;

function readServer(value: unknown, quote: Quote): string {
  const server = typeof value === "string" ? serverIn(value) : undefined;
  if (server !== undefined) return serverName(server);
  throw new Error(`invalid server ${quote(value)}: use an IP address, such as 192.168.1.2 or 192.168.1.2:5353`);
}

function serverIn(text: string): Server | undefined {
  try {
    const server = parseServer(text);
    const isAddress = server !== "host" && "from" in server && server.from === "host";
    return isAddress ? server : undefined;
  } catch {
    return undefined;
  }
}

function conflicts(all: Settings): readonly (readonly [keyof typeof settings, string])[] {
  const { "client-subnet": servers, "client-subnet-public": mayBePublic } = featureValues(settings, all);
  if (servers.length > 0 && !all.behaviour.failsOver) {
    const what = "has no effect with forward.order: docker, which strict sets, too: remove one of them";
    return [["client-subnet", what]];
  }
  const isPublic = servers.filter((each) => !isPrivate(each) && !mayBePublic.includes(each));
  const unused = mayBePublic.filter((each) => !servers.includes(each));
  return [
    ...isPublic.map((each) => ["client-subnet", publicText(each)] as const),
    ...unused.map((each) => ["client-subnet-public", unusedText(each)] as const),
  ];
}

function publicText(server: string): string {
  return (
    `${server} is not a private address, and would learn which containers there are: ` +
    `remove it, or name it in client-subnet-public, too`
  );
}

function unusedText(server: string): string {
  return `${server} is told nothing: name it in client-subnet, too, or remove it`;
}

function isPrivate(text: string): boolean {
  const bytes = unmappedBytesOf(serverIn(text)?.address ?? "");
  if (bytes === undefined) return false;
  const isIn = (block: string): boolean => isInBlock(bytes, readAddressBlock(block) as AddressBlock);
  return PRIVATE.some(isIn) && !NOT_PRIVATE.some(isIn);
}
