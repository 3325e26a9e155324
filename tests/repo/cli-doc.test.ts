// The reference in docs/cli.md contains the `--help` of every command. To regenerate it: UPDATE_DOCS=1 npx vitest run
// tests/repo/cli-doc.test.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProgram, run } from '../../apps/cli/src/all-commands.ts';
import { makeTestIo } from '../../apps/cli/src/io/io.fixture.ts';
import { ROOT } from './checkout.fixture.ts';

const PAGE = join(ROOT, 'docs/cli.md');
const HEADING = '## Reference\n';
const UPDATE = 'UPDATE_DOCS=1 npx vitest run tests/repo/cli-doc.test.ts';
const COLUMNS = 100;

const INTRODUCTION = `${HEADING}
The \`--help\` of every command. \`-h\` shows only the common options. The last line names the page that explains the command; on a computer that is signed in to a platform, the line is a link to the platform's copy of the page. To regenerate this section: \`${UPDATE}\`.
`;

type Command = Awaited<ReturnType<typeof buildProgram>>;

interface Listed {
  readonly words: readonly string[];
  /** Help group of a direct subcommand of `tunnel`. */
  readonly group: string;
}

const helpIo = () => makeTestIo({ home: '/nowhere' });

const commandsBelow = (command: Command, words: readonly string[]): Listed[] =>
  command.commands.flatMap((below) => {
    const path = [...words, below.name()];
    return [{ words: path, group: below.helpGroup() }, ...commandsBelow(below, path)];
  });

const program = await buildProgram(helpIo(), () => {});
const LISTED: readonly Listed[] = [{ words: [], group: '' }, ...commandsBelow(program, [])];

/** Help texts by command. Each command prints its help once for all tests, because a run builds the whole program. */
const helps = new Map<string, Promise<string>>();
const helpOf = ({ words }: Pick<Listed, 'words'>): Promise<string> => {
  const path = words.join(' ');
  const known = helps.get(path) ?? printHelp(words);
  helps.set(path, known);
  return known;
};

const printHelp = async (words: readonly string[]): Promise<string> => {
  const io = helpIo();
  expect(await run([...words, '--help'], io)).toBe(0);
  return io.out();
};

const render = async (): Promise<string> => {
  const lines = [INTRODUCTION];
  for (const listed of LISTED) {
    const { words, group } = listed;
    if (words.length === 1 && !lines.includes(groupTitle(group))) lines.push(groupTitle(group), '');
    lines.push(`#### ${['tunnel', ...words].join(' ')}`, '', '```', (await helpOf(listed)).trimEnd(), '```', '');
  }
  return lines.join('\n');
};

const groupTitle = (heading: string): string => `### ${heading.replace(/:$/, '')}`;

const byHand = (): string => readFileSync(PAGE, 'utf8').split(`\n${HEADING}`, 1)[0] ?? '';

if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, `${byHand().trimEnd()}\n\n${await render()}`);

it('docs/cli.md contains the exact help of every command', async () => {
  expect(readFileSync(PAGE, 'utf8'), UPDATE).toBe(`${byHand().trimEnd()}\n\n${await render()}`);
});

describe.each(LISTED.map((listed) => [['tunnel', ...listed.words].join(' '), listed] as const))(
  '%s --help',
  (_, listed) => {
    it('fits into 100 columns, has an example, and begins each description with a capital letter', async () => {
      const help = await helpOf(listed);
      for (const line of help.split('\n')) expect(line.length, line).toBeLessThanOrEqual(COLUMNS);
      expect(help).toMatch(/^Examples?:\n {2}\$ /m);
      const lower = help.split('\n').filter((line) => /^ {2}\S.*? {2,}[a-z]/.test(line) && !/^ {2}[$-] /.test(line));
      expect(lower.filter((line) => !/ {2}logs: /.test(line))).toEqual([]);
    });
  },
);

it('the help of a command with many flags starts with the common options and groups the others', async () => {
  const help = await helpOf({ words: ['http'] });
  const headings = help.split('\n').filter((line) => /^\S.*:$/.test(line));
  expect(headings).toEqual([
    ...['Examples:', 'Arguments:', 'Options:'],
    ...['Address:', 'Local service:', 'Access:', 'Load balancing:', 'Health:', 'Output:', 'Connection:'],
    'More examples:',
  ]);
});
