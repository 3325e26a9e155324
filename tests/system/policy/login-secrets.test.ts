// Test that plants the credentials of people and programs, and searches for them in requests to the service, in views, logs and files.
import { createHash, createHmac } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { readUntil, sendRaw } from '../http-tunnels.fixture.ts';
import { it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { askUrl, Browser, type LoginTunnel, openLoginTunnel, type Told } from './login.fixture.ts';

const PASSWORD = 'planted password 5d1c';
const TOKEN = 'planted-token-of-a-program-77e0';
const HOOK = 'planted hook secret 90ab';
/** Client secret of the login provider fixture. */
const CLIENT_SECRET = 'a secret that provider and tunnel share';

const RULES = `rules:
  - { name: open, match: { path: "/open/**" }, allow: true }
  - { name: hook, match: { path: /hook }, verify_webhook: { provider: github, secret: "${HOOK}" } }
  - name: people
    match: { not: { path: /hook } }
    auth:
      basic: { users: { me: "${PASSWORD}" } }
      tokens: [{ name: ci, token: "${TOKEN}" }]
      token_header: X-Ci-Key
      login: { domains: [example.com] }
`;

const basic = (password: string): string => `Basic ${Buffer.from(`me:${password}`).toString('base64')}`;

/** Returns the contents of all files below the folder, except the files left out. */
const textsIn = (folder: string, isLeftOut: (name: string) => boolean): string[] =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const stat = statSync(path);
    if (stat.isDirectory()) return textsIn(path, isLeftOut);
    return stat.isFile() && !isLeftOut(name) ? [readFileSync(path, 'latin1')] : [];
  });

/** Returns the REST API's view of a tunnel, including every capture, and the metrics. */
const restOf = async (stack: Stack, id: string): Promise<string[]> => {
  const get = async (path: string): Promise<string> => (await stack.api(path)).text();
  const list = await get(`/api/tunnels/${id}/requests?limit=100`);
  const ids = [...new Set(list.match(/"req_[\w-]+"/g) ?? [])].map((one) => one.slice(1, -1));
  const whole = await Promise.all(ids.map((one) => get(`/api/tunnels/${id}/requests/${one}`)));
  const metrics = await (await fetch(stack.run.metrics_url)).text();
  return [await get('/api/tunnels'), await get(`/api/tunnels/${id}/policy`), list, ...whole, metrics];
};

/** Returns the inspector page of the client, the request list, and each listed request. */
const inspectedBy = async (page: string): Promise<string[]> => {
  const get = async (path: string): Promise<string> => (await fetch(new URL(path, page))).text();
  const list = await get('/api/requests');
  const ids = [...new Set(list.match(/"id":"[\w-]+"/g) ?? [])].map((one) => one.slice(6, -1));
  expect(ids.length).toBeGreaterThan(3);
  return [await get('/'), list, ...(await Promise.all(ids.map((id) => get(`/api/requests/${id}`))))];
};

/** Sends an upgrade request, and returns the headers of the response. */
const upgradeOf = async (url: string, lines: readonly string[]): Promise<string> => {
  const { host, port } = new URL(url);
  const fields = ['Connection: upgrade', 'Upgrade: websocket', ...lines];
  const socket = await sendRaw(
    { host, port: Number(port) },
    `GET /socket HTTP/1.1\r\nHost: {host}\r\n${fields.join('\r\n')}\r\n\r\n`,
  );
  const head = await readUntil(socket, /\r\n\r\n/);
  socket.destroy();
  return head;
};

