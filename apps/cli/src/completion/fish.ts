// The completion of fish: one function, with the tree of commands as its branches, and what each word means beside it.
import { type CommandWords, flagsWithValues, positionsByValues, type Values, type Word } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

const pattern = (positions: readonly string[]): string => positions.map(quoted).join(' ');

/** `word<tab>what it means`, one a line. */
const described = (words: readonly Word[]): string =>
  words.map(({ text, description }) => quoted(`${text}\t${description.replaceAll('\n', ' ')}`)).join(' ');

const replyOf = (values: Values): string => {
  if (values === 'files') return '__fish_complete_path "$cur"';
  if (values === 'folders') return '__fish_complete_directories "$cur" ""';
  if (values === 'names') return '$program __complete names "$config" 2>/dev/null';
  if (values === 'clients') return '$program __complete clients 2>/dev/null; __fish_complete_path "$cur"';
  return `printf '%s\\n' ${[...values].map(quoted).join(' ')}`;
};

/** The tree as branches, each a pattern and what is done there. */
const branchesOf = (all: readonly CommandWords[]) => {
  const steps = all.flatMap(({ path, commands }) =>
    commands.map(
      ({ text }) =>
        `            case ${quoted(`${path}|${text}`)}\n                set at ${quoted(`${path} ${text}`.trim())}`,
    ),
  );
  const flags = all.map(
    ({ path, flags: own }) => `            case ${quoted(path)}\n                printf '%s\\n' ${described(own)}`,
  );
  const commands = all
    .filter((words) => words.commands.length > 0)
    .map(
      ({ path, commands: own }) => `        case ${quoted(`${path}|`)}\n            printf '%s\\n' ${described(own)}`,
    );
  const values = [...positionsByValues(all).values()].map(
    ({ values: kind, positions }) => `        case ${pattern(positions)}\n            ${replyOf(kind)}`,
  );
  const repeated = all.filter(({ isRepeated }) => isRepeated).map(({ path }) => path);
  return {
    steps: steps.join('\n'),
    flags: flags.join('\n'),
    commands: commands.join('\n'),
    values: values.join('\n'),
    takesValue: pattern(flagsWithValues(all)),
    // A path that there is not, where no argument may be repeated.
    repeated: pattern(repeated.length === 0 ? ['-'] : repeated),
  };
};

export const fishScript = (all: readonly CommandWords[]): string => {
  const { steps, flags, commands, values, takesValue, repeated } = branchesOf(all);
  return `# Completion of tunnel for fish. Now: tunnel completion fish | source; for good: > ~/.config/fish/completions/tunnel.fish
function __tunnel_values --argument-names at flag cur config program
    switch "$at|$flag"
${values}
${commands}
    end
end

function __tunnel_words
    set -l words (commandline -opc)
    set -l cur (commandline -ct)
    set -l program (string replace -r '^~' "$HOME" -- $words[1])
    set -l at ''
    set -l flag ''
    set -l config ''
    set -l count 0
    for word in $words[2..-1]
        if test -n "$flag"
            test "$flag" = --config; and set config $word
            set flag ''
            continue
        end
        switch "$at|$word"
            case ${takesValue}
                set flag $word
            case '*|--config=*'
                set config (string replace -- --config= '' $word)
            case '*|-*'
${steps}
            case '*'
                set count (math $count + 1)
        end
    end
    if test -z "$flag"; and string match -qr -- '^--[^=]+=' "$cur"
        set flag (string replace -r -- '=.*' '' "$cur")
        set -l value (string replace -r -- '^[^=]*=' '' "$cur")
        __tunnel_values "$at" "$flag" "$value" "$config" "$program" | string replace -r -- '^' "$flag="
        return
    end
    if test -z "$flag"; and string match -q -- '-*' "$cur"
        switch "$at"
${flags}
        end
        return
    end
    if test -z "$flag" -a $count -gt 0; and not contains -- "$at" ${repeated}
        return
    end
    __tunnel_values "$at" "$flag" "$cur" "$config" "$program"
end

complete -c tunnel -e
complete -c tunnel -f -a '(__tunnel_words)'
`;
};
