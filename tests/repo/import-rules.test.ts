import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Ended, node, ROOT } from './checkout.fixture.ts';

let dir: TemporaryDirectory;
beforeEach(async () => {
  dir = await temporaryDirectory();
});
afterEach(() => dir.close());

const check = (path: string, text: string): Promise<Ended> => {
  const file = join(dir.path, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return node([join(ROOT, 'scripts/check-imports.mjs'), dir.path]);
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
  ['packages/mux/src/a.ts', "const { x } = await import('@tunnel/core');", 'mux may not import core'],
  ['packages/mux/src/deep/a.ts', "import { x } from '../../../core/src/a.ts';", 'leaves its package'],
  ['apps/cli/src/a.ts', "import { MuxSession } from '@tunnel/mux';", 'cli may not import mux'],
  ['apps/cli/src/a.ts', "import { x } from '@tunnel/client/src/session.ts';", 'reaches inside'],
  ['apps/edge/src/a.ts', "import { connect } from '@tunnel/client';", 'edge may not import client'],
  ['apps/edge/src/a.ts', "import pg from 'pg';", 'edge may not import pg'],
  ['apps/edge/src/a.ts', "import { eventually } from '@tunnel/testkit';", 'testkit is for tests only'],
  ['packages/newcomer/src/a.ts', '', 'give the new package its rule first'],
])('%s: %s is refused', async (path, text, why) => {
  const { code, stdout } = await check(path, `// a line before\n${text}\n`);
  expect(code).toBe(1);
  expect(stdout).toContain(why);
  if (text !== '') expect(stdout).toMatch(new RegExp(`^${path}:[2-4]: `, 'm'));
});

it.each([
  ['packages/core/src/a.ts', "import { Fault } from '@tunnel/errors';"],
  ['packages/core/src/a.ts', "// setTimeout and process.env are for drivers\nexport const text = 'process.exit()';"],
  ['packages/core/src/a.ts', 'export const a = { process: 1 };'],
  ['packages/core/src/a.test.ts', "import { eventually } from '@tunnel/testkit'; import fs from 'node:fs';"],
  ['packages/runtime/src/a.ts', "import { connect } from 'node:net'; setTimeout(() => {}, 1);"],
  ['apps/edge/src/deep/a.ts', "import { x } from '../b.ts'; import { MuxSession } from '@tunnel/mux';"],
])('%s: %s is allowed', async (path, text) => {
  const { code, stdout } = await check(path, text);
  expect(stdout).toBe('import rules hold\n');
  expect(code).toBe(0);
});
