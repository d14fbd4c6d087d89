/**
 * AbsentCommands: words that users of other programs type, and that are no commands here, because whoever started dns11 does it. The
 * answer is how.
 */
import type { Command } from "commander";

const STOP = [
  "  in a terminal:   Ctrl-C",
  "  with systemd:    systemctl stop dns11",
  "  as a container:  docker stop dns11",
  "Each hands every container back to Docker's resolver before it ends.",
];
const LOGS = [
  "  in a terminal:   there",
  "  with systemd:    journalctl -u dns11",
  "  as a container:  docker logs dns11",
  "The queries of containers: dns11 tail. What fails, and why: dns11 failures.",
];
const START = [
  "  in a terminal:   dns11 run",
  "  with systemd:    systemctl start dns11",
  "  as a container:  docker start dns11",
];
const RESTART = [
  "  after a change of the settings file:  dns11 reload",
  "  with another version:                 dns11 run --replace, which loses no query",
  "  with systemd:                         systemctl restart dns11",
];

const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  stop: ["dns11 ends as it was started:", ...STOP],
  logs: ["dns11 logs to its standard error:", ...LOGS],
  start: ["dns11 runs in the foreground, or as a service:", ...START],
  restart: ["dns11 rarely needs a restart:", ...RESTART],
};
const SAME: Readonly<Record<string, string>> = { kill: "stop", quit: "stop", log: "logs" };

/** Ends with an error if the word is one of these. */
export function refuseAbsent(program: Command, word: string): void {
  const key = SAME[word] ?? word;
  if (!Object.hasOwn(ANSWERS, key)) return;
  const [first = "", ...others] = ANSWERS[key] ?? [];
  program.error(`error: there is no command '${word}': ${[first, ...others].join("\n")}`, {
    code: "commander.unknownCommand",
  });
}
