import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { buildProgram, run } from '../all-commands.ts';
import { makeTestIo } from './io.fixture.ts';

const printed = async (words: readonly string[], columns = 80): Promise<string> => {
  const io = makeTestIo({ home: '/nowhere', isTTY: true, columns });
  expect(await run(words, io)).toBe(0);
  return io.out();
};

const flagsIn = (help: string): string[] =>
  [...help.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag = '']) => flag);

const below = (command: Command, words: readonly string[]): (readonly [string[], Command])[] =>
  command.commands.flatMap((one) => {
    const path = [...words, one.name()];
    return [[path, one] as const, ...below(one, path)];
  });

const COMMANDS = below(await buildProgram(makeTestIo({ home: '/nowhere' }), () => {}), []);
const PAGES = COMMANDS.filter(([, command]) => command.summary() !== '').map(([words]) => words);

/** Rows of a terminal, minus a row for the next prompt. */
const SCREEN_LINES = 23;

describe('the short help (-h)', () => {
  it('exists for every command that opens tunnels', () => {
    expect(PAGES.map((words) => words.join(' ')).sort()).toEqual(
      ['files', 'http', 'mcp-publish', 'p2p connect', 'p2p publish', 'start', 'tcp', 'tls', 'udp'].sort(),
    );
  });

  it.each(PAGES.map((words) => [words.join(' '), words] as const))(
    'fits a screen of 80 columns for `%s`',
    async (_, words) => {
      const lines = (await printed([...words, '-h'])).trimEnd().split('\n');
      expect(lines.length, lines.join('\n')).toBeLessThanOrEqual(SCREEN_LINES);
      for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80);
    },
  );

  it.each(PAGES.map((words) => [words.join(' '), words] as const))(
    'lists the first options of --help in the same order for `%s`',
    async (_, words) => {
      const brief = flagsIn(await printed([...words, '-h']));
      const whole = flagsIn(await printed([...words, '--help']));
      expect(whole.slice(0, brief.length)).toEqual(brief);
      expect(whole.length).toBeGreaterThan(brief.length);
    },
  );

  it('lists only the common commands for `tunnel`, and fits a screen', async () => {
    const help = await printed(['-h']);
    expect(help.trimEnd().split('\n').length).toBeLessThanOrEqual(SCREEN_LINES);
    expect(help).toContain('  http <port> ');
    expect(help).not.toContain('  reservations ');
    expect(await printed(['--help'])).toContain('  reservations ');
  });
});

describe('the full help (--help)', () => {
  it.each(COMMANDS.map(([words, command]) => [words.join(' '), words, command] as const))(
    'lists every option of `%s` once, and states the right number of options',
    async (_, words, command) => {
      const help = await printed([...words, '--help']);
      const visible = command.options.filter(({ hidden }) => !hidden).flatMap(({ long }) => long ?? []);
      // Lines that only list flags of another command are not entries of this help.
      const listed = flagsIn(help.replaceAll(/^ {2}--\S+(?: --\S+)+$/gm, ''));
      expect([...listed].sort()).toEqual([...visible, '--help'].sort());
      for (const { long } of command.options) expect(help).toMatch(new RegExp(`^ {2}(?:\\S+ )*${long}(?:\\s|$)`, 'm'));
      const [, count] = /all (\d+) \(--help\)/.exec(help) ?? [];
      if (count !== undefined) expect(Number(count)).toBe(visible.length);
    },
  );

  it('puts a flag that is wider than its column on a separate line', async () => {
    expect(await printed(['http', '--help'])).toMatch(/\n {2}--rate-limit <requests\/seconds>\n {31}Maximum/);
  });

  it.each([30, 45, 60, 75])('breaks descriptions at spaces in a terminal of %i columns', async (columns) => {
    const lines = (await printed(['start', '--help'], columns)).split('\n');
    for (const line of lines)
      if (!line.includes('$ tunnel') && !/^\S/.test(line)) expect(line.length, line).toBeLessThanOrEqual(columns);
    expect(lines.join(' ').replaceAll(/\s+/g, ' ')).toContain('Use new random names and ports');
  });

  it('takes precedence over -h, and `tunnel help` prints the same', async () => {
    const whole = await printed(['tcp', '--help']);
    expect(await printed(['tcp', '-h', '--help'])).toBe(whole);
    expect(await printed(['help', 'tcp'])).toBe(whole);
  });

  it.each([20, 40, 79, 80, 100, 300])('lists every flag of `tunnel http` at %i columns', async (columns) => {
    expect(flagsIn(await printed(['http', '--help'], columns))).toEqual(flagsIn(await printed(['http', '--help'])));
  });

  it.each(COMMANDS.map(([words]) => [words.join(' '), words] as const))(
    'of `%s` ends with the page and heading that explain the command',
    async (_, words) => {
      const lastLine = async (platformUrl?: string): Promise<string | undefined> => {
        const io = makeTestIo({ home: '/nowhere', ...(platformUrl === undefined ? {} : { platformUrl }) });
        await run([...words, '--help'], io);
        return io.out().trimEnd().split('\n').at(-1);
      };
      expect(await lastLine()).toMatch(/^Docs: docs\/[\w-]+\.md(#[\w-]+)?$/);
      expect(await lastLine('http://localhost:8080')).toMatch(
        /^Docs: http:\/\/localhost:8080\/docs\/guide\/([\w-]+#[\w-]+)?$/,
      );
    },
  );
});
