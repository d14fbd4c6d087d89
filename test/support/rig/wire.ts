/** A wire between network namespaces: a bridge in a namespace of its own, with one interface and address in each of them. */
import { check } from "../program/command.ts";
import { Netns } from "./netns.ts";

/** Connects namespaces by name; `addresses` are theirs, with a prefix length. */
export async function connectByWire(namespaces: ReadonlyMap<string, string>): Promise<AsyncDisposable> {
  const middle = await Netns.create();
  const inMiddle = async (...args: string[]): Promise<void> => void (await check("ip", ["-n", middle.name, ...args]));
  await inMiddle("link", "add", "wire", "type", "bridge");
  await inMiddle("link", "set", "wire", "up");
  let index = 0;
  for (const [namespace, address] of namespaces) {
    const port = `port${(index += 1)}`;
    await inMiddle("link", "add", port, "type", "veth", "peer", "name", "wire0", "netns", namespace);
    await inMiddle("link", "set", port, "master", "wire", "up");
    await check("ip", ["-n", namespace, "address", "add", address, "dev", "wire0"]);
    await check("ip", ["-n", namespace, "link", "set", "wire0", "up"]);
  }
  return middle;
}
