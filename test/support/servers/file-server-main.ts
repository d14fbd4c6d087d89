/**
 * Process of the file server: HTTP on loopback, from one folder. It ends with the pipe to the test. It prints its port, and then
 * the path of each request that it leaves unanswered. Arguments: the folder.
 */
import { createReadStream, statSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

const [folder = ""] = process.argv.slice(2);

const server = createServer((request, response) => {
  const [, behaviour = "", path = ""] = /^\/(whole|cut|stalled)\/([\w./~+-]+)$/.exec(request.url ?? "") ?? [];
  const size = sizeOf(join(folder, path));
  if (path === "" || path.includes("..") || size === undefined) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-length": size });
  if (behaviour === "whole" || path.endsWith("SHA256SUMS")) createReadStream(join(folder, path)).pipe(response);
  else sendHalf(response, join(folder, path), size, behaviour === "cut" ? "end" : "wait");
});

function sendHalf(response: ServerResponse, file: string, size: number, then: "end" | "wait"): void {
  const half = createReadStream(file, { end: Math.floor(size / 2) });
  half.pipe(response, { end: false });
  half.on("end", () => {
    if (then === "end") response.destroy();
    else process.stdout.write(`${file}\n`);
  });
}

function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
