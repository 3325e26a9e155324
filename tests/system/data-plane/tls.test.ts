// Tests of TLS on the control port: which servers a client trusts, and the errors if only one side uses TLS.
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deterministicBytes, eventually, hashOf, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import { type Stack, TLS_CERT } from '../stack.fixture.ts';
import { sendAndReadAll } from '../visitor.fixture.ts';

const BYTES = deterministicBytes(3_000_000, 8);

const shared = new Harness();
let secure: Stack;
let plain: Stack;
beforeAll(async () => {
  [secure, plain] = await Promise.all([shared.stack({ tls: true }), shared.stack()]);
});
afterAll(() => shared.close());

const expectServed = async (port: number): Promise<void> =>
  expect(hashOf(await sendAndReadAll(port, BYTES))).toBe(hashOf(BYTES));

describe.concurrent('a server with a certificate', () => {
  it('is trusted by a client with --ca-file', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(secure, echo.port, { flags: ['--tls', '--ca-file', TLS_CERT] });
    await expectServed((await program.ready()).assigned_port);
  });

  it('is trusted by a client with `tls` and `ca_file` in config.yml, relative to the file', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    mkdirSync(join(home, '.tunnel'));
    copyFileSync(TLS_CERT, join(home, '.tunnel', 'ca.pem'));
    const lines = [
      `server: ${secure.control}`,
      'tls: true',
      'ca_file: ca.pem',
      `auth_token_file: ${secure.tokenFile}`,
      `tunnels: { a: { proto: tcp, local_port: ${echo.port} } }`,
    ];
    writeFileSync(join(home, '.tunnel', 'config.yml'), `${lines.join('\n')}\n`);
    const program = await harness.run(['start', '--json'], { home });
    await expectServed((await program.ready()).assigned_port);
  });

  it('is accepted without verification with --insecure', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(secure, echo.port, { flags: ['--tls', '--insecure'] });
    await expectServed((await program.ready()).assigned_port);
  });

  it('is refused at once by a client that does not know its authority, with exit code 2', async ({ harness }) => {
    const program = await harness.tcp(secure, 9, { flags: ['--tls'] });
    expect(await program.exitCode()).toBe(2);
    expect(program.events('error')).toMatchObject([{ code: 'CLIENT_CERTIFICATE', fatal: true }]);
    expect(program.stderr).toEqual([
      expect.stringMatching(`^tunnel: the certificate of ${secure.control} is not trusted: .*self-signed`),
      expect.stringContaining('ca_file'),
    ]);
    expect(program.stderr[1]).toContain('--insecure');
  });

  it('ends a client without TLS with 2, and the error names the setting to change', async ({ harness }) => {
    const program = await harness.tcp(secure, 9);
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr).toEqual([
      `tunnel: ${secure.control} requires TLS on the control port`,
      expect.stringMatching(/tls: true.*--tls/),
    ]);
  });
});

it('a client makes one full TLS handshake, and its carriers resume the session', async ({ harness }) => {
  const stack = await harness.stack({ tls: true });
  const echo = harness.use(await startEchoServer());
  const program = await harness.tcp(stack, echo.port, { flags: ['--tls', '--ca-file', TLS_CERT] });
  await expectServed((await program.ready()).assigned_port);
  await eventually(async () => {
    const carriers = await stack.metric('tunnel_active_carriers');
    expect(carriers).toBeGreaterThan(0);
    expect(await stack.metric('tunnel_tls_handshakes_total\\{share="control",kind="resumed"\\}')).toBe(carriers);
  });
  expect(await stack.metric('tunnel_tls_handshakes_total\\{share="control",kind="full"\\}')).toBe(1);
});

describe.concurrent('a server without a certificate', () => {
  it('ends a client with TLS with 2, and the error names the setting to change', async ({ harness }) => {
    const program = await harness.tcp(plain, 9, { flags: ['--tls', '--insecure'] });
    expect(await program.exitCode()).toBe(2);
    expect(program.stderr).toEqual([
      `tunnel: ${plain.control} does not use TLS on the control port`,
      expect.stringMatching(/tls: false.*--no-tls/),
    ]);
  });

  it('serves a client with --no-tls', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const program = await harness.tcp(plain, echo.port, { flags: ['--no-tls'] });
    await expectServed((await program.ready()).assigned_port);
  });
});
