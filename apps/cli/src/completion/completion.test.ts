import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Argument, Command, Option } from 'commander';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildProgram, run } from '../all-commands.ts';
import { makeTestIo } from '../io/io.fixture.ts';
import { commandWords, flagsWithValues, positionsByValues } from './command-words.ts';
import { complete } from './complete.ts';

let home: TemporaryDirectory;
beforeEach(async () => {
  home = await temporaryDirectory();
});
afterEach(() => home.close());

const program = (): Command =>
  new Command('tunnel')
    .version('1')
    .addCommand(
      new Command('start')
        .argument('[name...]')
        .option('--config <file>', 'where')
        .addOption(new Option('--mode <mode>').choices(['a', 'b']))
        .option('-f, --follow', 'go on')
        .option('--tcp [port]', 'may stand alone'),
    )
    .addCommand(new Command('hidden'), { hidden: true })
    .addCommand(
      new Command('keys').addCommand(new Command('create').addArgument(new Argument('<what>').choices(['x']))),
    );

describe('words for shell completion', () => {
  it('follow the command tree, with the values of each flag and argument', () => {
    const words = commandWords(program());
    expect(words.map(({ path }) => path)).toEqual(['', 'start', 'keys', 'keys create']);
    expect(words[0]?.commands.map(({ text }) => text)).toEqual(['start', 'keys']);
    expect(words[1]).toMatchObject({ firstArgument: 'names', isRepeated: true });
    expect(words[1]?.flags.map(({ text, values }) => [text, values])).toEqual([
      ['--config', 'files'],
      ['--mode', ['a', 'b']],
      ['--follow', null],
      ['-f', null],
      ['--tcp', null],
      ['--help', null],
      ['-h', null],
    ]);
    expect(flagsWithValues(words)).toEqual(['start|--config', 'start|--mode']);
    expect([...positionsByValues(words).values()]).toEqual([
      { values: 'names', positions: ['start|'] },
      { values: 'files', positions: ['start|--config'] },
      { values: ['a', 'b'], positions: ['start|--mode'] },
      { values: ['x'], positions: ['keys create|'] },
    ]);
  });

  it.each(['bash', 'zsh', 'fish'])('appear in the script for %s: all commands except hidden ones', async (shell) => {
    const io = makeTestIo({ home: home.path });
    expect(await run(['completion', shell], io)).toBe(0);
    for (const command of ['http', 'start', 'service', 'completion', 'keys']) expect(io.out()).toContain(command);
    expect(io.out()).toContain('--subdomain');
    expect(io.out()).not.toContain('--supervised');
  });

  it('include every flag of every command, also for `tunnel add`, with their values', async () => {
    const tree = await buildProgram(makeTestIo({ home: home.path }), () => {});
    const words = commandWords(tree);
    const commandOf = (path: string): Command | undefined =>
      path
        .split(' ')
        .filter((word) => word !== '')
        .reduce<Command | undefined>((at, word) => at?.commands.find((one) => one.name() === word), tree);
    for (const { path, flags } of words) {
      const taken = commandOf(path)?.options.flatMap(({ long }) => long ?? []) ?? [];
      expect(
        flags
          .map(({ text }) => text)
          .filter((text) => text.startsWith('--'))
          .sort(),
        path,
      ).toEqual([...taken, '--help'].sort());
    }
    const values = (path: string, flag: string) =>
      words.find((one) => one.path === path)?.flags.find(({ text }) => text === flag)?.values;
    for (const path of ['http', 'add http']) expect(values(path, '--local-protocol')).toEqual(['http1', 'h2c']);
    expect(values('add udp', '--proxy-protocol')).toEqual(['v2']);
    expect(values('add tcp', '--group-key-file')).toBe('files');
  });

  it('are refused for an unknown shell', async () => {
    expect(await run(['completion', 'tcsh'], makeTestIo({ home: home.path }))).toBe(2);
  });
});

describe('`tunnel __complete`', () => {
  const ask = (...args: string[]): string => {
    const io = makeTestIo({ home: home.path });
    complete(args, io);
    return io.out();
  };

  it('lists the tunnels of config.yml or of the given file', () => {
    mkdirSync(join(home.path, '.tunnel'));
    writeFileSync(join(home.path, '.tunnel', 'config.yml'), 'tunnels:\n  web: {}\n  my db: {}\n  "a\\nb": {}\n');
    writeFileSync(join(home.path, 'other.yml'), 'tunnels: { zebra: {} }\n');
    expect(ask('names')).toBe('web\nmy db\n');
    expect(ask('names', 'other.yml')).toBe('zebra\n');
    expect(ask('names', '~/other.yml')).toBe('zebra\n');
    expect(ask('names', 'missing.yml')).toBe('');
  });

  it('lists running clients, and prints nothing for an unknown kind', () => {
    mkdirSync(join(home.path, '.tunnel', 'run'), { recursive: true, mode: 0o700 });
    writeFileSync(join(home.path, '.tunnel', 'run', `${process.pid}.sock`), '');
    // No process has the pid 4194999.
    writeFileSync(join(home.path, '.tunnel', 'run', '4194999.sock'), '');
    expect(ask('clients')).toBe(`${process.pid}\n`);
    expect(ask('toString')).toBe('');
    expect(ask()).toBe('');
  });
});
