// Connects to a keeper and tells what it says first, or why that cannot be.

import { connectAt } from "../../../src/kernel/channel.ts";
import { codeOf } from "../../../src/base/lib/fault.ts";
import { waitFor } from "../rig/wait.ts";

try {
  const channel = connectAt(process.argv[2] ?? "");
  const packet = await waitFor("a word", () => {
    const found = channel.receive();
    return found === "nothing" ? undefined : found;
  });
  console.log(packet === "end" ? "nothing was said" : packet.bytes.toString());
} catch (error) {
  console.log(codeOf(error));
}
