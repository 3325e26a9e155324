// The completion of zsh: one function, with the tree of commands as its branches, and what each word means beside it.
import { type CommandWords, flagsWithValues, positionsByValues, type Values, type Word } from './command-words.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const pattern = (positions: readonly string[]): string => positions.map(quoted).join('|');

/** `word:what it means`, as _describe wants it. */
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

/** The tree as branches, each a pattern and what is done there. */
const branchesOf = (all: readonly CommandWords[]) => {
  const steps = all.flatMap(({ path, commands }) =>
    commands.map(({ text }) => `      ${quoted(`${path}|${text}`)}) at=${quoted(`${path} ${text}`.trim())} ;;`),
  );
  const flags = all.map(({ path, flags: own }) => `      ${quoted(path)}) found=(${described(own)}) ;;`);
  const commands = all
    .filter((words) => words.commands.length > 0)
    .map(
      ({ path, commands: own }) => `    ${quoted(`${path}|`)}) found=(${described(own)}); _describe command found ;;`,
    );
  const values = [...positionsByValues(all).values()].map(
    ({ values: kind, positions }) => `    ${pattern(positions)}) ${replyOf(kind)} ;;`,
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

export const zshScript = (all: readonly CommandWords[]): string => {
  const { steps, flags, commands, values, takesValue, repeated } = branchesOf(all);
  return `#compdef tunnel
# Completion of tunnel for zsh. Now: source <(tunnel completion zsh), after compinit; for good: as _tunnel in a folder of $fpath.
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

# Read from a file of $fpath this is the completion itself; read by source it has to be made known.
if [[ $funcstack[1] == _tunnel ]]; then _tunnel "$@"; else compdef _tunnel tunnel; fi
`;
};
