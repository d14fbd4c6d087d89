// Program that connects to a keeper and prints its first message, or the error.

import { connectAt } from "../../../src/kernel/channel.ts";
import { codeOf } from "../../../src/base/lib/fault.ts";
import { waitFor } from "../rig/wait.ts";

try {
  const channel = connectAt(process.argv[2] ?? "");
  const packet = await waitFor("a message", () => {
    const found = channel.receive();
    return found === "nothing" ? undefined : found;
  });
  console.log(packet === "end" ? "no message" : packet.bytes.toString());
} catch (error) {
  console.log(codeOf(error));
}
