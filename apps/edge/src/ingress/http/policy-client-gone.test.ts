// The client of a tunnel dies while rules decide about a request. The visitor gets an error, and no state remains.
import { createHmac } from 'node:crypto';
import * as net from 'node:net';
import type { Rule } from '@tunnel/policy';
import { eventually } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { basic, basicAuth, SlowPasswords } from '../../policy/policy.fixture.ts';
import { visitHttp2 } from './https.fixture.ts';
import { type PolicyStand, startPolicyStand, VERSIONS } from './policy-stand.fixture.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SECRET = 'of the sender';
const github: Rule = { verify_webhook: { provider: 'github', secrets: [SECRET], max_bytes: 1024 * 1024 } };

const start = async (rules: readonly Rule[]): Promise<PolicyStand & { readonly passwords: SlowPasswords }> => {
  const passwords = new SlowPasswords();
  const stand = await startPolicyStand(rules, { perform: passwords.perform });
  cleanups.push(() => stand.stop());
  return { ...stand, passwords };
};

it.each(VERSIONS)('%s: a visitor gets a 5xx when the client leaves during the check of a password', async (version) => {
  const stand = await start([basicAuth]);
  const visiting = stand.visit(version, '/', { headers: { authorization: basic('me', 'right') } });
  await eventually(() => expect(stand.passwords.asked).toHaveLength(1));
  stand.http.pair.close();
  stand.passwords.asked[0]?.answer(true);
  const { status, headers } = await visiting;
  expect([Math.floor(status / 100), headers['x-tunnel-error']]).toEqual([5, expect.any(String)]);
  expect([stand.service.asked, stand.http.dials]).toEqual([[], 0]);
  await eventually(() => expect(stand.http.ingress.connections).toBe(0));
});

it.each(VERSIONS)(
  '%s: a visitor gets a 5xx when the client leaves while the body is held, and the body is freed',
  async (version) => {
    const stand = await start([github]);
    const body = 'x'.repeat(100_000);
    const signature = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
    let text = '';
    let rest: () => void;
    if (version === 'HTTP/1.1') {
      const socket = net.connect({ port: stand.http.port, host: '127.0.0.1' });
      cleanups.push(() => socket.destroy());
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
      const head = ['POST / HTTP/1.1', 'Host: web.localhost', `Content-Length: ${body.length}`, 'Connection: close'];
      socket.write([...head, `X-Hub-Signature-256: ${signature}`, '', body.slice(0, 1000)].join('\r\n'));
      rest = () => socket.write(body.slice(1000));
    } else {
      const session = visitHttp2(stand.https);
      cleanups.push(() => session.destroy());
      const stream = session.request({ ':method': 'POST', ':path': '/', 'x-hub-signature-256': signature });
      stream.on('response', (head) => (text += `HTTP/2 ${head[':status']} ${String(head['x-tunnel-error'])}`));
      stream.write(body.slice(0, 1000));
      rest = () => stream.end(body.slice(1000));
    }
    await eventually(() => expect(stand.heldBodies.bytes).toBe(1000));
    stand.http.pair.close();
    rest();
    await eventually(() => expect(text).toMatch(/^HTTP\/\S+ 5\d\d [^]*[A-Z]+_[A-Z_]+/));
    await eventually(() => expect(stand.heldBodies.bytes).toBe(0));
    expect(stand.service.asked).toEqual([]);
  },
);
