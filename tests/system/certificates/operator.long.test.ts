// Tests of certificates of a stack, and of a standalone platform with TLS on its own port, as seen by an operator and by a person with an
// account.
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { eventually, freePort } from '@tunnel/testkit';
import { expect } from 'vitest';
import { type Ran, runTunnel } from '../computer.fixture.ts';
import type { Harness } from '../harness.fixture.ts';
import { it } from '../in-process.fixture.ts';
import { AcmeStack, DOMAIN, SOON } from './acme-stack.fixture.ts';

it('certificates of a running stack are listed and renewed; a lost key file is logged and does not prevent the start', async ({
  harness,
}) => {
  const stage = await AcmeStack.start(harness, { command: 'stack' });
  const first = await eventually(() => stage.serialOf(DOMAIN), SOON);
  expect(await stage.list()).toMatchObject([{ names: [DOMAIN], source: 'acme', state: 'valid', last_error: null }]);
  const renewed = await stage.certificates('renew', DOMAIN, '--json');
  expect([renewed.code, JSON.parse(renewed.out)]).toEqual([0, { name: DOMAIN, begun: true }]);
  const second = await eventually(async () => {
    const serial = await stage.serialOf(DOMAIN);
    expect(serial).not.toBe(first);
    return serial;
  }, SOON);
  const unknown = await stage.certificates('renew', `www.${DOMAIN}`);
  expect([unknown.code === 0, unknown.err]).toEqual([
    false,
    expect.stringContaining(`there is no certificate for www.${DOMAIN}; similar names: ${DOMAIN}`),
  ]);

  await stage.stack.stop();
  const file = join(stage.stack.dataDir, 'certificate-key');
  renameSync(file, `${file}.lost`);
  writeFileSync(file, `${'A'.repeat(43)}\n`, { mode: 0o600 });
  await stage.stack.start();
  await stage.stack.program.waitForLine(/encrypted with another key/, SOON);
  expect((await stage.list())[0]).toMatchObject({ names: [DOMAIN] });
  await stage.stack.stop();
  renameSync(`${file}.lost`, file);
  await stage.stack.start();
  expect(await eventually(() => stage.serialOf(DOMAIN), SOON)).toBe(second);
});

/** Starts a proxy that connects every host name to localhost, as DNS records of the operator would. */
const startProxy = async (harness: Harness): Promise<string> => {
  const proxy = createServer();
  const open = new Set<Duplex>();
  proxy.on('connect', (request, socket) => {
    const upstream = connect(Number(request.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket]) {
      open.add(end);
      end.on('error', () => end.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      for (const end of open) end.destroy();
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
};

const CONSOLE = 'console.example.net';
const PASSWORD = 'correct horse battery';

for (const challenge of ['tls-alpn-01', 'http-01']) {
  it(`a standalone platform serves only TLS on its port, with a certificate validated there by ${challenge}`, async ({
    harness,
  }) => {
    const port = await freePort();
    const stage = await AcmeStack.start(harness, {
      command: 'platform',
      env: { TUNNEL_PLATFORM__PORT: `${port}` },
      platform: `tls = true\npublic_url = "https://${CONSOLE}:${port}"`,
      authority: { challenges: [challenge] },
    });
    const first = await eventually(() => stage.serialOf(CONSOLE, port), SOON);
    expect(await stage.answer(CONSOLE, { port, path: '/health' })).toMatchObject({ status: 200 });
    const clear = await fetch(`http://127.0.0.1:${port}/health`);
    expect([clear.status, await clear.json()]).toEqual([400, expect.objectContaining({ code: 'API_HTTPS_ONLY' })]);
    const shown = (await stage.list()).filter(({ names }) => names.includes(CONSOLE));
    expect(shown).toMatchObject([{ state: 'valid', last_error: null }]);

    const home = await harness.folder();
    const rootFile = join(home, 'root.pem');
    writeFileSync(rootFile, stage.authority.root);
    const env = { HTTPS_PROXY: await startProxy(harness) };
    const tunnel = (args: readonly string[], input = ''): Promise<Ran> => runTunnel(home, args, input, env);
    const url = `https://${CONSOLE}:${port}`;
    const at = ['--platform', url, '--email', 'ann@example.com', '--password-stdin'];
    expect((await tunnel(['login', ...at], PASSWORD)).err).toMatch(/certificate/i);
    const wrong = await tunnel(['login', ...at, '--ca-file', rootFile], PASSWORD);
    expect([wrong.code === 0, wrong.err]).toEqual([false, expect.stringContaining('password')]);

    expect((await stage.certificates('renew', CONSOLE)).code).toBe(0);
    await eventually(async () => expect(await stage.serialOf(CONSOLE, port)).not.toBe(first), SOON);
  });
}
