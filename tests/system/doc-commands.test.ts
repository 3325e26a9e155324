// Tests that all commands in the documentation exist: every command and flag, in blocks and in running text, and every npm script.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { admin } from '../../apps/server/src/commands/admin.ts';
import { alert } from '../../apps/server/src/commands/alert-command.ts';
import { edgeCredential } from '../../apps/server/src/commands/database-commands.ts';
import { downloads } from '../../apps/server/src/commands/downloads.ts';
import { oauthClient } from '../../apps/server/src/commands/oauth-client.ts';
import { signingKeys } from '../../apps/server/src/commands/signing-keys.ts';
import { EXAMPLE_PAGES, node, ROOT, SERVER_BIN } from '../repo/checkout.fixture.ts';

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md'],
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...EXAMPLE_PAGES,
];

const SHELL_BLOCK = /^ *```sh\n([\s\S]*?)^ *```$/gm;
const INLINE = /`([^`\n]+)`/g;
const PROGRAM = /^(?:npx )?(tunnel|tunnel-server|hatchway) (.+)$/;

/** Splits a shell line into its commands, without the comment. */
const commandsOf = (line: string): string[] =>
  line
    .replace(/(^|\s)#.*$/, '')
    .split(/&&|\|\||[|;&]|\$\(/)
    .map((part) =>
      part
        .trim()
        .replace(/^\$ /, '')
        .replace(/^sudo (?:-u \S+ )?/, '')
        .replace(/^(?:[A-Z_]+=\S* )+/, ''),
    );

const typedIn = (page: string): string[] => {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(SHELL_BLOCK)].flatMap((match) => (match[1] ?? '').split('\n'));
  const inline = [...text.replace(/^ *```[\s\S]*?^ *```$/gm, '').matchAll(INLINE)].map((match) => match[1] ?? '');
  return [...blocks, ...inline].flatMap(commandsOf);
};

interface Typed {
  readonly page: string;
  readonly text: string;
  readonly program: string;
  /** Words before the first flag, which can name a command. */
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

const typed: Typed[] = PAGES.flatMap((page) =>
  typedIn(page).flatMap((text) => {
    const [, program = '', rest = ''] = PROGRAM.exec(text) ?? [];
    if (program === '') return [];
    const all = rest.split(/\s+/);
    const end = all.findIndex((word) => !/^[a-z][a-z0-9-]*$/.test(word));
    const words = all.slice(0, Math.min(2, end === -1 ? all.length : end));
    const flags = all.flatMap((word) => /^(--[a-z][a-z0-9-]*|-[a-z])(?:=|$)/.exec(word)?.[1] ?? []);
    return [{ page, text, program, words, flags }];
  }),
);

/** Help text of every `tunnel` command, by name and alias. A separate test proves that the page matches the output of the program. */
const reference = new Map(
  [...readFileSync(join(ROOT, 'docs/cli.md'), 'utf8').matchAll(/^#### (tunnel.*)\n\n```\n([\s\S]*?)^```$/gm)].flatMap(
    ([, path = '', help = '']) => {
      const [, alias] = /^Usage: tunnel [\w-]+\|([\w-]+) /.exec(help) ?? [];
      return [path, ...(alias === undefined ? [] : [`tunnel ${alias}`])].map((words) => [words, help] as const);
    },
  ),
);

const COMMAND_BELOW = /^ {2}([a-z][a-z-]*)\b/gm;

const SERVER_PARENTS = [admin, alert, downloads, edgeCredential, oauthClient, signingKeys].map((make) =>
  make(() => {}),
);

/** Returns the `tunnel-server` commands from the output of --help, with subcommands. */
const serverCommands = async (): Promise<Set<string>> => {
  const { stdout } = await node([SERVER_BIN, '--help']);
  const listed = stdout.slice(stdout.indexOf('\nRun:\n'), stdout.indexOf('\nExit codes:\n')).matchAll(COMMAND_BELOW);
  const below = SERVER_PARENTS.flatMap((parent) => parent.commands.map((one) => `${parent.name()} ${one.name()}`));
  return new Set([...[...listed].map(([, name = '']) => name), ...below]);
};

const flagsIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/(?<![\w-])(--[a-z][a-z0-9-]*|-[a-z])\b/g)].map((match) => match[1] as string));

const COMMANDS_DIR = join(ROOT, 'apps/server/src/commands');
const serverFlags = flagsIn(
  ['--help', ...readdirSync(COMMANDS_DIR).map((name) => readFileSync(join(COMMANDS_DIR, name), 'utf8'))].join('\n'),
);

interface Known {
  readonly isCommand: boolean;
  readonly flags: ReadonlySet<string>;
}

const atServer = ([command = '', below]: readonly string[], commands: ReadonlySet<string>): Known => {
  const isParent = SERVER_PARENTS.some((parent) => parent.name() === command) && below !== undefined;
  return { isCommand: commands.has(isParent ? `${command} ${below}` : command), flags: serverFlags };
};

const atClient = ([command = '', below]: readonly string[]): Known => {
  const above = reference.get(`tunnel ${command}`) ?? '';
  const isParent = /^Usage: .*\[command\]/m.test(above) && below !== undefined;
  const help = isParent ? (reference.get(`tunnel ${command} ${below}`) ?? '') : above;
  return { isCommand: help !== '', flags: flagsIn(help) };
};

const wrongWith = ({ page, text, program, words, flags }: Typed, commands: ReadonlySet<string>): string[] => {
  const known = program === 'tunnel-server' ? atServer(words, commands) : atClient(words);
  if (!known.isCommand) return [`${page}: no such command: ${text}`];
  return flags.filter((flag) => !known.flags.has(flag)).map((flag) => `${page}: no such flag ${flag}: ${text}`);
};

it('every command and flag in the documentation exists', async () => {
  expect(typed.length).toBeGreaterThan(100);
  const commands = await serverCommands();
  expect(typed.filter(({ words }) => words.length > 0).flatMap((one) => wrongWith(one, commands))).toEqual([]);
});

it('every npm script in the documentation exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
  const named = PAGES.flatMap((page) =>
    typedIn(page).map((text) => /^npm (?:run )?([\w:]+)/.exec(text)?.[1] ?? 'start'),
  );
  const ofNpm = ['install', 'uninstall', 'ci', 'pack', 'link'];
  expect(named.filter((name) => !(name in scripts) && !ofNpm.includes(name))).toEqual([]);
});
