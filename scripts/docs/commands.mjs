// @ts-check
/** The commands as docs/cli.md shows them: help texts without what several of them share, which the page says once. */

/** In the help of so many commands, an option is described once for all of them. */
const SHARED_FROM = 3;
/** Options that nearly every command has. One command describes them, and no other names them. */
const EVERYWHERE = /^ {2}(?:-H, --host|--state-dir|-h, --help) .*\n(?: {4,}.*\n)*/gm;
const DESCRIBES_ALL = "dns11 run";
/** An option and its description, which may go on below it. */
const OPTION = /^ {2}(-.+?) {2,}(.*\n(?: {4,}.*\n)*)/gm;

/** @typedef {{ command: string, text: string }} Help */

/** @param {string} page as the program writes it: a heading and a block for each command, the program itself first */
export function commandsOnce(page) {
  const [program, ...commands] = [...page.matchAll(/^```text (.+) --help\n([\s\S]*?)^```$/gm)].map(
    ([, command = "", text = ""]) => ({
      command,
      text: command === DESCRIBES_ALL ? text : text.replaceAll(EVERYWHERE, ""),
    }),
  );
  if (program === undefined) throw new Error("the program lists no commands");
  const shared = sharedOptions(commands);
  const rows = [...shared].map(([option, description]) => `| \`${option}\` | ${description} |\n`).join("");
  const sections = commands.map((help) => `### ${help.command}\n\n\`\`\`text\n${shortened(help, shared)}\n\`\`\`\n`);
  return [
    index(program.text, commands),
    `The options that commands list after _Also_:\n\n| Option | Does |\n| --- | --- |\n${rows}`,
    ...sections,
  ].join("\n");
}

/** A list for each group of the program's help, with a link for each command. @param {string} help @param {readonly Help[]} commands */
function index(help, commands) {
  const groups = help.split(/\n(?=\w+:\n)/).filter((group) => !/^(?:Examples|Options):/.test(group));
  return groups
    .map((group) => {
      const [title, ...lines] = group.trim().split("\n");
      return `**${title?.replace(":", "")}**\n\n${lines.flatMap((line) => entry(line, commands)).join("")}`;
    })
    .join("\n");
}

/** @param {string} line of the program's help @param {readonly Help[]} commands */
function entry(line, commands) {
  const [, name = "", summary] = /^ {2}(\S+).*? {2,}(.*)$/.exec(line) ?? [];
  const path = `dns11 ${name}`;
  if (!commands.some(({ command }) => command === path)) return [];
  const below = commands.flatMap(({ command }) => (command.startsWith(`${path} `) ? [link(command, name)] : []));
  return [`- ${link(path, "dns11")}: ${summary}${below.length > 0 ? `: ${below.join(", ")}` : ""}\n`];
}

/** @param {string} command @param {string} above what the link leaves out */
function link(command, above) {
  return `[${command.slice(command.indexOf(`${above} `) + above.length + 1)}](#${command.replaceAll(" ", "-")})`;
}

/** What enough commands say of an option in the same words. @param {readonly Help[]} commands */
function sharedOptions(commands) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { text } of commands) {
    for (const [, option = "", description = ""] of text.matchAll(OPTION)) {
      const both = `${option}\t${oneLine(description)}`;
      counts.set(both, (counts.get(both) ?? 0) + 1);
    }
  }
  /** @type {Map<string, string>} */
  const shared = new Map();
  for (const [both] of [...counts]
    .filter(([, count]) => count >= SHARED_FROM)
    .toSorted(([, one], [, other]) => other - one)) {
    const [option = "", description = ""] = both.split("\t");
    // Of two descriptions the one of more commands.
    if (!shared.has(option)) shared.set(option, description);
  }
  return shared;
}

/** @param {Help} help @param {ReadonlyMap<string, string>} shared */
function shortened({ text }, shared) {
  /** @type {string[]} */
  const also = [];
  const own = text.replaceAll(OPTION, (whole, /** @type {string} */ option, /** @type {string} */ description) => {
    if (shared.get(option) !== oneLine(description)) return whole;
    also.push(option.replace(/^-\w, /, "").replace(/ <.*/, ""));
    return "";
  });
  // Nor the title of options if there are no others, nor commands that have sections of their own.
  const rest = own.replace(/^Options:\n\n?(?! )/m, "").replace(/^Commands:\n(?: .*\n)+/m, "");
  return rest.trimEnd() + (also.length > 0 ? `\n\nAlso: ${also.join(", ")}` : "");
}

/** @param {string} text */
function oneLine(text) {
  return text.trim().replaceAll(/\s+/g, " ");
}
