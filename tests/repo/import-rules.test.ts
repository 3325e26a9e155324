// The import rules, tested on small file trees that keep or violate a rule.
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
/** The check as a function, so that no process is needed for each tree. */
const { checkImports } = (await import(join(ROOT, 'scripts/lib/check-imports.mjs'))) as {
  checkImports: (root: string) => { readonly text: string; readonly code: number };
};
const { unusedRules } = (await import(join(ROOT, 'scripts/lib/folder-rules.mjs'))) as {
  unusedRules: (rows: object, files: readonly string[], arrows: readonly object[]) => string[];
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

/** Checks files of a workspace's src folder, given with the files that each imports. */
const tree = (workspace: string, imports: Readonly<Record<string, readonly string[]>>): Said => {
  const paths = new Set([...Object.keys(imports), ...Object.values(imports).flat()]);
  const lines = (path: string): string[] =>
    (imports[path] ?? []).map((to) => `import '${relative(dirname(path), to).replace(/^(?!\.)/, './')}';\n`);
  return checkTree(Object.fromEntries([...paths].map((path) => [`${workspace}/src/${path}`, lines(path).join('')])));
};

it.each([
  ['packages/rules/src/a.ts', "import { createCarrier } from '@tunnel/mux';", 'rules may not import mux'],
  ['packages/rules/src/a.ts', "import type { Limit } from '@tunnel/protocol';", 'rules may not import protocol'],
  ['packages/rules/src/a.ts', "export { x } from '@tunnel/runtime';", 'rules may not import runtime'],
  ['packages/rules/src/a.ts', 'const at = Date.now();', 'rules may not use the clock'],
  ['packages/rules/src/a.ts', 'const dice = Math.random();', 'rules may not use chance'],
  ['packages/rules/src/a.ts', 'export const a = async () => {};', 'rules may not use async code'],
  ['packages/protocol/src/a.ts', "import { connect } from 'node:net';", 'may not import Node.js modules'],
  ['packages/protocol/src/a.ts', "import { connect } from 'net';", 'may not import Node.js modules'],
  ['packages/protocol/src/a.ts', 'setTimeout(() => {}, 1);', 'may not use `setTimeout`'],
  ['packages/contract/src/a.ts', 'export const home = process.env.HOME;', 'may not use `process`'],
  ['packages/errors/src/a.ts', "import { Secret } from '@tunnel/runtime';", 'errors may not import runtime'],
  ['packages/client/src/a.ts', "import {\n  x,\n} from '@tunnel/contract';", 'client may not import contract'],
  ['packages/mux/src/a.ts', "const { x } = await import('@tunnel/runtime');", 'mux may not import runtime'],
  ['packages/mux/src/deep/a.ts', "import { x } from '../../../rules/src/a.ts';", 'leaves its package'],
  ['apps/cli/src/a.ts', "import { MuxSession } from '@tunnel/mux';", 'cli may not import mux'],
  ['apps/cli/src/a.ts', "import { x } from '@tunnel/client/src/session.ts';", 'reaches inside'],
  ['apps/edge/src/a.ts', "import { connect } from '@tunnel/client';", 'edge may not import client'],
  ['apps/edge/src/a.ts', "import pg from 'pg';", 'edge may not import pg'],
  ['apps/edge/src/a.ts', "import { eventually } from '@tunnel/testkit';", 'testkit is for tests only'],
  ['packages/newcomer/src/a.ts', '', 'give the new package its rule first'],
  ['packages/rules/src/a.ts', 'export const at = (): Date => new Date();', 'rules may not use the clock'],
  ['packages/rules/src/a.ts', "const at = Date['now']();", 'rules may not use the clock'],
  ['packages/rules/src/a.ts', 'export const a = globalThis.crypto;', 'rules may not use chance'],
  ['packages/rules/src/a.ts', 'export type Later = Promise<void>;', 'rules may not use async code'],
  ['packages/rules/src/a.ts', 'export class A { async go() {} }', 'rules may not use async code'],
  ['packages/rules/src/a.ts', 'const text = `at ${Date.now()}`;', 'rules may not use the clock'],
  ['packages/protocol/src/a.ts', 'const later = globalThis.setTimeout;', 'may not use `globalThis`'],
  ['packages/protocol/src/a.ts', 'export const a = { process };', 'may not use `process`'],
  ['packages/protocol/src/a.ts', 'export const a = (bytes: Buffer) => bytes;', 'may not use `Buffer`'],
  ['packages/mux/src/a.ts', "export type X = import('@tunnel/runtime').X;", 'mux may not import runtime'],
  ['packages/mux/src/a.ts', 'const x = await import(`@tunnel/runtime`);', 'mux may not import runtime'],
  ['packages/mux/src/a.ts', "const x = require('@tunnel/runtime');", 'mux may not import runtime'],
  [
    'apps/dashboard/src/a.tsx',
    "import { X } from '@tunnel/policy'; export const A = () => <p />;",
    'may not import policy',
  ],
  ['apps/edge/src/a.ts', "import { x } from './b.fixture.ts';", 'this file is for tests only'],
  ['apps/edge/src/a.ts', "import { x } from './b.conformance.ts';", 'this file is for tests only'],
  ['apps/edge/src/a.ts', "import { it } from 'vitest';", 'vitest is for tests only'],
  ['apps/edge/src/a.ts', 'const = 1;', 'cannot be read'],
  ['apps/edge/src/a.rules.ts', 'const at = Date.now();', 'a file of rules may not use the clock'],
  ['apps/edge/src/a.rules.ts', 'setTimeout(() => {}, 1);', 'a file of rules may not use `setTimeout`'],
  ['apps/edge/src/a.rules.ts', "import { createHash } from 'node:crypto';", 'may not import Node.js modules'],
  ['apps/edge/src/a.rules.ts', "import { b } from './b.ts';", 'a file of rules may import only rules'],
  ['apps/edge/src/a.rules.ts', "import type { B } from './b.ts';", 'a file of rules may import only rules'],
  ['apps/edge/src/a.rules.ts', "import { Secret } from '@tunnel/runtime';", 'a file of rules may import only rules'],
  ['apps/edge/src/a.rules.ts', 'let last = 0;', 'may not have a variable of the module: `last`'],
  ['packages/http1/src/a.ts', "import { gunzip } from 'node:zlib';", 'may not import Node.js modules'],
  ['packages/rules/src/a.ts', 'let last: string | null = null;', 'may not have a variable of the module: `last`'],
  ['packages/protocol/src/a.ts', 'export let last = 0;', 'may not have a variable of the module: `last`'],
  ['packages/errors/src/a.ts', 'var last = 0;', 'may not have a variable of the module: `last`'],
  ['packages/rules/src/a.ts', 'export const groups = new Uint16Array(8);', 'may not export what others can change'],
  ['packages/rules/src/a.ts', 'export const a: Uint16Array = new Uint16Array(8).fill(1);', 'others can change: `a`'],
  ['packages/rules/src/a.ts', 'export const a = new Map<string, string>();', 'others can change: `a`'],
  ['packages/rules/src/a.ts', 'const a = new Set(); export { a };', 'others can change: `a`'],
  ['packages/rules/src/a.ts', 'const a = [1]; export const b = a;', 'others can change: `b`'],
  ['packages/contract/src/a.ts', 'export const a: string[] = [];', 'others can change: `a`'],
  ['packages/contract/src/a.ts', 'export const a = [1] satisfies number[];', 'others can change: `a`'],
  ['packages/contract/src/a.ts', 'export const a = Array.from([1]) as number[];', 'others can change: `a`'],
])('%s: %s is rejected', (path, text, why) => {
  const { code, stdout } = check(path, `// a line before\n${text}\n`);
  expect(code).toBe(1);
  expect(stdout).toContain(why);
  if (text !== '') expect(stdout).toMatch(new RegExp(`^${path}:${why === 'cannot be read' ? '1' : '[2-4]'}: `, 'm'));
});

it.each([
  ['packages/rules/src/a.ts', "import { Fault } from '@tunnel/errors';"],
  ['packages/rules/src/a.ts', "// setTimeout and process.env are for drivers\nexport const text = 'process.exit()';"],
  ['packages/rules/src/a.ts', 'export const a = { process: 1 };'],
  ['packages/rules/src/a.ts', 'const a = new Date(0); const b = Date.UTC(2000, 1); const c = a.process;'],
  [
    'packages/rules/src/a.ts',
    "// import { x } from '@tunnel/mux';\nexport const text = `import x from '@tunnel/mux'`;",
  ],
  [
    'packages/rules/src/a.fixture.ts',
    "import { eventually } from '@tunnel/testkit'; import { b } from './b.fixture.ts';",
  ],
  ['packages/rules/src/a.test.ts', "import { eventually } from '@tunnel/testkit'; import fs from 'node:fs';"],
  ['packages/runtime/src/a.ts', "import { connect } from 'node:net'; setTimeout(() => {}, 1);"],
  ['packages/rules/src/a.ts', 'const known = new Map(); export const a = () => { let b = 0; b += 1; return b; };'],
  ['packages/rules/src/a.ts', 'export const a: readonly number[] = [1]; export const b = [1] as const;'],
  [
    'packages/rules/src/a.ts',
    'export const a: ReadonlyMap<string, 1> = new Map(); export const b = Object.freeze([]);',
  ],
  ['packages/rules/src/a.ts', 'const a = new Uint8Array(2); export const b: ArrayLike<number> = a;'],
  ['packages/runtime/src/a.ts', 'export const c = new Map();'],
  ['apps/edge/src/deep/a.ts', "import { x } from '../b.ts'; import { MuxSession } from '@tunnel/mux';"],
  ['apps/edge/src/a.rules.ts', "import { b } from './b.rules.ts'; import { LIMITS } from './limits.ts';"],
  ['apps/edge/src/a.rules.ts', "import { Fault } from '@tunnel/errors'; import { run } from '@tunnel/policy';"],
  ['packages/http1/src/capture/a.ts', "import { gunzip } from 'node:zlib'; export const a = async () => {};"],
])('%s: %s is allowed', (path, text) => {
  const { code, stdout } = check(path, text);
  expect(stdout).toBe('import rules hold\n');
  expect(code).toBe(0);
});

it('edge folders may import downward: edge.ts → admin, alerts → control → ingress → routing → upstream → backend', () => {
  const { code, stdout } = tree('apps/edge', {
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
  ['admin/rest.ts', 'edge.ts', 'admin may not import edge.ts'],
  ['newcomer/a.ts', 'routing/registry.ts', 'newcomer has no row'],
  ['admin/rest.ts', 'newcomer/a.ts', 'newcomer has no row'],
])('apps/edge/src: %s may not import %s', (from, to, why) => {
  const { code, stdout } = tree('apps/edge', { [from]: [to] });
  expect(stdout).toContain(`apps/edge/src/${from}:1: '${to}': ${why}`);
  expect(code).toBe(1);
});

it.each([
  ['apps/platform', 'db/users.ts', 'services/auth/users.ts', 'db may not import services/auth'],
  ['apps/platform', 'services/auth/users.ts', 'http/shared/paths.ts', 'services/auth may not import http/shared'],
  ['apps/platform', 'services/auth/users.ts', 'services/billing/a.ts', 'services/auth may not import services/billing'],
  ['apps/platform', 'services/plans/a.ts', 'services/billing/b.ts', 'services/plans may not import services/billing'],
  ['apps/platform', 'services/shared/a.ts', 'services/plans/b.ts', 'services/shared may not import services/plans'],
  ['apps/platform', 'services/keys.ts', 'db/a.ts', 'services has no row'],
  ['apps/platform', 'http/auth/a.ts', 'http/routes/b.ts', 'http/auth may not import http/routes'],
  ['apps/platform', 'jobs/jobs.ts', 'timeout.ts', 'jobs may not import timeout.ts'],
  ['apps/platform', 'timeout.ts', 'db/a.ts', 'timeout.ts may not import db'],
  [
    'apps/dashboard',
    'features/billing/a.ts',
    'features/tunnels/b.ts',
    'features/billing may not import features/tunnels',
  ],
  ['apps/dashboard', 'api/a.ts', 'ui/b.ts', 'api may not import ui'],
  ['apps/dashboard', 'features/newcomer/a.ts', 'ui/b.ts', 'features/newcomer has no row'],
  ['apps/cli', 'agent/a.ts', 'commands/b.ts', 'agent may not import commands'],
  ['apps/cli', 'output/a.ts', 'config/flags.ts', 'output may not import config'],
  ['apps/cli', 'config/settings.ts', 'api/a.ts', 'config may not import api'],
  ['apps/cli', 'agent/a.ts', 'run/hooks/b.ts', 'agent may not import run/hooks'],
  ['apps/cli', 'run/hooks/a.ts', 'run/b.ts', 'run/hooks may not import run'],
  ['apps/cli', 'io/a.ts', 'program.ts', 'io may not import program.ts'],
  ['apps/cli', 'program.ts', 'config/a.ts', 'program.ts may not import config'],
  ['apps/cli', 'complete-main.ts', 'commands/a.ts', 'complete-main.ts may not import commands'],
  ['apps/server', 'stack/a.ts', 'parts/b.ts', 'stack may not import parts'],
  ['apps/server', 'process/a.ts', 'run/b.ts', 'process may not import run'],
  ['packages/client', 'local/a.ts', 'peers/b.ts', 'local may not import peers'],
  ['packages/client', 'tunnels/kinds/tcp.ts', 'tunnels/tunnel.ts', 'tunnels/kinds may not import tunnels'],
  ['packages/client', 'connection/session.ts', 'tunnels/a.ts', 'connection may not import tunnels'],
  ['packages/rules', 'net/a.ts', 'names/b.ts', 'net may not import names'],
  ['packages/rules', 'rate/a.ts', 'admission/b.ts', 'rate may not import admission'],
  ['packages/rules', 'newcomer/a.ts', 'net/b.ts', 'newcomer has no row'],
  ['packages/policy', 'match/a.ts', 'run/b.ts', 'match may not import run'],
  ['packages/policy', 'schema/a.ts', 'run/b.ts', 'schema may not import run'],
  ['packages/certificates', 'domains/a.ts', 'acme/b.ts', 'domains may not import acme'],
  ['packages/mcp', 'tools/a.ts', 'bridge/b.ts', 'tools may not import bridge'],
  ['packages/mux', 'native/a.ts', 'socket/b.ts', 'native may not import socket'],
  ['packages/mux', 'stream/a.ts', 'session/b.ts', 'stream may not import session'],
])('%s/src: %s may not import %s', (workspace, from, to, why) => {
  const { code, stdout } = tree(workspace, { [from]: [to] });
  expect(stdout).toContain(`${workspace}/src/${from}:1: '`);
  expect(stdout).toContain(why);
  expect(code).toBe(1);
});

it.each([
  ['apps/platform', 'services/tunnels/a.ts', 'services/plans/b.ts'],
  ['apps/platform', 'http/routes/a.ts', 'services/names/b.ts'],
  ['apps/platform', 'db/a.ts', 'db/migrations/b.ts'],
  ['apps/dashboard', 'features/overview/a.ts', 'features/tunnels/b.ts'],
  ['apps/cli', 'index.ts', 'api/a.ts'],
  ['apps/cli', 'commands/a.ts', 'config/flags.ts'],
  ['apps/cli', 'completion/a.ts', 'limits.ts'],
  ['packages/client', 'tunnels/tunnel.ts', 'tunnels/kinds/a.ts'],
  ['packages/client', 'client.ts', 'connection/session.ts'],
])('%s/src: %s may import %s', (workspace, from, to) => {
  expect(tree(workspace, { [from]: [to] }).stdout).toBe('import rules hold\n');
});

it('a rule for a missing folder and an unused rule entry are rejected', () => {
  const rows = { 'run.ts': ['a'], a: ['b', 'io.ts', 'c/*.ts'], b: [], c: [], gone: [] };
  const files = ['run.ts', 'io.ts', 'a/one.ts', 'b/two.ts', 'c/three.ts', 'c/deep/four.ts'];
  const arrow = (from: string, to: string): object => ({ from, to, line: 1 });
  const arrows = [arrow('run.ts', 'a/one.ts'), arrow('a/one.ts', 'b/two.ts'), arrow('a/one.ts', 'c/deep/four.ts')];
  expect(unusedRules(rows, files, arrows)).toEqual([
    "'a' may import 'io.ts', but no file of it does: delete the entry",
    "'a' may import 'c/*.ts', but no file of it does: delete the entry",
    "the row 'gone' is of no file: delete it",
  ]);
  const needed = [...arrows, arrow('a/one.ts', 'io.ts'), arrow('a/one.ts', 'c/three.ts')];
  expect(unusedRules({ 'run.ts': rows['run.ts'], a: rows.a, b: [], c: [] }, files, needed)).toEqual([]);
});

it('a package can be imported only by its declared entries', () => {
  const offer = { exports: { '.': {}, './net': {} } };
  const said = checkTree({
    'packages/rules/package.json': JSON.stringify(offer),
    'apps/edge/src/a.ts': "import '@tunnel/rules/net';\nimport '@tunnel/rules/names';\nimport '@tunnel/rules';",
  }).stdout;
  expect(said).toContain("apps/edge/src/a.ts:2: '@tunnel/rules/names': reaches inside @tunnel/rules");
  expect(said.match(/^apps/gm)).toHaveLength(1);
});

it('tests and fixtures may import every folder', () => {
  const { stdout } = tree('apps/edge', {
    'routing/registry.test.ts': ['admin/rest.ts'],
    'routing/registry.fixture.ts': ['admin/rest.ts'],
  });
  expect(stdout).toBe('import rules hold\n');
});

it('folders that import each other are rejected as a circle at every depth, with the imports involved', () => {
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

it.each([
  "import type { A } from '../b/two.ts';",
  "import { type A } from '../b/two.ts';",
  "export type { A } from '../b/two.ts';",
  "export type A = import('../b/two.ts').A;",
])('a circle of folders is rejected even if it consists of types: %s', (text) => {
  const { code, stdout } = checkTree({
    'packages/contract/src/a/one.ts': text,
    'packages/contract/src/b/two.ts': "import type { B } from '../a/one.ts';",
  });
  expect(stdout).toContain('packages/contract/src/: a circle: a → b → a\n');
  expect(code).toBe(1);
});

it('types may form a circle between files of a folder, but not through a different folder', () => {
  const files = {
    'packages/contract/src/a/one.ts': "import type { B } from './two.ts';",
    'packages/contract/src/a/two.ts': "import type { A } from './one.ts';",
  };
  expect(checkTree(files).stdout).toBe('import rules hold\n');
  const { stdout } = checkTree({
    ...files,
    'packages/contract/src/a/two.ts': "import type { A } from './one.ts'; import './deep/three.ts';",
    'packages/contract/src/a/deep/three.ts': "import type { A } from '../one.ts';",
  });
  expect(stdout).toContain('packages/contract/src/a: a circle: ');
});

it.each([
  ['let last = 0;', 'last'],
  ['let a = 1, last = 2;', 'last'],
  ['const last = new Map(); export const f = (k, v) => last.set(k, v);', 'last'],
  ['const last = new Set(); export const f = (k) => { last.add(k); };', 'last'],
  ['const last = []; export function f(one) { last.push(one); }', 'last'],
  ['const last = {}; export const f = (key, value) => { last[key] = value; };', 'last'],
  ['const last = { request: null }; export const f = (request) => { last.request = request; };', 'last'],
  [
    'const last = { request: null }; export const f = (request) => { ({ request: last.request } = { request }); };',
    'last',
  ],
  ['const last = { of: {} }; export const f = (key) => delete last.of[key];', 'last'],
  ['const last = { count: 0 }; export class A { go() { last.count += 1; last.count++; } }', 'last'],
  ['const last = {}; export const f = (one) => Object.assign(last, one);', 'last'],
  ['const last = makeTable(); export const f = (one) => { last.one = one; };', 'last'],
  ['const last = Buffer.alloc(64); export const f = (bytes) => bytes.copy(last);', 'last'],
  ['const last = new Uint8Array(64); export const f = (read) => read(last.subarray(0, 8), last);', 'last'],
  ['const last = new Memory(); export const f = () => last.one;', 'last'],
  ['const last = new lru.Cache(3);', 'last'],
  ['const last = newHead(); export const f = (bytes) => scan(bytes, last);', 'last'],
  ['export class A { static last = null; }', 'A.last'],
  ['export class A { static readonly last = new Map(); }', 'A.last'],
])('module state that is not listed with a reason is rejected: %s', (text, name) => {
  const { code, stdout } = check('packages/runtime/src/a.ts', `// a line before\n${text}`);
  expect(stdout).toContain(`packages/runtime/src/a.ts:2: the module keeps \`${name}\`; `);
  expect(code).toBe(1);
});

it.each([
  'const NAMES = new Set(["a"]); export const f = (name) => NAMES.has(name);',
  'const table = new Uint8Array(256); table[3] = 1; export const f = (code) => table[code];',
  'const byCode = new Map(); for (const code of [1]) byCode.set(code, 2); export const f = (code) => byCode.get(code);',
  'const ofSocket = new WeakMap(); export const f = (socket, value) => ofSocket.set(socket, value);',
  'const NOTHING = Buffer.alloc(0); export const f = (write) => write(NOTHING);',
  'const FORM = new RegExp("a"); const TEXT = new TextDecoder(); export const f = (text) => FORM.test(text);',
  'export const f = (one) => { const last = new Map(); let count = 0; last.set(one, count); count += 1; };',
  'export class A { static readonly MAX = 3; last = new Map(); keep(one) { this.last.set(one, 1); } }',
])('module-level values that are not modified later are allowed: %s', (text) => {
  expect(check('packages/runtime/src/a.ts', text).stdout).toBe('import rules hold\n');
});

it('module state is allowed by file and name, even in pure code; tests may have any module state', () => {
  const { stdout } = checkTree({
    'packages/policy/src/compile/policy-answers.ts':
      'const FAULTS = new Map(); export const f = (k) => FAULTS.set(k, 1);',
    'packages/mux/src/native/tls-handle.ts': 'let known; export const f = () => known;',
    'packages/mux/src/native/tls-handle.test.ts': 'let other; const more = new Map(); const f = () => more.clear();',
  });
  expect(stdout).toBe('import rules hold\n');
  const { stdout: refused } = checkTree({ 'packages/mux/src/native/tls-handle.ts': 'let known, knwon;' });
  expect(refused).toContain('tls-handle.ts:1: the module keeps `knwon`');
});

it('a file that only tests import must have the fixture suffix', () => {
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

it('a file of more than 600 lines produces a note, not a failure', () => {
  const { code, stdout } = checkTree({
    'packages/runtime/src/a.ts': '//\n'.repeat(600),
    'packages/runtime/src/b.test.ts': '//\n'.repeat(601),
  });
  expect(stdout).toBe(
    'note: packages/runtime/src/b.test.ts has 601 lines; look for a second subject in it\nimport rules hold\n',
  );
  expect(code).toBe(0);
});

it('the script prints the same text, and exits with 1 for violations or 0', async () => {
  makeTree({ 'packages/rules/src/a.ts': 'export const at = Date.now();' });
  const { stdout, code } = checkTree({});
  expect(await node([SCRIPT, dir.path])).toEqual({ code, stdout, stderr: '' });
  expect(code).toBe(1);
  makeTree({
    'packages/rules/src/a.ts': 'export const at = 1;',
    'packages/rules/src/index.ts': "export * from './a.ts';",
  });
  expect(await node([SCRIPT, dir.path])).toEqual({ code: 0, stdout: 'import rules hold\n', stderr: '' });
});
