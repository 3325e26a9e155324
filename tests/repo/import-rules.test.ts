// The rules about imports, tried on small trees that keep or break one of them.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { node, ROOT } from './checkout.fixture.ts';

interface Said {
  readonly stdout: string;
  readonly code: number;
}

const SCRIPT = join(ROOT, 'scripts/check-imports.mjs');
/** What the script says, without a process for each of the trees. */
const { checkImports } = (await import(join(ROOT, 'scripts/lib/check-imports.mjs'))) as {
  checkImports: (root: string) => { readonly text: string; readonly code: number };
};

let dir: TemporaryDirectory;
beforeEach(async () => {
  dir = await temporaryDirectory();
});
afterEach(() => dir.close());

const makeTree = (files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    const file = join(dir.path, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
};

const checkTree = (files: Readonly<Record<string, string>>): Said => {
  makeTree(files);
  const { text, code } = checkImports(dir.path);
  return { stdout: text, code };
};

const check = (path: string, text: string): Said => checkTree({ [path]: text });

/** Files of apps/edge/src, each with the files it imports. */
const edgeTree = (imports: Readonly<Record<string, readonly string[]>>): Said => {
  const paths = new Set([...Object.keys(imports), ...Object.values(imports).flat()]);
  const lines = (path: string): string[] =>
    (imports[path] ?? []).map((to) => `import '${relative(dirname(path), to).replace(/^(?!\.)/, './')}';\n`);
  return checkTree(Object.fromEntries([...paths].map((path) => [`apps/edge/src/${path}`, lines(path).join('')])));
};

it.each([
  ['packages/core/src/a.ts', "import { createCarrier } from '@tunnel/mux';", 'core may not import mux'],
  ['packages/core/src/a.ts', "import type { Limit } from '@tunnel/protocol';", 'core may not import protocol'],
  ['packages/core/src/a.ts', "export { x } from '@tunnel/runtime';", 'core may not import runtime'],
  ['packages/core/src/a.ts', 'const at = Date.now();', 'core may not use the clock'],
  ['packages/core/src/a.ts', 'const dice = Math.random();', 'core may not use chance'],
  ['packages/core/src/a.ts', 'export const a = async () => {};', 'core may not use async code'],
  ['packages/protocol/src/a.ts', "import { connect } from 'node:net';", 'may not import Node.js modules'],
  ['packages/protocol/src/a.ts', "import { connect } from 'net';", 'may not import Node.js modules'],
  ['packages/protocol/src/a.ts', 'setTimeout(() => {}, 1);', 'may not use `setTimeout`'],
  ['packages/contract/src/a.ts', 'export const home = process.env.HOME;', 'may not use `process`'],
  ['packages/errors/src/a.ts', "import { Secret } from '@tunnel/runtime';", 'errors may not import runtime'],
  ['packages/client/src/a.ts', "import {\n  x,\n} from '@tunnel/contract';", 'client may not import contract'],
  ['packages/mux/src/a.ts', "const { x } = await import('@tunnel/runtime');", 'mux may not import runtime'],
  ['packages/mux/src/deep/a.ts', "import { x } from '../../../core/src/a.ts';", 'leaves its package'],
  ['apps/cli/src/a.ts', "import { MuxSession } from '@tunnel/mux';", 'cli may not import mux'],
  ['apps/cli/src/a.ts', "import { x } from '@tunnel/client/src/session.ts';", 'reaches inside'],
  ['apps/edge/src/a.ts', "import { connect } from '@tunnel/client';", 'edge may not import client'],
  ['apps/edge/src/a.ts', "import pg from 'pg';", 'edge may not import pg'],
  ['apps/edge/src/a.ts', "import { eventually } from '@tunnel/testkit';", 'testkit is for tests only'],
  ['packages/newcomer/src/a.ts', '', 'give the new package its rule first'],
  ['packages/core/src/a.ts', 'export const at = (): Date => new Date();', 'core may not use the clock'],
  ['packages/core/src/a.ts', "const at = Date['now']();", 'core may not use the clock'],
  ['packages/core/src/a.ts', 'export const a = globalThis.crypto;', 'core may not use chance'],
  ['packages/core/src/a.ts', 'export type Later = Promise<void>;', 'core may not use async code'],
  ['packages/core/src/a.ts', 'export class A { async go() {} }', 'core may not use async code'],
  ['packages/core/src/a.ts', 'const text = `at ${Date.now()}`;', 'core may not use the clock'],
  ['packages/protocol/src/a.ts', 'const later = globalThis.setTimeout;', 'may not use `globalThis`'],
  ['packages/protocol/src/a.ts', 'export const a = { process };', 'may not use `process`'],
  ['packages/protocol/src/a.ts', 'export const a = (bytes: Buffer) => bytes;', 'may not use `Buffer`'],
  ['packages/mux/src/a.ts', "export type X = import('@tunnel/runtime').X;", 'mux may not import runtime'],
  ['packages/mux/src/a.ts', 'const x = await import(`@tunnel/runtime`);', 'mux may not import runtime'],
  ['packages/mux/src/a.ts', "const x = require('@tunnel/runtime');", 'mux may not import runtime'],
  [
    'apps/dashboard/src/a.tsx',
    "import { X } from '@tunnel/core'; export const A = () => <p />;",
    'may not import core',
  ],
  ['apps/edge/src/a.ts', "import { x } from './b.fixture.ts';", 'this file is for tests only'],
  ['apps/edge/src/a.ts', "import { x } from './b.conformance.ts';", 'this file is for tests only'],
  ['apps/edge/src/a.ts', "import { it } from 'vitest';", 'vitest is for tests only'],
  ['apps/edge/src/a.ts', 'const = 1;', 'cannot be read'],
])('%s: %s is refused', (path, text, why) => {
  const { code, stdout } = check(path, `// a line before\n${text}\n`);
  expect(code).toBe(1);
  expect(stdout).toContain(why);
  if (text !== '') expect(stdout).toMatch(new RegExp(`^${path}:${why === 'cannot be read' ? '1' : '[2-4]'}: `, 'm'));
});

it.each([
  ['packages/core/src/a.ts', "import { Fault } from '@tunnel/errors';"],
  ['packages/core/src/a.ts', "// setTimeout and process.env are for drivers\nexport const text = 'process.exit()';"],
  ['packages/core/src/a.ts', 'export const a = { process: 1 };'],
  ['packages/core/src/a.ts', 'const a = new Date(0); const b = Date.UTC(2000, 1); const c = a.process;'],
  ['packages/core/src/a.ts', "// import { x } from '@tunnel/mux';\nexport const text = `import x from '@tunnel/mux'`;"],
  [
    'packages/core/src/a.fixture.ts',
    "import { eventually } from '@tunnel/testkit'; import { b } from './b.fixture.ts';",
  ],
  ['packages/core/src/a.test.ts', "import { eventually } from '@tunnel/testkit'; import fs from 'node:fs';"],
  ['packages/runtime/src/a.ts', "import { connect } from 'node:net'; setTimeout(() => {}, 1);"],
  ['apps/edge/src/deep/a.ts', "import { x } from '../b.ts'; import { MuxSession } from '@tunnel/mux';"],
])('%s: %s is allowed', (path, text) => {
  const { code, stdout } = check(path, text);
  expect(stdout).toBe('import rules hold\n');
  expect(code).toBe(0);
});

it('folders of the edge point down: edge.ts → admin, alerts → control → ingress → routing → upstream → backend', () => {
  const { code, stdout } = edgeTree({
    'index.ts': ['edge.ts'],
    'edge.ts': ['admin/rest.ts', 'alerts/alerts.ts', 'capture/store.ts', 'control/session.ts'],
    'admin/rest.ts': ['control/session.ts', 'capture/store.ts'],
    'alerts/alerts.ts': ['routing/registry.ts'],
    'control/session.ts': ['ingress/tcp/listener.ts', 'ingress/http/http1/visitor.ts'],
    'ingress/tcp/listener.ts': ['routing/registry.ts', 'ingress/tcp/relay.ts'],
    'ingress/http/http1/visitor.ts': ['ingress/tls/certificate.ts', 'ingress/http/shared/head.ts'],
    'routing/registry.ts': ['upstream/upstream.ts'],
    'upstream/upstream.ts': ['backend/backend.ts'],
    'capture/store.ts': ['upstream/upstream.ts'],
  });
  expect(stdout).toBe('import rules hold\n');
  expect(code).toBe(0);
});

it.each([
  ['ingress/http/visitor.ts', 'admin/rest.ts', 'ingress/http may not import admin'],
  ['routing/registry.ts', 'alerts/alerts.ts', 'routing may not import alerts'],
  ['control/session.ts', 'admin/rest.ts', 'control may not import admin'],
  ['upstream/upstream.ts', 'routing/registry.ts', 'upstream may not import routing'],
  ['ingress/tcp/listener.ts', 'ingress/http/http1/visitor.ts', 'ingress/tcp may not import ingress/http'],
  ['ingress/http/http1/visitor.ts', 'ingress/tcp/listener.ts', 'ingress/http may not import ingress/tcp'],
  ['ingress/http/visitor.ts', 'capture/store.ts', 'ingress/http may not import capture'],
  ['upstream/upstream.ts', 'capture/store.ts', 'upstream may not import capture'],
  ['capture/store.ts', 'ingress/http/visitor.ts', 'capture may not import ingress/http'],
  ['admin/rest.ts', 'alerts/alerts.ts', 'admin may not import alerts'],
  ['admin/rest.ts', 'edge.ts', 'admin may not import what brings the folders together'],
  ['newcomer/a.ts', 'routing/registry.ts', 'newcomer has no row'],
  ['admin/rest.ts', 'newcomer/a.ts', 'newcomer has no row'],
])('apps/edge/src: %s may not import %s', (from, to, why) => {
  const { code, stdout } = edgeTree({ [from]: [to] });
  expect(stdout).toContain(`apps/edge/src/${from}:1: '${to}': ${why}`);
  expect(code).toBe(1);
});

it('tests and fixtures of a folder may import any other', () => {
  const { stdout } = edgeTree({
    'routing/registry.test.ts': ['admin/rest.ts'],
    'routing/registry.fixture.ts': ['admin/rest.ts'],
  });
  expect(stdout).toBe('import rules hold\n');
});

it('folders that import each other are a circle, at every depth; each of its arrows is named', () => {
  const { code, stdout } = checkTree({
    'packages/client/src/a/one.ts': "import '../b/two.ts';",
    'packages/client/src/b/two.ts': "import '../c/deep/three.ts';",
    'packages/client/src/c/deep/three.ts': "import '../four.ts'; import '../../a/other.ts';",
    'packages/client/src/c/four.ts': "import './deep/five.ts';",
    'packages/client/src/c/deep/five.ts': '',
    'packages/client/src/a/other.ts': '',
  });
  expect(code).toBe(1);
  expect(stdout).toContain(
    'packages/client/src/: a circle: a → b → c → a\n    a/one.ts → b/two.ts\n    b/two.ts → c/deep/three.ts',
  );
  expect(stdout).toContain('packages/client/src/c: a circle: deep → four.ts → deep\n');
  expect(stdout.match(/a circle/g)).toHaveLength(2);
});

it('a file that only tests use carries their suffix', () => {
  const files = {
    'packages/client/src/index.ts': "export { a } from './a.ts';",
    'packages/client/src/a.ts': 'export const a = 1;',
    'packages/client/src/a.test.ts': "import './helper.ts'; import './b.fixture.ts';",
    'packages/client/src/b.fixture.ts': '',
  };
  expect(checkTree(files).stdout).toBe('import rules hold\n');
  const { stdout } = checkTree({ 'packages/client/src/helper.ts': '' });
  expect(stdout).toContain('packages/client/src/helper.ts:1: only tests use this; it should be a .fixture.ts\n');
});

it('the script says the same, and ends with 1 or 0', async () => {
  makeTree({ 'packages/core/src/a.ts': 'export const at = Date.now();' });
  const { stdout, code } = checkTree({});
  expect(await node([SCRIPT, dir.path])).toEqual({ code, stdout, stderr: '' });
  expect(code).toBe(1);
  makeTree({
    'packages/core/src/a.ts': 'export const at = 1;',
    'packages/core/src/index.ts': "export * from './a.ts';",
  });
  expect(await node([SCRIPT, dir.path])).toEqual({ code: 0, stdout: 'import rules hold\n', stderr: '' });
});