/** Tries every way in and every way to be rejected, with many secrets at once where possible. */
const visitAll = async ({ url }: LoginTunnel, ann: Browser, eve: Browser): Promise<Told[]> => {
  const callback = await ann.toCallback(`${url}/deep?x=1`, 'ann@example.com');
  const told = [await ann.open(callback), await ann.open(callback), await eve.logIn(url, 'eve@elsewhere.example')];
  told.push(await eve.open(url), await ann.open(`${url}/in`), await eve.open(callback));
  const all = { 'x-ci-key': TOKEN, authorization: basic(PASSWORD), x_ci_key: TOKEN };
  for (const path of ['/in', '/open/x', '/.tunnel/logout']) {
    told.push(await ann.send(url + path, { headers: all }), await askUrl(url + path, { headers: all }));
  }
  const trailers = { 'x-ci-key': TOKEN, authorization: basic(PASSWORD), 'x-check': 'kept' };
  told.push(await ann.send(`${url}/trailers`, { method: 'POST', body: 'sent', headers: all, trailers }));
  told.push(await askUrl(url, { headers: { authorization: basic(PASSWORD) } }));
  told.push(await askUrl(url, { headers: { authorization: basic(`${PASSWORD} wrong`) } }));
  for (const name of ['x-ci-key', 'X_Ci_Key']) {
    told.push(await askUrl(url, { headers: { [name]: `${TOKEN}-wrong` } }));
  }
  const signature = (secret: string): string => `sha256=${createHmac('sha256', secret).update('{}').digest('hex')}`;
  for (const secret of [HOOK, 'another']) {
    const headers = { 'x-hub-signature-256': signature(secret), 'content-length': 2 };
    told.push(await askUrl(`${url}/hook`, { method: 'POST', body: '{}', headers }));
  }
  const cookie = [...ann.cookiesAt(url)].map((pair) => pair.join('=')).join('; ');
  const upgraded = await upgradeOf(url, [`Cookie: ${cookie}`, `Origin: ${url}`, `X-Ci-Key: ${TOKEN}`]);
  expect(upgraded).toContain('101');
  expect(await upgradeOf(url, [`Cookie: ${cookie}`, 'Origin: http://evil.localhost'])).toContain('POLICY_CROSS_ORIGIN');
  return told;
};

it('no cookie, token, password or secret reaches the service, a view, a log or a file', async ({ harness }) => {
  const stack = await harness.stack();
  const tunnel = await openLoginTunnel(harness, stack, { name: 'planted', rules: RULES, env: { TUNNEL_DEBUG: '1' } });
  const { program, reached, home } = tunnel;
  const ann = new Browser();
  const eve = new Browser();
  const told = await visitAll(tunnel, ann, eve);
  expect(told.map(({ status }) => status)).toEqual([
    ...[302, 400, 302, 403, 200, 400],
    ...[200, 200, 200, 200, 200, 200, 200, 200],
    ...[401, 401, 401, 200, 403],
  ]);
  expect(reached.some(({ raw }) => raw.includes('kept'))).toBe(true);

  const id = (await program.ready()).tunnel_id;
  const captured = await eventually(async () => {
    const texts = await restOf(stack, id);
    expect(texts.join('\n')).toContain('/trailers');
    return texts;
  });
  // A replay sends exactly the request received by the service, without the login cookie.
  const before = reached.length;
  const [, , list = ''] = captured;
  const [replayed] = (JSON.parse(list) as { requests: { id: string; path: string }[] }).requests.filter(
    ({ path }) => path === '/trailers',
  );
  expect((await stack.api(`/api/tunnels/${id}/requests/${replayed?.id}/replay`, { method: 'POST' })).ok).toBe(true);
  expect(reached.length).toBe(before + 1);

  const inspected = await inspectedBy(String((await program.ready())['inspect_url']));
  const status = await harness.run(['status', '--json'], { home });
  await status.exitCode();
  const looked: Readonly<Record<string, readonly string[]>> = {
    service: reached.map((one) => JSON.stringify(one)),
    'REST and metrics': captured,
    inspector: inspected,
    status: [...status.stdout, ...status.stderr],
    client: [...program.stdout, ...program.stderr],
    'files of the client': textsIn(home, (name) => name === 'policy.yml'),
    edge: [...stack.program.stdout, ...stack.program.stderr],
    'files of the edge': textsIn(stack.dataDir, () => false),
    answers: told.map(({ text }) => text),
  };
  const digest = createHash('sha256').update(TOKEN).digest('hex');
  const planted = [PASSWORD, basic(PASSWORD).slice(6, -2), TOKEN, HOOK, CLIENT_SECRET, ...ann.secrets, ...eve.secrets];
  expect(planted.length).toBeGreaterThan(12);
  for (const [where, texts] of Object.entries(looked)) {
    const found = [...planted, digest, '$scrypt$'].filter((secret) => texts.some((text) => text.includes(secret)));
    expect(found, where).toEqual([]);
  }
  // The service cannot set cookies with the reserved names of the edge.
  const setByService = told.flatMap(({ headers }) => headers['set-cookie'] ?? []);
  expect(setByService.filter((line) => /of-the-service/.test(line))).toEqual([]);
  expect(setByService).toContain('own=1');
});
