// The words that can follow `tunnel`, collected from the tree of commands: commands, flags and the kinds of values. Shared by the scripts
// of all shells.
import type { Argument, Command, Option } from 'commander';

export interface Word {
  readonly text: string;
  readonly description: string;
}

/**
 * Values of a flag or argument: a list of words, or the place where a shell finds the values. `tunnel __complete` prints `names` and
 * `clients`.
 */
export type Values = readonly string[] | 'anything' | 'files' | 'folders' | 'names' | 'clients';

export interface Flag extends Word {
  /** Values of the flag. Null for a flag without a value. */
  readonly values: Values | null;
}

export interface CommandWords {
  /** Words of the command after `tunnel`, for example `keys create`. Empty for `tunnel` itself. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly flags: readonly Flag[];
  readonly firstArgument: Values;
  readonly isRepeated: boolean;
}

export const commandWords = (program: Command): CommandWords[] => wordsBelow(program, []);

const wordsBelow = (command: Command, path: readonly string[]): CommandWords[] => {
  const help = command.createHelp();
  const commands = help.visibleCommands(command).filter((below) => below.name() !== 'help');
  const [argument] = command.registeredArguments;
  return [
    {
      path: path.join(' '),
      commands: commands.map((below) => ({ text: below.name(), description: help.subcommandDescription(below) })),
      // Flags hidden in the help of `tunnel add` are completed as well.
      flags: [...command.options.filter(({ hidden }) => hidden), ...help.visibleOptions(command)].flatMap(flagsOf),
      firstArgument: argument === undefined ? 'anything' : valuesOfArgument(argument, path),
      isRepeated: argument?.variadic ?? false,
    },
    ...commands.flatMap((below) => wordsBelow(below, [...path, below.name()])),
  ];
};

const flagsOf = (option: Option): Flag[] => {
  // A flag with an optional value is completed like a flag without a value, because the next word can be another flag.
  const values = option.required ? valuesOfFlag(option) : null;
  const texts = [option.long, option.short].filter((text) => text !== undefined && text !== null);
  return texts.map((text) => ({ text, description: option.description, values }));
};

/** Kinds of values by the placeholder in the help. */
const VALUES: Readonly<Record<string, Values>> = {
  file: 'files',
  dir: 'folders',
  folder: 'folders',
  'pid|config': 'clients',
};

const valuesOfFlag = ({ argChoices, flags }: Option): Values =>
  argChoices ?? VALUES[/<([^>]+)>/.exec(flags)?.[1] ?? ''] ?? 'anything';

/** Commands with a tunnel of config.yml as their argument `name`. */
const TAKES_NAMES: ReadonlySet<string> = new Set(['start', 'remove']);

const valuesOfArgument = (argument: Argument, path: readonly string[]): Values => {
  if (argument.argChoices !== undefined) return argument.argChoices;
  if (argument.name() === 'name' && TAKES_NAMES.has(path.join(' '))) return 'names';
  return VALUES[argument.name()] ?? 'anything';
};

/** Returns `path|flag` for every flag with a value. */
export const flagsWithValues = (all: readonly CommandWords[]): string[] =>
  all.flatMap(({ path, flags }) => flags.filter(({ values }) => values !== null).map(({ text }) => `${path}|${text}`));

/**
 * Groups positions (`path|flag`, or `path|` for the first argument) by the kind of their values. A completion script has a branch for
 * each kind.
 */
export const positionsByValues = (
  all: readonly CommandWords[],
): Map<string, { values: Values; positions: string[] }> => {
  const kinds = new Map<string, { values: Values; positions: string[] }>();
  const add = (values: Values, position: string): void => {
    if (values === 'anything') return;
    const key = String(values);
    const kind = kinds.get(key) ?? { values, positions: [] };
    kind.positions.push(position);
    kinds.set(key, kind);
  };
  for (const { path, flags, commands, firstArgument } of all) {
    if (commands.length === 0) add(firstArgument, `${path}|`);
    for (const { text, values } of flags) add(values ?? 'anything', `${path}|${text}`);
  }
  return kinds;
};
