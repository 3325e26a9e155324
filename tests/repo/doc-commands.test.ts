// What the pages tell people to type exists: every command and every flag, in blocks and in running text, and every npm script.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeTestIo } from '../../apps/cli/src/io.fixture.ts';
import { run as runTunnel } from '../../apps/cli/src/run.ts';
import { node, ROOT, SERVER_BIN } from './checkout.fixture.ts';

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md'],
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const SHELL_BLOCK = /^ *```sh\n([\s\S]*?)^ *```$/gm;
const INLINE = /`([^`\n]+)`/g;
const PROGRAM = /^(?:npx )?(tunnel|tunnel-server) (.+)$/;

/** A line of a shell without its comment, and each of the commands that it joins. */
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
  /** The words before the first flag that may name a command. */
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

const helps = new Map<string, Promise<string>>();

const askForHelp = async (program: string, words: readonly string[]): Promise<string> => {
  if (program === 'tunnel-server') return (await node([SERVER_BIN, ...words, '--help'])).stdout;
  const io = makeTestIo({ home: '/nowhere' });
  await runTunnel([...words, '--help'], io);
  return io.out();
};

/** Its help; empty when there is no such command, and the help of the one above it was shown instead. */
const helpOf = async (program: string, words: readonly string[]): Promise<string> => {
  const path = [program, ...words].join(' ');
  if (!helps.has(path)) helps.set(path, askForHelp(program, words));
  const help = (await helps.get(path)) ?? '';
  const usage = /^Usage: (.*)$/m.exec(help)?.[1]?.replace(/\|\S+/g, '') ?? '';
  return usage === path || usage.startsWith(`${path} `) ? help : '';
};

const wrongWith = async ({ page, text, program, words, flags }: Typed): Promise<string[]> => {
  const longest = words.length > 1 ? await helpOf(program, words) : '';
  const help = longest || (await helpOf(program, words.slice(0, 1)));
  if (help === '') return [`${page}: no such command: ${text}`];
  const known = new Set([...help.matchAll(/(?<![\w-])(--[a-z][a-z0-9-]*|-[a-z])\b/g)].map((match) => match[1]));
  return flags.filter((flag) => !known.has(flag)).map((flag) => `${page}: no such flag ${flag}: ${text}`);
};

it('every command and flag of the pages exists', async () => {
  expect(typed.length).toBeGreaterThan(100);
  const wrong: string[] = [];
  for (const one of typed) if (one.words.length > 0) wrong.push(...(await wrongWith(one)));
  expect(wrong).toEqual([]);
});

it('every npm script of the pages exists', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
  const named = PAGES.flatMap((page) =>
    typedIn(page).map((text) => /^npm (?:run )?([\w:]+)/.exec(text)?.[1] ?? 'start'),
  );
  const ofNpm = ['install', 'ci', 'pack', 'link'];
  expect(named.filter((name) => !(name in scripts) && !ofNpm.includes(name))).toEqual([]);
});
