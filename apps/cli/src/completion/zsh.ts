// The completion script for zsh: a function with the tree of commands as branches, and descriptions of the words.
import type { CommandWords, Values, Word } from './command-words.ts';
import { shellQuoted as quoted, type ShellSyntax, writeBranches } from './shell-branches.ts';

/** Formats words as `word:description`, as expected by _describe. */
const described = (words: readonly Word[]): string =>
  words
    .map(({ text, description }) => quoted(`${text.replaceAll(':', '\\:')}:${description.replaceAll('\n', ' ')}`))
    .join(' ');

const replyOf = (values: Values): string => {
  if (values === 'files') return '_files';
  if (values === 'folders') return '_files -/';
  if (values === 'names') return `found=("\${(@f)$(_tunnel_ask names "$config")}"); compadd -- \${found:#}`;
  if (values === 'clients') return `found=("\${(@f)$(_tunnel_ask clients)}"); compadd -- \${found:#}; _files`;
  return `compadd -- ${[...values].map(quoted).join(' ')}`;
};

const SYNTAX: ShellSyntax = {
  quoted,
  or: '|',
  step: (pattern, at) => `      ${pattern}) at=${at} ;;`,
  flags: (pattern, words) => `      ${pattern}) found=(${described(words)}) ;;`,
  commands: (pattern, words) => `    ${pattern}) found=(${described(words)}); _describe command found ;;`,
  values: (pattern, values) => `    ${pattern}) ${replyOf(values)} ;;`,
};

export const zshScript = (all: readonly CommandWords[]): string => {
  const { steps, flags, commands, values, takesValue, repeated } = writeBranches(all, SYNTAX);
  return `#compdef tunnel
# zsh completion for tunnel. To use it now: source <(tunnel completion zsh), after compinit. To keep it, save it as _tunnel in a folder of $fpath.
_tunnel_ask() { "\${(Q)words[1]/#\\~/$HOME}" __complete "$@" 2>/dev/null }

_tunnel() {
  local at='' config='' flag='' word
  local -i i count=0
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word=\${(Q)words[i]}
    if [[ -n $flag ]]; then
      [[ $flag == --config ]] && config=$word
      flag=''
      continue
    fi
    case "$at|$word" in
      ${takesValue}) flag=$word ;;
      *'|--config='*) config=\${word#--config=} ;;
      *'|-'*) ;;
${steps}
      *) count+=1 ;;
    esac
  done
  word=$words[CURRENT]
  if [[ -z $flag && $word == --*=* ]]; then
    flag=\${word%%=*}
    compset -P '*='
  elif [[ -z $flag && $word == -* ]]; then
    case $at in
${flags}
    esac
    _describe -o option found
    return
  fi
  if [[ -z $flag ]] && ((count > 0)); then
    case $at in
      ${repeated}) ;;
      *) return 1 ;;
    esac
  fi
  case "$at|$flag" in
${values}
${commands}
  esac
}

# From a file in $fpath, this script is the completion function itself. After \`source\`, compdef registers the function.
if [[ $funcstack[1] == _tunnel ]]; then _tunnel "$@"; else compdef _tunnel tunnel; fi
`;
};
