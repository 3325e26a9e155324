// Checks that files and folders named in ARCHITECTURE.md and CONTRIBUTING.md exist.
// A name contains a slash and is complete, with or without `.ts`. It is relative to the root of the repository (`packages/rules`), to a
// package's name (`client/local/probe` is packages/client/src/local/probe.ts), or to the src folder of the edge or the platform
// (`routing/balancer`, `services/tunnels/verify-key`); in a table of the parts of a src folder, also to that folder. Names count anywhere
// in code blocks; in prose only if the name fills the backticks.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

const NAME = /(?<![\w./<>:@*$-])[a-z][\w.-]*(?:\/[\w.-]*\w)+\/?(?![\w/<*:])/g;
/** A folder name, recognized by the slash at its end. */
const FOLDER = /^[a-z][\w-]*\/$/;
const FILE = /^(?!x\.)[\w.-]+\.(?:tsx?|mjs)$/;
/** Names in the example of a protocol that does not exist yet. */
const NOT_YET = /\budp\b/;
const EDGE = 'apps/edge/src';
const SUFFIXES = ['', '.ts', '.tsx', '.mjs'];

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');

const isThere = (name: string, src: string): boolean => {
  const [workspace, ...rest] = name.split('/');
  const inside = rest.join('/');
  const paths = [name, `${src}/${name}`, `${EDGE}/${name}`, `apps/platform/src/${name}`];
  if (inside !== '') paths.push(`packages/${workspace}/src/${inside}`, `apps/${workspace}/src/${inside}`);
  return paths.some((path) => SUFFIXES.some((suffix) => existsSync(join(ROOT, path.replace(/\/$/, '') + suffix))));
};

interface Named {
  readonly line: number;
  readonly name: string;
  /** The src folder that the surrounding table describes; by default the edge's. */
  readonly src: string;
}

/** Returns every name of a file or folder with its line. */
const namesIn = (text: string): Named[] => {
  let isCode = false;
  let src = EDGE;
  // Whether the line belongs to the table of long tests. Step names contain a slash but are not files.
  let isOfSteps = false;
  return text.split('\n').flatMap((content, index) => {
    if (content.trimStart().startsWith('```')) {
      isCode = !isCode;
      return [];
    }
    if (!content.startsWith('|')) {
      src = EDGE;
      isOfSteps = false;
    }
    isOfSteps ||= content.startsWith('| Step |');
    if (isOfSteps) return [];
    src = /^\| Part of `([\w/-]+)` \|/.exec(content)?.[1] ?? src;
    const spans = [...content.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string);
    const names = isCode
      ? [...content.matchAll(NAME)].map(([name]) => name)
      : spans.filter((span) => span.match(NAME)?.[0] === span || FOLDER.test(span) || FILE.test(span));
    return names.map((name) => ({ line: index + 1, name, src }));
  });
};

describe.each(['ARCHITECTURE.md', 'CONTRIBUTING.md'])('%s', (page) => {
  it('names only files and folders that exist', async () => {
    const tracked = (await run('git', ['ls-files'])).stdout.split('\n');
    const fileNames = new Set(tracked.map((path) => path.split('/').at(-1)));
    const names = namesIn(read(page)).filter(({ name }) => !NOT_YET.test(name));
    expect(names.length).toBeGreaterThan(20);
    const missing = names.filter(({ name, src }) => !(FILE.test(name) ? fileNames.has(name) : isThere(name, src)));
    expect(missing.map(({ line, name }) => `${page}:${line}: ${name}`)).toEqual([]);
  });
});

/** The tables that list the parts of a src folder: path of the folder, and rows. */
const tables = [...read('ARCHITECTURE.md').matchAll(/^\| Part of `([\w/-]+)` \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)];

/** Whether a folder contains files other than tests and fixtures. */
const holdsProduct = (folder: string): boolean =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).some(
    (file) => /\.tsx?$/.test(file) && !/\.(?:test|fixture|conformance)\.tsx?$/.test(file),
  );

it.each(tables.map(([, src = '', rows = '']) => [src, rows]))(
  'the table of %s in ARCHITECTURE.md lists exactly the folders that exist',
  (src, rows) => {
    const named = rows.split('\n').flatMap((row) => /^\| `([^`*]+)`/.exec(row)?.[1] ?? []);
    expect(named.filter((name) => !existsSync(join(ROOT, src, name)))).toEqual([]);
    const folders = readdirSync(join(ROOT, src), { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && holdsProduct(join(ROOT, src, entry.name)),
    );
    const roots = new Set(named.map((name) => name.split('/', 1)[0]));
    expect(folders.map(({ name }) => name).filter((name) => !roots.has(name))).toEqual([]);
  },
);

it('every workspace with import rules for its folders has a table of its parts in ARCHITECTURE.md', async () => {
  const rules = (await import(join(ROOT, 'scripts/lib/import-rules.mjs'))) as { FOLDER_MAY_IMPORT: object };
  const workspaces = tables.map(([, src = '']) => src.split('/')[1]);
  expect(new Set(workspaces)).toEqual(new Set(Object.keys(rules.FOLDER_MAY_IMPORT)));
});

it.each([
  ['`routing/balancer`', ['routing/balancer']],
  ['`no/such/file`, `db/` and `edge.ts`', ['no/such/file', 'db/', 'edge.ts']],
  ['`GET /api/x`, HTTP/2, `services/<entity>`, `apps/*/dist`, `x.test.ts`, `npx vitest run a/b`', []],
  [
    '```\n 1  TLS   ingress/tls/certificate, mux/splice  ─► 502 …_PLAIN\n```',
    ['ingress/tls/certificate', 'mux/splice'],
  ],
])('file names in %j are recognized as %j', (text, names) => {
  expect(namesIn(text).map(({ name }) => name)).toEqual(names);
});
