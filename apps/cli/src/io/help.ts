// The help of the program. `--help` lists everything. A command with a page also has `-h`, which shows examples and common options on one
// screen.
import type { EventEmitter } from 'node:events';
import { type Argument, type Command, Help, type HelpConfiguration, Option } from 'commander';
import type { Io } from './io.ts';

/** Maximum columns of a help text, even on a wider terminal. */
const HELP_COLUMNS = 100;

/** Columns for flags and commands. A longer flag gets a separate line, so that descriptions keep their room at 80 columns. */
const TERM_COLUMNS = 27;

/** Minimum columns for descriptions beside flags. A narrower terminal shows descriptions below the flags. */
const DESCRIPTION_COLUMNS = 20;

/** Columns used by the left margin and by the gap before a description. */
const ITEM_MARGIN = 4;

/** Heading of the options shown by `-h`. */
const COMMON_HEADING = 'Options:';

/** Number of examples above the options, also shown by `-h`. */
const FIRST_EXAMPLES = 2;

export interface Page {
  /** Long flags of the options to show first, without a heading for their subject. */
  readonly common: readonly string[];
  /** Command lines without the prompt. The first two lines are for newcomers. */
  readonly examples: readonly string[];
  /** Text at the end of the full help. */
  readonly note?: string;
}

/**
 * Gives a command with many options a page: examples and common options first, other options below their headings. The description then
 * contains the first examples, and the summary does not. `hasPage` recognizes the command by its summary.
 */
export const addPage = (command: Command, { common, examples, note }: Page): Command => {
  for (const option of command.options) if (common.includes(option.long ?? '')) option.helpGroup(COMMON_HEADING);
  const shown = examples.map((example) => `  $ ${example}`);
  const more = shown.slice(FIRST_EXAMPLES);
  const end = [...(more.length === 0 ? [] : ['More examples:', ...more]), ...(note === undefined ? [] : ['', note])];
  const summary = command.description();
  command.summary(summary).description([summary, '', 'Examples:', ...shown.slice(0, FIRST_EXAMPLES)].join('\n'));
  return end.length === 0 ? command : command.addHelpText('after', `\n${end.join('\n').trimStart()}`);
};

const hasPage = (command: Command): boolean => command.summary() !== '';

const isCommon = ({ helpGroupHeading = COMMON_HEADING }: Option): boolean => helpGroupHeading === COMMON_HEADING;

/** Returns true if the arguments request the short help. */
export const isBriefHelp = (args: readonly string[]): boolean => args.includes('-h') && !args.includes('--help');

export const helpWidth = ({ isTTY, columns }: Io['stdout']): number =>
  isTTY === true && columns !== undefined && columns > 0 ? Math.min(columns, HELP_COLUMNS) : HELP_COLUMNS;

/** Creates the option that prints a command's help. The option is listed below the heading of the common options. */
export const helpOption = (command: Command): Option =>
  new Option('-h, --help', helpText(command)).helpGroup(COMMON_HEADING);

const helpText = (command: Command): string => {
  if (!hasPage(command)) return 'Show this help';
  if (command.commands.length > 0) return 'Show common commands (-h) or all (--help)';
  return `Show common options (-h) or all ${command.options.length} (--help)`;
};

/**
 * Configures the commands and options listed by the help, and their layout. `common` has the names of the commands in the program's short
 * help.
 */
export const helpConfiguration = (isBrief: boolean, common: readonly string[]): HelpConfiguration => ({
  visibleCommands(command) {
    const all = Help.prototype.visibleCommands.call(this, command);
    return isBrief && hasPage(command) ? all.filter((below) => common.includes(below.name())) : all;
  },
  visibleOptions(command) {
    const all = Help.prototype.visibleOptions.call(this, command);
    const first = all.filter(isCommon);
    if (!hasPage(command)) return all;
    return isBrief ? first : [...first, ...all.filter((option) => !isCommon(option))];
  },
  // Groups are listed in the order of their first visible item. commander would use the order in which options were added.
  groupItems(_added, visible, groupOf) {
    const groups = new Map<string, typeof visible>();
    for (const item of visible) {
      const group = isBrief && !(item instanceof Option) ? 'Commands:' : groupOf(item);
      groups.set(group, [...(groups.get(group) ?? []), item]);
    }
    return groups;
  },
  // Commands are listed without `[options]`, because every command takes options and the repeated text makes the lines long.
  subcommandTerm: (command) =>
    [[command.name(), ...command.aliases()].join('|'), ...command.registeredArguments.map(argumentTerm)].join(' '),
  optionDescription: ({ description, argChoices, defaultValue, defaultValueDescription, required }) => {
    const byDefault = defaultValueDescription ?? (defaultValue as string | number | undefined);
    const notes = [
      ...(argChoices === undefined ? [] : [argChoices.join(', ')]),
      ...(required && byDefault !== undefined ? [`default: ${byDefault}`] : []),
    ];
    return notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
  },
  padWidth(command, helper) {
    return Math.min(Help.prototype.padWidth.call(this, command, helper), TERM_COLUMNS);
  },
  minWidthToWrap: DESCRIPTION_COLUMNS,
  formatItem(term, width, description, helper) {
    const columns = helper.helpWidth ?? HELP_COLUMNS;
    if (columns - width - ITEM_MARGIN < DESCRIPTION_COLUMNS) {
      return `  ${term}\n${helper.boxWrap(description, columns - ITEM_MARGIN).replaceAll(/^/gm, '    ')}`;
    }
    const format = (text: string): string => Help.prototype.formatItem.call(this, text, width, description, helper);
    return term.length <= width || description === '' ? format(term) : `  ${term}\n${format('')}`;
  },
});

const argumentTerm = (argument: Argument): string => {
  const name = argument.name() + (argument.variadic ? '...' : '');
  return argument.required ? `<${name}>` : `[${name}]`;
};

/**
 * Ends the short help after the common options. commander stores the texts below the options as listeners, which its types do not
 * declare.
 */
export const endBriefHelp = (command: Command): void => {
  if (hasPage(command)) (command as unknown as EventEmitter).removeAllListeners('afterHelp');
};
