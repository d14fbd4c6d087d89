/**
 * CapturedServers: the servers in the resolv.conf of a container without Docker's resolver, whose port 53 is captured.
 * The container writes the file: whatever it names, only its own queries are concerned, and they are forwarded to no
 * server that it could not query itself.
 */
import { LIMITS } from "../../base/limits.ts";
import { addressText, plain } from "../../base/model/address.ts";

/** Ours, and those that stand for another address. */
const UNUSABLE = new Set(["127.0.0.11", "0.0.0.0", "::"]);

/** Those that can be captured, in the order of the file. The zone of a link-local address is no part of a packet. */
export function capturedServers(nameservers: readonly string[]): string[] {
  const servers = nameservers.flatMap((text) => {
    // Packets to an IPv4-mapped address are IPv4.
    const bytes = plain(text);
    return bytes === undefined || text.includes("%") ? [] : [addressText(bytes)];
  });
  const usable = servers.filter((server) => !UNUSABLE.has(server));
  return [...new Set(usable)].slice(0, LIMITS.capturedServers);
}
