/**
 * The manual page dns11(8): every command with its flags, from the program's own help.
 */
import type { Command, Option } from "commander";

import type { Build } from "../process/build.ts";
import { EXIT } from "../process/exit-code.ts";
import { commandsOf, optionsOf } from "../shell/complete.ts";
import { EXIT_DESCRIPTIONS } from "./keys.ts";
import { bold, heading, italic, item, plain, section, usage, wrapped } from "./roff.ts";

const ABOUT = [
  "dns11 runs beside dockerd and answers DNS queries at 127.0.0.11 in every container on a user-defined network. It answers " +
    "the names of containers itself and forwards all other names to the servers that Docker would use.",
  "It installs its own rules in the network namespace of each container. When dns11 ends, also by SIGKILL, the " +
    "rules are removed and Docker's embedded DNS answers again; docs/operations.md lists the exceptions. dns11 never changes or " +
    "restarts a container, except for resolv.conf: in KIND nodes (--kind), in guests with the listener, and in containers that ask " +
    "for a search list.",
];

const SIGNALS = [
  [
    "SIGTERM, SIGINT",
    "Hand every container back to Docker's resolver and exit. A second signal exits without waiting.",
  ],
  ["SIGUSR2", "Start the program that is now on disk; it takes over. No query is lost."],
  ["SIGHUP", "Reload the settings file. An invalid file is logged and changes nothing."],
] as const;

const FILES = [
  ["/run/dns11/ENGINE/control.sock", "control socket (HTTP), accessible to root and the group docker"],
  ["/run/dns11/ENGINE/lock", "lock of the instance that serves the engine"],
  ["/run/dns11/ENGINE/nodes", "state needed to restore KIND nodes"],
  ["/etc/dns11/dns11.yaml", "settings file of the system service, see dns11.yaml(5)"],
  ["/usr/share/doc/dns11", "guides and reference: README.md, docs/ (Debian package)"],
] as const;

export function programPage(program: Command, { version, day }: Build): string {
  const commands = commandsOf(program).filter((command) => command.name() !== "help");
  return [
    heading("DNS11", 8, day, `dns11 ${version}`),
    section("NAME", `${plain("dns11")} \\- ${plain(program.description())}\n`),
    section("SYNOPSIS", `.B dns11\n${wrapped(`${italic("command")} [${italic("options")}]`)}\n`),
    section(
      "DESCRIPTION",
      ABOUT.map((text) => wrapped(plain(text)))
        .join("\n.PP\n")
        .concat("\n"),
    ),
    section(
      "OPTIONS",
      optionsOf(program)
        .map((option) => optionItem(option))
        .join(""),
    ),
    section("COMMANDS", commands.map((command) => commandText(command, [])).join("")),
    section("ENVIRONMENT", environment(commands)),
    section("SIGNALS", SIGNALS.map(([name, description]) => item(bold(name), plain(description))).join("")),
    section("FILES", FILES.map(([path, what]) => item(italic(path), plain(what))).join("")),
    section(
      "EXIT STATUS",
      Object.entries(EXIT)
        .map(([name, code]) => item(bold(String(code)), plain(EXIT_DESCRIPTIONS[name as keyof typeof EXIT])))
        .join(""),
    ),
    section("SEE ALSO", `.BR dns11.yaml (5),\n.BR docker (1),\n.BR nft (8),\n.BR resolv.conf (5)\n`),
  ].join("");
}

/** A command with its arguments and options, followed by its subcommands. */
function commandText(command: Command, parents: readonly string[]): string {
  const path = [...parents, command.name()];
  const shown = command.registeredArguments.map((each) => {
    const name = each.variadic ? `${each.name()}...` : each.name();
    return each.required ? italic(name) : `[${italic(name)}]`;
  });
  const inner = commandsOf(command).filter((each) => each.name() !== "help");
  return [
    `.SS ${plain(`dns11 ${path.join(" ")}`)}\n`,
    `${wrapped([bold(path.join(" ")), `[${italic("options")}]`, ...shown].join(" "))}\n.PP\n`,
    `${wrapped(plain(command.description()))}\n`,
    ...command.registeredArguments
      .filter(({ description }) => description !== "")
      .map((each) => item(italic(each.name()), plain(withChoices(each.description, each.argChoices)))),
    ...optionsOf(command).map((option) => optionItem(option)),
    ...inner.map((each) => commandText(each, path)),
  ].join("");
}

function optionItem(option: Option): string {
  const { defaultValue, envVar } = option;
  const text = withChoices(option.description, option.argChoices);
  const notes = [
    ...(typeof defaultValue === "string" ? [`default: ${defaultValue}`] : []),
    ...(envVar === undefined ? [] : [`env: ${envVar}`]),
  ];
  return item(usage(option.flags), plain(notes.length === 0 ? text : `${text} (${notes.join(", ")})`));
}

function withChoices(text: string, choices: readonly string[] | undefined): string {
  return choices === undefined ? text : `${text} (choices: ${choices.join(", ")})`;
}

/** Every environment variable that a flag of any command mentions. */
function environment(commands: readonly Command[]): string {
  const flags = new Map<string, string>();
  for (const { description, envVar, long } of commands.flatMap((command) => allOptions(command))) {
    const variable = envVar ?? /env: (\w+)/.exec(description)?.[1];
    if (variable !== undefined && long !== undefined) flags.set(variable, long);
  }
  return [
    ...[...flags].map(([variable, flag]) => item(bold(variable), plain(`same as ${flag}`))),
    item(bold("DOCKER_HOST"), plain("Docker socket, as for the docker command; -H takes precedence")),
    item(bold("DOCKER_CONTEXT"), plain("docker context that defines the Docker socket")),
  ].join("");
}

function allOptions(command: Command): readonly Option[] {
  return [...optionsOf(command), ...commandsOf(command).flatMap((each) => allOptions(each))];
}
