// The completion script for fish: a function with the tree of commands as branches, and descriptions of the words.
import type { CommandWords, Values, Word } from './command-words.ts';
import { type ShellSyntax, writeBranches } from './shell-branches.ts';

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** Formats words as arguments of printf, which prints a line `word<tab>description` for every word. */
const described = (words: readonly Word[]): string =>
  words.map(({ text, description }) => quoted(`${text}\t${description.replaceAll('\n', ' ')}`)).join(' ');

const replyOf = (values: Values): string => {
  if (values === 'files') return '__fish_complete_path "$cur"';
  if (values === 'folders') return '__fish_complete_directories "$cur" ""';
  if (values === 'names') return '$program __complete names "$config" 2>/dev/null';
  if (values === 'clients') return '$program __complete clients 2>/dev/null; __fish_complete_path "$cur"';
  return `printf '%s\\n' ${[...values].map(quoted).join(' ')}`;
};

const SYNTAX: ShellSyntax = {
  quoted,
  or: ' ',
  step: (pattern, at) => `            case ${pattern}\n                set at ${at}`,
  flags: (pattern, words) => `            case ${pattern}\n                printf '%s\\n' ${described(words)}`,
  commands: (pattern, words) => `        case ${pattern}\n            printf '%s\\n' ${described(words)}`,
  values: (pattern, values) => `        case ${pattern}\n            ${replyOf(values)}`,
};

export const fishScript = (all: readonly CommandWords[]): string => {
  const { steps, flags, commands, values, takesValue, repeated } = writeBranches(all, SYNTAX);
  return `# fish completion for tunnel. To use it now: tunnel completion fish | source. To keep it: tunnel completion fish > ~/.config/fish/completions/tunnel.fish
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
