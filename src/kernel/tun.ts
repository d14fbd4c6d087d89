/**
 * Tun: a network link without a network, held open by a descriptor. The kernel removes the link when the descriptor
 * closes, however the process ends.
 */
import { addressOf, bind, lastErrno, SystemFault } from "./libc.ts";

const ioctl = bind<(fd: number, request: number, argument: number) => number>(
  "int ioctl(int fd, unsigned long request, uintptr_t argument)",
);

/** linux/if_tun.h */
const TUNSETIFF = 0x400454ca;
const IFF_TUN = 0x0001;
const IFF_NO_PI = 0x1000;
const REQUEST_BYTES = 40;
const NAME_BYTES = 16;

/**
 * Makes a link of an open /dev/net/tun, in the namespace in which that was opened. "%d" in the name becomes the first
 * free number. Returns the name.
 */
export function makeTun(device: number, name: string): string {
  const request = Buffer.alloc(REQUEST_BYTES);
  request.write(name, 0, NAME_BYTES - 1, "latin1");
  request.writeUInt16LE(IFF_TUN | IFF_NO_PI, NAME_BYTES);
  if (ioctl(device, TUNSETIFF, addressOf(request)) < 0) throw new SystemFault("ioctl", lastErrno(), "/dev/net/tun");
  return request.toString("latin1", 0, request.indexOf(0));
}
