// Tests of the keys that sign access tokens: a command rotates the keys beside a running stack while people use it.
import { readFileSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, spawnProgram } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { SERVER_BIN } from '../repo/checkout.fixture.ts';
import { it } from './in-process.fixture.ts';
import { call, Person, startPlatform } from './platform-test.fixture.ts';
import { serverCommand } from './server-command.fixture.ts';
import { type Stack, withoutOurEnvironment } from './stack.fixture.ts';

interface ListedKey {
  readonly kid: string;
  readonly status: string;
  readonly verifies_until: string | null;
}

const list = async (stack: Stack): Promise<ListedKey[]> =>
  JSON.parse((await serverCommand(stack, 'signing-keys', 'list', '--json')).join('')) as ListedKey[];

const publishedBy = async ({ run }: Stack): Promise<string[]> => {
  const { keys } = (await (await fetch(`${run.platform_url}/.well-known/jwks.json`)).json()) as {
    keys: { kid: string }[];
  };
  return keys.map(({ kid }) => kid);
};

describe('signing keys', () => {
  it('can be rotated beside a running stack without a refused request, and a stack without its master key does not start', async ({
    harness,
  }) => {
    const stack = await startPlatform(harness);
    const person = await Person.signUp(stack);
    const account = { email: person.email, password: 'correct horse battery' };
    const [first] = await list(stack);
    expect(first).toMatchObject({ status: 'signs', verifies_until: null });
    const refused: number[] = [];
    let over = false;
    const user = (async () => {
      while (!over) {
        const { status } = await person.call('/auth/me');
        if (status !== 200) refused.push(status);
        const login = await call<{ access_token: string }>(stack, '/auth/login', { method: 'POST', body: account });
        const fresh = await call(stack, '/auth/me', { token: login.body.access_token });
        if (fresh.status !== 200) refused.push(fresh.status);
      }
    })();
    const [rotated = ''] = await serverCommand(stack, 'signing-keys', 'rotate', '--json');
    const { kid } = JSON.parse(rotated) as { kid: string };
    await eventually(async () => expect(await publishedBy(stack)).toEqual([kid, first?.kid]), { timeoutMs: 30_000 });
    over = true;
    await user;
    expect(refused).toEqual([]);
    expect(await list(stack)).toMatchObject([
      { kid, status: 'signs' },
      { kid: first?.kid, status: 'verifies', verifies_until: expect.any(String) },
    ]);

    const file = join(stack.dataDir, 'master-key');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await stack.stop();
    renameSync(file, `${file}.lost`);
    const program = await spawnProgram({
      command: process.execPath,
      args: [SERVER_BIN, 'stack', ...stack.flags],
      env: withoutOurEnvironment(),
    });
    expect((await program.waitForExit({ timeoutMs: 30_000 })).code).toBe(2);
    const lines = program.stderr.filter((line) => line.startsWith('tunnel-server:'));
    expect(lines).toEqual([expect.stringContaining(`the key file ${file} cannot be used: the file does not exist`)]);
    await program.close();
    expect(() => readFileSync(file)).toThrow();
    renameSync(`${file}.lost`, file);
    await stack.start();
    expect((await person.call('/auth/me')).status).toBe(200);
  });
});
