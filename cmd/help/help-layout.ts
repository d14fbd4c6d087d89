/**
 * Help layout: how every help text is arranged: examples come first.
 */
import { type Command, Help } from "commander";

const GAP = 2;
/** Of commands whose features bring their own. */
const ownExamples = new WeakMap<Command, readonly Example[]>();

export function addExamples(command: Command, ...examples: readonly Example[]): void {
  ownExamples.set(command, examples);
}

/** For the program, before its commands are added: they inherit it. */
export const HELP_LAYOUT: Partial<Help> = {
  showGlobalOptions: false,
  sortOptions: false,
  subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map((each) => term(each))].join(" "),
  formatHelp(command, helper) {
    return `${examplesOf(command)}${Help.prototype.formatHelp.call(helper, command, helper)}`;
  },
};

function examplesOf(command: Command): string {
  const program = nameOf(command);
  const examples = (ownExamples.get(command) ?? EXAMPLES[pathOf(command)] ?? []).map(
    ([line, purpose]) => [line.replace("dns11", program), purpose] as const,
  );
  const width = Math.max(...examples.map(([line]) => line.length)) + GAP;
  const lines = examples.map(([line, purpose]) => `  ${line.padEnd(width)}${purpose}\n`);
  return lines.length === 0 ? "" : `Examples:\n${lines.join("")}\n`;
}

/** As it was called: also a plugin of the docker command. */
function nameOf(command: Command): string {
  return command.parent === null ? command.name() : nameOf(command.parent);
}

/** The words of a command after the program's name. */
function pathOf(command: Command): string {
  return command.parent === null ? "" : [pathOf(command.parent), command.name()].filter(Boolean).join(" ");
}

function term(argument: Command["registeredArguments"][number]): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** A command line, without a leading sudo, and what it is for. */
type Example = readonly [line: string, purpose: string];

/**
 * The command lines that a help text begins with, for those who learn from an example faster than from a list of
 * options; by the words of the command after the program's name.
 */
const EXAMPLES: Readonly<Record<string, readonly Example[]>> = {
  "": [
    ["dns11 run", "serve all containers, until Ctrl-C"],
    ["dns11 doctor", "find what breaks DNS, and how to fix it"],
    ["dns11 explain db --in web", "why db resolves in web, or why not"],
  ],
  run: [
    ["dns11 run --dry-run", "show what would be done"],
    ["dns11 run --dns /corp.example/10.0.0.53", "ask a server for the names of one domain"],
    ["dns11 run --config /etc/dns11/dns11.yaml --replace", "take over from the running dns11"],
  ],
  reload: [["dns11 reload", "after a change of the settings file"]],
  status: [["dns11 status", "whether dns11, its containers and its nameservers are well"]],
  ps: [
    ["dns11 ps", "every container, and why one is not served"],
    ["dns11 ps --project shop --watch", "one Compose project, live"],
  ],
  names: [
    ["dns11 names --in web", "which names web can resolve, and which not"],
    ["dns11 names", "all container names, by network"],
  ],
  lookup: [
    ["dns11 lookup db --in web", "the address that web gets"],
    ["dns11 lookup example.com --in web --type MX", "another record type"],
    ["dns11 lookup -x 172.18.0.2 --in web", "the name of an address"],
  ],
  tail: [
    ["dns11 tail", "the queries of all containers"],
    ["dns11 tail web --rcode NXDOMAIN,SERVFAIL", "the queries of web that fail"],
    ["dns11 tail --name '*.example.com' -n 50", "the last queries of one domain"],
  ],
  top: [
    ["dns11 top", "the busiest containers and names, live"],
    ["dns11 top web", "one container, or those of a service"],
    ["dns11 top --once", "one snapshot, for a script"],
  ],
  wait: [["dns11 wait db --in web --timeout 30s", "before the first step of a test"]],
  upstreams: [["dns11 upstreams", "which servers are used, and how they do"]],
  cache: [
    ["dns11 cache stats", "how much is cached, and how often it is used"],
    ["dns11 cache show '*.example.com'", "what is cached of one domain"],
    ["dns11 cache flush example.com", "remove one name"],
  ],
  ui: [
    ["dns11 ui", "what fails and why, in the browser"],
    ["dns11 ui --static snapshot", "the same as a folder, for a bug report"],
  ],
  "cache stats": [["dns11 cache stats", "how much is cached, and how often it is used"]],
  "cache show": [
    ["dns11 cache show", "every cached reply"],
    ["dns11 cache show '*.example.com'", "those of one domain"],
  ],
  "cache flush": [
    ["dns11 cache flush example.com", "remove one name"],
    ["dns11 cache flush", "remove everything"],
  ],
  failures: [
    ["dns11 failures", "every container name that fails, why, and the fix"],
    ["dns11 failures web --follow", "what fails in web, as it happens"],
    ["dns11 failures --all", "names of the outside world that do not exist, too"],
  ],
  explain: [
    ["dns11 explain db --in web", "why db resolves in web, or why not"],
    ["dns11 explain db cache --in web --type AAAA", "several names, and another record type"],
    ["dns11 explain -x 172.18.0.2 --in web", "the name of an address"],
  ],
  doctor: [
    ["dns11 doctor", "check all containers and the machine"],
    ["dns11 doctor web", "check one container"],
    ["dns11 doctor --fix", "repair what dns11 itself left broken"],
  ],
  "check-config": [["dns11 check-config /etc/dns11/dns11.yaml", "validate a file before a reload"]],
  cleanup: [["dns11 cleanup", "after dns11 was killed and will not start again"]],
  completion: [["dns11 completion bash > /etc/bash_completion.d/dns11", "for every new bash"]],
  version: [["dns11 version --json", "for a bug report"]],
  man: [["dns11 man dns11.yaml", "a settings file with every key"]],
  help: [["dns11 help cache flush", "the help of a subcommand"]],
};
