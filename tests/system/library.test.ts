// Test that runs the program of docs/library.md as written, except for its ports.
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort, spawnProgram, temporaryDirectory } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp, endpointOf } from './http-tunnels.fixture.ts';
import { it } from './in-process.fixture.ts';
import { withoutOurEnvironment } from './stack.fixture.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const programOfThePage = async (): Promise<string> => {
  const page = await readFile(join(ROOT, 'docs/library.md'), 'utf8');
  const program = /^```js\n([\s\S]*?)^```$/m.exec(page)?.[1];
  if (program === undefined) throw new Error('docs/library.md has no program');
  return program;
};

it('the program in docs/library.md puts a page online, prints plain events, and exits with 0 on Ctrl-C', async ({
  harness,
}) => {
  const stack = await harness.stack();
  const folder = harness.use(await temporaryDirectory()).path;
  // Creates the same link as `npm install hatchway-client@file:<path>`.
  await mkdir(join(folder, 'node_modules'));
  await symlink(join(ROOT, 'packages/client'), join(folder, 'node_modules/hatchway-client'));
  const written = await programOfThePage();
  const port = await freePort();
  const program = written.replaceAll('3000', String(port)).replace('127.0.0.1:4040', stack.control);
  expect(program.split(String(port))).toHaveLength(written.split('3000').length);
  await writeFile(join(folder, 'share.mjs'), program);
  const running = harness.use(
    await spawnProgram({
      command: process.execPath,
      args: ['share.mjs'],
      cwd: folder,
      env: { ...withoutOurEnvironment(), TUNNEL_API_KEY: (await readFile(stack.tokenFile, 'utf8')).trim() },
    }),
  );
  const [publicUrl = ''] = await running.waitForLine(/^http:\/\/\S+$/);
  expect(await askHttp(endpointOf(publicUrl))).toMatchObject({ status: 200, text: 'Hello from my computer\n' });
  await running.waitForLine(/publicUrl: 'http:/);
  expect(running.stderr.join('\n')).not.toMatch(/Traffic|Backoff|\[Function|Promise/);
  running.signal('SIGINT');
  expect(await running.waitForExit()).toEqual({ code: 0, signal: null });
});
