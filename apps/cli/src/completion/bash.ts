// The completion script for bash: a function with the tree of commands as branches.
import type { CommandWords, Values, Word } from './command-words.ts';
import { shellQuoted as quoted, type ShellSyntax, writeBranches } from './shell-branches.ts';

const replyOf = (values: Values): string => {
  if (values === 'files') return 'compopt -o default';
  if (values === 'folders') return 'compopt -o dirnames';
  if (values === 'names') return '_tunnel_reply < <(_tunnel_ask names "$config")';
  if (values === 'clients') return '_tunnel_reply < <(_tunnel_ask clients); compopt -o default';
  return `COMPREPLY=($(compgen -W ${quoted([...values].join(' '))} -- "$cur"))`;
};

const listed = (words: readonly Word[]): string => quoted(words.map(({ text }) => text).join(' '));

const SYNTAX: ShellSyntax = {
  quoted,
  or: '|',
  step: (pattern, at) => `      ${pattern}) at=${at} ;;`,
  flags: (pattern, words) => `      ${pattern}) words=${listed(words)} ;;`,
  commands: (pattern, words) => `    ${pattern}) words=${listed(words)} ;;`,
  values: (pattern, values) => `    ${pattern}) ${replyOf(values)}; return ;;`,
};

const UNQUOTING = `# Removes the quotes and backslashes of a typed word.
_tunnel_plain() {
  case $1 in
    \\"*\\" | "'"*"'") config=\${1:1:\${#1}-2} ;;
    *) config=\${1//\\\\/} ;;
  esac
}
`;

export const bashScript = (all: readonly CommandWords[]): string => {
  const { steps, flags, commands, values, takesValue, repeated } = writeBranches(all, SYNTAX);
  return `# bash completion for tunnel. To use it now: source <(tunnel completion bash). To keep it, add the same line to ~/.bashrc.
_tunnel_ask() { "\${COMP_WORDS[0]/#\\~/$HOME}" __complete "$@" 2>/dev/null; }

_tunnel_reply() {
  local word
  while IFS= read -r word; do
    printf -v word %q "$word"
    [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
  done
}

${UNQUOTING}
_tunnel() {
  local cur=\${COMP_WORDS[COMP_CWORD]} at='' config='' flag='' words='' word i
  local -i count=0
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash splits --flag=value into three words.
    [[ $word == = ]] && continue
    if [[ -n $flag ]]; then
      [[ $flag == --config ]] && _tunnel_plain "$word"
      flag=''
      continue
    fi
    case "$at|$word" in
      ${takesValue}) flag=$word ;;
      *'|-'*) ;;
${steps}
      *) count+=1 ;;
    esac
  done
  [[ $cur == = ]] && cur=''
  if [[ -z $flag && $cur == -* ]]; then
    case $at in
${flags}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  if [[ -z $flag ]] && ((count > 0)); then
    case $at in
      ${repeated}) ;;
      *) return ;;
    esac
  fi
  case "$at|$flag" in
${values}
${commands}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _tunnel tunnel
`;
};
