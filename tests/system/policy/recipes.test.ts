// Tests of the recipes in docs/policy.md: the files are written exactly as on the page, each policy is valid, and each `tunnel policy
// test` command has the expected result.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../apps/cli/src/all-commands.ts';
import { makeTestIo } from '../../../apps/cli/src/io/io.fixture.ts';
import { type Ended, ROOT, run as runFile } from '../../repo/checkout.fixture.ts';
import { commandOf } from '../tunnel-program.fixture.ts';

const RECIPES = 10;

interface Recipe {
  readonly title: string;
  /** Files of the recipe by name, with the text of the page. */
  readonly files: ReadonlyMap<string, string>;
  readonly commands: readonly (readonly string[])[];
}

/** Matches a code block. A name behind the language makes the block a file. */
const BLOCK = /^```(\w+)(?: ([\w.-]+))?\n([\s\S]*?)^```$/gm;
const COMMAND = /^tunnel (policy test .+)$/gm;

/** Splits a shell line, with only single quotes in it, into words. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

const readRecipe = (part: string): Recipe => {
  const blocks = [...part.matchAll(BLOCK)].map(([, language = '', name, text = '']) => ({ language, name, text }));
  return {
    title: part.slice(0, part.indexOf('\n')),
    files: new Map(blocks.flatMap(({ name, text }) => (name === undefined ? [] : [[name, text] as const]))),
    commands: blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => [...text.matchAll(COMMAND)].map(([, words = '']) => wordsOf(words))),
  };
};

const page = readFileSync(join(ROOT, 'docs/policy.md'), 'utf8');
const chapter = page.slice(page.indexOf('\n## Ten recipes\n'), page.indexOf('\n## Match\n'));
const recipes = chapter
  .split(/^### \d+\. /m)
  .slice(1)
  .map(readRecipe);

let folder: TemporaryDirectory;
beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const { files } of recipes)
    for (const [name, text] of files) writeFileSync(join(folder.path, name), text, { mode: 0o600 });
});
afterAll(() => folder.close());

/**
 * Runs the command inside the test process, with the folder of the recipe files as home and working folder. The command makes no request.
 */
const tunnel = async (args: readonly string[]): Promise<Ended> => {
  const io = makeTestIo({ home: folder.path });
  const code = await run(args, io);
  return { code, stdout: io.out(), stderr: io.err() };
};

it(`there are ${RECIPES}, each with a policy and lines that prove it both ways, in files of its own`, () => {
  expect(recipes).toHaveLength(RECIPES);
  for (const { title, files, commands } of recipes) {
    expect(
      [...files.keys()].filter((name) => name.endsWith('.yml')),
      title,
    ).toHaveLength(1);
    expect(commands.length, title).toBeGreaterThanOrEqual(2);
    for (const words of commands) expect(words, title).toContain('--expect');
  }
  const names = recipes.flatMap(({ files }) => [...files.keys()]);
  expect(names).toEqual([...new Set(names)]);
});

describe.each(recipes)('$title', ({ files, commands }) => {
  it('is a valid policy', async () => {
    const [name = ''] = [...files.keys()].filter((file) => file.endsWith('.yml'));
    const services = commands
      .flatMap((words) => (words.includes('--services') ? ['--services', 'api'] : []))
      .slice(0, 2);
    const protocol = /tunnel policy check (\S+) --proto (\w+)/.exec(chapter);
    const flags = protocol?.[1] === name ? ['--proto', protocol[2] ?? ''] : [];
    const checked = await tunnel(['policy', 'check', name, ...services, ...flags]);
    expect(checked, checked.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(`${name} is good`) });
  });

  it.each(commands.map((words) => [words.slice(2).join(' '), words] as const))('%s', async (_, words) => {
    const { code, stdout, stderr } = await tunnel(words);
    expect(code, `${stdout}${stderr}`).toBe(0);
  });
});

it('a failed expectation ends `tunnel policy test` with 1, in the test process and as an executable', async () => {
  const words = recipes.flatMap(({ commands }) => commands)[0] ?? [];
  const unmet = words.map((word, index) => (words[index - 1] === '--expect' ? '418' : word));
  const program = commandOf(unmet);
  const ended = await tunnel(unmet);
  expect(ended.code).toBe(1);
  expect(await runFile(program.command, program.args, folder.path)).toEqual(ended);
});
