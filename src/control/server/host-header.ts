/**
 * HostHeader: whom a request on loopback is for. A page in a browser can reach every port of the machine by a name that its
 * author points to 127.0.0.1 (DNS rebinding), and reads what is answered. Nobody can do that with an address or `localhost`.
 */
import { isIPv4, isIPv6 } from "node:net";

/** An address, or a name, before a port. */
const HOST = /^(?:\[(.+)\]|([^:]+))(?::\d{1,5})?$/;

/** Clients without the header, as in HTTP/1.0, are no browsers. */
export function isForThisMachine(header: string | undefined): boolean {
  if (header === undefined) return true;
  const [, literal = "", word = ""] = HOST.exec(header) ?? [];
  return isIPv6(literal) || isIPv4(word) || word.toLowerCase() === "localhost";
}
