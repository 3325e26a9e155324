// The tree of commands as the branches of a shell script. A shell says how it writes a branch; which branches there are is the same for all.
import { type CommandWords, flagsWithValues, positionsByValues, type Values, type Word } from './command-words.ts';

/** The syntax of one shell: how it quotes text and writes the branches of a completion script. */
export interface ShellSyntax {
  readonly quoted: (text: string) => string;
  /** Between the alternatives of one pattern. */
  readonly or: string;
  /** The word `text` leads to another command. */
  readonly step: (pattern: string, at: string) => string;
  /** The flags, or the commands, that can come next. */
  readonly flags: (pattern: string, words: readonly Word[]) => string;
  readonly commands: (pattern: string, words: readonly Word[]) => string;
  readonly values: (pattern: string, values: Values) => string;
}

/** Lines and patterns to be put into a script. */
export interface Branches {
  readonly steps: string;
  readonly flags: string;
  readonly commands: string;
  readonly values: string;
  /** Flags that are followed by a value. */
  readonly takesValue: string;
  /** Commands whose argument can be repeated. */
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
    // Where no argument can be repeated: a path that does not exist.
    repeated: pattern(repeated.length === 0 ? ['-'] : repeated),
  };
};

/** As bash and zsh take it. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
