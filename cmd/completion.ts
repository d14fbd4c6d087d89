/**
 * dns11 completion: the completion scripts for shells, and the hidden command that they call for candidates.
 */
import { Argument, type Command } from "commander";
import { defaultStateDir } from "../src/api/state-paths.ts";
import { clientFor } from "./options/control-options.ts";
import { type RunningNames, complete } from "./shell/complete.ts";

const WITH_FILES = ":0";
const WITHOUT_FILES = ":4";
const COMPLETE_COMMAND = "__complete";

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("Print the completion script for a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => void process.stdout.write(SCRIPTS[shell]));
  program
    .command(COMPLETE_COMMAND, { hidden: true })
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    // The words as they were typed: `--` and flags are part of the line to complete.
    .action(async () => await answer(program, process.argv.slice(process.argv.indexOf(COMPLETE_COMMAND) + 1)));
}

async function answer(program: Command, words: readonly string[]): Promise<void> {
  const { candidates, wantsFiles } = await complete(program, words, runningNames);
  const lines = candidates.map(({ word, description }) => (description === "" ? word : `${word}\t${description}`));
  process.stdout.write(`${[...lines, wantsFiles ? WITH_FILES : WITHOUT_FILES].join("\n")}\n`);
}

/** An error would disturb the line being typed: without a running dns11, or without permission, there are no names. */
async function runningNames(flags: ReadonlyMap<string, string>): Promise<RunningNames> {
  try {
    const host = flags.get("--host");
    const stateDir = flags.get("--state-dir") ?? (process.env["DNS11_STATE_DIR"] || defaultStateDir(host));
    const client = await clientFor({ stateDir, ...(host !== undefined && { host }) });
    const { containers } = await client.status();
    const project = flags.get("--project");
    const wanted = containers.filter((each) => project === undefined || each.project === project);
    const services = wanted.flatMap(({ service }) => service ?? []);
    return {
      containers: sorted([...wanted.map(({ name }) => name), ...services]),
      projects: sorted(containers.flatMap((each) => each.project ?? [])),
    };
  } catch {
    return { containers: [], projects: [] };
  }
}

function sorted(words: readonly string[]): string[] {
  return [...new Set(words)].toSorted();
}

/**
 * Shell completion for bash, zsh and fish. Each passes the words of the line to `dns11 __complete` and offers the
 * result: one candidate a line, with a tab before its description, and a last line that allows file names (`:0`) or does not
 * (`:4`). docker and its plugins use the same protocol, so `docker dns` completes as well. Of the three, only bash inserts a
 * candidate without quoting it.
 */
const BASH = `# bash completion for dns11. Install as /usr/share/bash-completion/completions/dns11, or run: source <(dns11 completion bash)
_dns11() {
  local line last
  local -a lines=()
  COMPREPLY=()
  mapfile -t lines < <("$1" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [ "\${#lines[@]}" -eq 0 ]; then return 0; fi
  last=\${lines[\${#lines[@]} - 1]}
  unset 'lines[\${#lines[@]}-1]'
  for line in "\${lines[@]}"; do
    printf -v line %q "\${line%%$'\\t'*}"
    COMPREPLY+=("$line")
  done
  if [ "$last" = :0 ]; then compopt -o default 2>/dev/null; fi
  return 0
}
complete -F _dns11 dns11
`;

const ZSH = `#compdef dns11
# zsh completion for dns11. Install as _dns11 in a directory of $fpath, or run: source <(dns11 completion zsh)
_dns11() {
  local line last
  local -a lines candidates
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  last=\${lines[-1]}
  lines[-1]=()
  for line in $lines; do candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}"); done
  if [[ $last == :0 ]]; then _files; fi
  (( \${#candidates} )) && _describe dns11 candidates
}
if [[ $funcstack[1] == _dns11 ]]; then _dns11 "$@"; else compdef _dns11 dns11; fi
`;

const FISH = `# fish completion for dns11. Install as dns11.fish in a directory of $fish_complete_path, or run: dns11 completion fish | source
function __dns11_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in ($words[1] __complete $words[2..] "$typed" 2>/dev/null)
        switch $line
            case ':0'
                __fish_complete_path "$typed"
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c dns11 -f -a '(__dns11_complete)'
`;

const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
