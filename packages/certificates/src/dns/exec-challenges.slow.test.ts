import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive, systemClock } from '@tunnel/runtime';
import {
  eventually,
  FakeClock,
  startDnsServer,
  startTcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { challengesConformance } from './dns-challenges.conformance.ts';
import { ExecChallenges } from './exec-challenges.ts';
import { DnsLookups } from './lookups.ts';

const NAME = '_acme-challenge.tunnels.test';

let directory: TemporaryDirectory;

beforeEach(async () => {
  directory = await temporaryDirectory();
});

afterEach(() => directory.close());

const writeProgram = async (text: string): Promise<string> => {
  const file = join(directory.path, 'hook');
  await writeFile(file, text);
  await chmod(file, 0o755);
  return file;
};

/** A DNS provider with an API, and a hook program that calls the API. */
describe('challenges set by a hook program', () => {
  challengesConformance(async () => {
    const dns = await startDnsServer();
    const values = new Map<string, Set<string>>();
    const serve = (asked: string): void => {
      const [action, name = '', value = ''] = asked.split('/');
      const at = values.get(name) ?? new Set();
      values.set(name, at);
      if (action === 'set') at.add(value);
      else at.delete(value);
      if (at.size === 0) dns.remove(name, 'TXT');
      else dns.set(name, 'TXT', ...at);
    };
    const api = await startTcpServer((socket) => {
      let asked = '';
      socket.on('data', (bytes) => (asked += String(bytes)));
      socket.on('end', () => {
        serve(asked);
        socket.end();
      });
    });
    // The program exits when the API has answered.
    const call = `require('node:net').connect(${api.port}, '127.0.0.1').end(process.argv.slice(2).join('/')).resume();`;
    const program = await writeProgram(`#!${process.execPath}\n${call}\n`);
    dns.set('_acme-challenge.shop.test', 'CNAME', NAME);
    const lookups = new DnsLookups({ resolvers: [dns.address], clock: systemClock });
    return {
      challenges: new ExecChallenges({ program, env: process.env, lookups, clock: systemClock }),
      name: NAME,
      otherName: `other.${NAME}`,
      alias: '_acme-challenge.shop.test',
      close: async () => {
        lookups.close();
        await api.close();
        await dns.close();
      },
    };
  });
});

describe('the hook program', () => {
  const lookups = new DnsLookups({ resolvers: ['127.0.0.1:1'], clock: systemClock });
  const hook = (program: string, env: Record<string, string> = {}, clock = systemClock) =>
    new ExecChallenges({ program, env: { ...process.env, ...env }, lookups, clock });
  const failure = async (run: Promise<void>): Promise<string> => {
    const error: unknown = await run.then(
      () => new Error('it did not fail'),
      (caught: unknown) => caught,
    );
    return (error as Error).message;
  };

  it("gets its arguments unchanged, without a shell, and none of the server's settings", async () => {
    const out = join(directory.path, 'out');
    const program = await writeProgram(`#!/bin/sh\nprintf '%s\\n' "$@" "$TUNNEL_DATABASE__URL" "$PROVIDER" > ${out}\n`);
    const value = `$(touch ${directory.path}/ran); "x" 'y' *`;
    await hook(program, { TUNNEL_DATABASE__URL: 'postgres://secret', PROVIDER: 'kept' }).set(NAME, value);
    expect((await readFile(out, 'utf8')).split('\n')).toEqual(['set', NAME, value, '', 'kept', '']);
    await expect(readFile(join(directory.path, 'ran'))).rejects.toThrow('ENOENT');
  });

  it('that fails is reported with its output, truncated and without secrets', async () => {
    const program = await writeProgram(
      '#!/bin/sh\necho "using $API_TOKEN and Bearer abcdefghijkl"\nfor i in $(seq 200); do printf "%s%s" "$API_TOKEN" "$API_TOKEN" >&2; done\nexit 3\n',
    );
    const message = await failure(hook(program, { API_TOKEN: 's3cret-of-the-provider' }).set(NAME, 'v'));
    expect(message).toContain(
      `failed to set ${NAME}: exit code 3: using [secret] and Bearer [secret] [secret][secret]`,
    );
    expect(message).not.toMatch(/s3c/);
    expect(message.length).toBeLessThan(1200);
  });

  it('that prints endlessly and leaves a child with the same pipes does not block the server', async () => {
    const pid = join(directory.path, 'pid');
    const program = await writeProgram(
      `#!/bin/sh\nsleep 600 &\necho $! > ${pid}\nhead -c 5000000 /dev/zero | tr '\\0' x\nexit 1\n`,
    );
    const message = await failure(hook(program).clear(NAME, 'v'));
    expect(message).toMatch(/^the `\[acme\] dns_exec` program failed to clear .*: exit code 1: x{1000,1024}$/);
    const child = Number(await readFile(pid, 'utf8'));
    await eventually(() => expect(isProcessAlive(child)).toBe(false));
  });

  it('that hangs is killed after 60 s, with all its child processes', async () => {
    const clock = new FakeClock();
    const pid = join(directory.path, 'pid');
    const program = await writeProgram(`#!/bin/sh\necho $$ > ${pid}\nsleep 600\n`);
    const run = failure(hook(program, {}, clock).set(NAME, 'v'));
    await eventually(async () => expect(Number(await readFile(pid, 'utf8'))).toBeGreaterThan(0));
    await clock.advance(59_999);
    const child = Number(await readFile(pid, 'utf8'));
    expect(isProcessAlive(child)).toBe(true);
    await clock.advance(1);
    expect(await run).toContain('timeout after 60 s');
    await eventually(() => expect(isProcessAlive(child)).toBe(false));
    expect(clock.pendingTimers).toBe(0);
  });

  it('that is running when the server stops is killed, with all its child processes', async () => {
    const pid = join(directory.path, 'pid');
    const challenges = hook(await writeProgram(`#!/bin/sh\nsleep 600 &\necho $! > ${pid}\nwait\n`));
    const run = failure(challenges.set(NAME, 'v'));
    await eventually(async () => expect(Number(await readFile(pid, 'utf8'))).toBeGreaterThan(0));
    challenges.end();
    expect(await run).toContain('killed by SIGKILL');
    const child = Number(await readFile(pid, 'utf8'));
    await eventually(() => expect(isProcessAlive(child)).toBe(false));
  });

  it('that is missing or not executable is named in the error', async () => {
    expect(await failure(hook('/nowhere/hook').set(NAME, 'v'))).toContain('program not found: /nowhere/hook');
    const program = await writeProgram('#!/bin/sh\n');
    await chmod(program, 0o644);
    expect(await failure(hook(program).set(NAME, 'v'))).toContain('is not executable');
  });
});
