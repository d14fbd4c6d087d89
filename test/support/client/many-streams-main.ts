/**
 * Opens TCP connections to port 53 of an address, all at once, and prints how many of them the server has left open when it has
 * answered or closed each.
 *
 *   many-streams-main ADDRESS COUNT
 */
import { connect } from "node:net";

import { aQuery } from "../scripted/builders.ts";
import { withLength } from "../../../src/base/lib/stream-reader.ts";

const [address = "", count = "0"] = process.argv.slice(2);
const query = withLength(aQuery({ name: "web.docker", type: 1 }));
const sockets = Array.from({ length: Number(count) }, () => connect(53, address));
const outcomes = await Promise.all(
  sockets.map(
    async (socket) =>
      await new Promise<"open" | "closed">((resolve) => {
        socket.on("error", () => resolve("closed"));
        socket.on("close", () => resolve("closed"));
        socket.on("data", () => resolve("open"));
        socket.write(query);
      }),
  ),
);
const open = outcomes.filter((each) => each === "open").length;
process.stdout.write(JSON.stringify({ open, closed: outcomes.length - open }));
for (const socket of sockets) socket.destroy();
