// The tree of commands as branches of a completion script. The syntax of a branch depends on the shell; the set of branches is the same
// for all shells.
import { type CommandWords, flagsWithValues, positionsByValues, type Values, type Word } from './command-words.ts';

/** The syntax of one shell for quoted text and for the branches of a completion script. */
export interface ShellSyntax {
  readonly quoted: (text: string) => string;
  /** Separator between the alternatives of a pattern. */
  readonly or: string;
  /** Formats the branch for the name of a subcommand. */
  readonly step: (pattern: string, at: string) => string;
  /** Formats the branch with the possible next flags (below: the possible next commands). */
  readonly flags: (pattern: string, words: readonly Word[]) => string;
  readonly commands: (pattern: string, words: readonly Word[]) => string;
  readonly values: (pattern: string, values: Values) => string;
}

/** Lines and patterns to insert into a completion script. */
export interface Branches {
  readonly steps: string;
  readonly flags: string;
  readonly commands: string;
  readonly values: string;
  /** Pattern of the flags with a value. */
  readonly takesValue: string;
  /** Pattern of the commands with a repeatable argument. */
  readonly repeated: string;
}

export const writeBranches = (all: readonly CommandWords[], syntax: ShellSyntax): Branches => {
  const { quoted } = syntax;
  const pattern = (positions: readonly string[]): string => positions.map(quoted).join(syntax.or);
  const lines = (texts: readonly string[]): string => texts.join('\n');
  const repeated = all.filter(({ isRepeated }) => isRepeated).map(({ path }) => path);
  return {
    steps: lines(
      all.flatMap(({ path, commands }) =>
        commands.map(({ text }) => syntax.step(quoted(`${path}|${text}`), quoted(`${path} ${text}`.trim()))),
      ),
    ),
    flags: lines(all.map(({ path, flags }) => syntax.flags(quoted(path), flags))),
    commands: lines(
      all
        .filter(({ commands }) => commands.length > 0)
        .map(({ path, commands }) => syntax.commands(quoted(`${path}|`), commands)),
    ),
    values: lines(
      [...positionsByValues(all).values()].map(({ values, positions }) => syntax.values(pattern(positions), values)),
    ),
    takesValue: pattern(flagsWithValues(all)),
    // Without a repeatable argument, the pattern has a path that does not exist, because a pattern must not be empty.
    repeated: pattern(repeated.length === 0 ? ['-'] : repeated),
  };
};

/** Quotes a text for bash and zsh. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
