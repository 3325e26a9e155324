// Tests of attacks on a login, over real sockets with an edge and a real provider.
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { askUrl, Browser, openLoginTunnel, type Told, urlOf } from './login.fixture.ts';

const ANN = 'ann@example.com';
const codeOf = ({ headers }: Told): unknown => headers['x-tunnel-error'];
const STATE = [400, 'POLICY_LOGIN_STATE'];
const verdict = (told: Told): unknown[] => [told.status, codeOf(told)];
const cookieLine = (browser: Browser, url: string): string =>
  [...browser.cookiesAt(url)].map((pair) => pair.join('=')).join('; ');

/** Sends a handwritten request, and resolves with the status of the response. */
const rawStatus = (url: string, lines: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const { host, port } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    let text = '';
    socket.on('data', (piece) => (text += piece.toString('latin1')));
    socket.on('error', reject).on('close', () => resolve(text.slice(9, 12)));
    const [first = '', ...fields] = lines;
    socket.write(`${first} HTTP/1.1\r\n${[`Host: ${host}`, 'Connection: close', ...fields].join('\r\n')}\r\n\r\n`);
  });

describe.concurrent('a login', () => {
  it('rejects the state of a different browser or tunnel, a used state, and a changed state', async ({ harness }) => {
    const stack = await harness.stack();
    const shop = await openLoginTunnel(harness, stack, { name: 'shop' });
    const other = await openLoginTunnel(harness, stack, { name: 'other' });
    const ann = new Browser();
    const eve = new Browser();
    const callback = await ann.toCallback(`${shop.url}/deep?x=1`, ANN);
    // A different browser is rejected, both without and with a login in progress.
    expect(verdict(await new Browser().open(callback))).toEqual(STATE);
    await eve.open(`${shop.url}/`);
    expect(verdict(await eve.open(callback))).toEqual(STATE);
    // A different tunnel rejects the state, even with all cookies of the first tunnel.
    for (const [name, value] of ann.cookiesAt(shop.url)) eve.cookiesAt(other.url).set(name, value);
    expect(verdict(await eve.open(callback.replace('//shop.', '//other.')))).toEqual(STATE);
    for (const changed of ['', '&state=x', callback.slice(callback.indexOf('&state=')).replace(/.$/, '')]) {
      const url = changed === '' ? callback.replace(/[?&]state=[^&]*/, '?') : `${callback}${changed}`;
      expect(verdict(await ann.open(url))).toEqual(STATE);
    }
    // A HEAD request does not use up the state.
    expect((await ann.send(callback, { method: 'HEAD' })).status).toBe(400);
    const kept = new Map(ann.cookiesAt(shop.url));
    const back = await ann.open(callback);
    expect([back.status, back.headers.location]).toEqual([302, '/deep?x=1']);
    // A used state is rejected from the same browser, and from a thief of the browser's cookies.
    expect(verdict(await ann.open(callback))).toEqual(STATE);
    for (const [name, value] of kept) eve.cookiesAt(shop.url).set(name, value);
    expect(verdict(await eve.open(callback))).toEqual(STATE);
    expect([shop.reached, other.reached]).toEqual([[], []]);
    expect((await ann.open(`${shop.url}/deep?x=1`)).text).toBe('served /deep?x=1');
  });

  it('never redirects to another host, and never injects a header', async ({ harness }) => {
    const stack = await harness.stack();
    const { url } = await openLoginTunnel(harness, stack, { name: 'back' });
    for (const [path, wanted] of [
      ['//evil.example/x', '/evil.example/x'],
      ['/\\evil.example', '/evil.example'],
      ['/%0d%0aSet-Cookie:%20a=b', '/%0d%0aSet-Cookie:%20a=b'],
      ['/.tunnel/callback%3f', '/.tunnel/callback%3f'],
    ] as const) {
      const ann = new Browser();
      const began = await ann.send(`${url}/`, { headers: {} });
      expect(began.status).toBe(401);
      // The request is handwritten, because the URL class would normalize the path.
      const { host, port } = new URL(url);
      const first = await new Promise<string>((resolve) => {
        const socket = connect(Number(port), '127.0.0.1');
        let text = '';
        socket.on('data', (piece) => (text += piece.toString('latin1'))).on('close', () => resolve(text));
        socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`);
      });
      const [, location = ''] = /^location: (.*)\r$/im.exec(first) ?? [];
      const [, name = '', value = ''] = /^set-cookie: ([^=]+)=([^;]*)/im.exec(first) ?? [];
      ann.cookiesAt(url).set(name, value);
      const back = await ann.logIn(location, ANN);
      expect([back.status, back.headers.location]).toEqual([302, wanted]);
      expect(back.headers).not.toHaveProperty('a');
    }
  });

  it('ignores cookies of a sibling tunnel, and rejects its cross-origin forms and sockets', async ({ harness }) => {
    const stack = await harness.stack();
    const shop = await openLoginTunnel(harness, stack, { name: 'mine' });
    const evil = await openLoginTunnel(harness, stack, { name: 'evil' });
    const ann = new Browser();
    const eve = new Browser();
    await ann.logIn(`${shop.url}/`, ANN);
    await eve.logIn(`${evil.url}/`, ANN);
    // A sibling can set cookies with `Domain=localhost`. Browsers send such cookies before the tunnel's own cookies, or alone.
    const foreign = cookieLine(eve, evil.url);
    const own = cookieLine(ann, shop.url);
    const get = (cookie: string): Promise<Told> => askUrl(`${shop.url}/x`, { headers: { cookie } });
    expect((await get(foreign)).status).toBe(401);
    expect((await get(`${foreign}; ${own}`)).status).toBe(200);
    expect((await get(`${foreign}; ${foreign}; ${foreign}; ${own}`)).status).toBe(200);
    expect(shop.reached.map(({ raw }) => raw.join()).join()).not.toContain('tunnel_login');
    const before = shop.reached.length;
    for (const origin of [evil.url, 'null', 'http://mine.localhost', 'https://mine.localhost']) {
      const post = { method: 'POST', headers: { cookie: own, origin, 'content-length': 0 } };
      expect(verdict(await askUrl(`${shop.url}/x`, post))).toEqual([403, 'POLICY_CROSS_ORIGIN']);
      expect(verdict(await askUrl(`${shop.url}/.tunnel/logout`, post))).toEqual([403, 'POLICY_CROSS_ORIGIN']);
      const upgrade = ['Connection: upgrade', 'Upgrade: websocket', `Origin: ${origin}`];
      expect(await rawStatus(shop.url, ['GET /socket', ...upgrade, `Cookie: ${own}`])).toBe('403');
    }
    expect(await rawStatus(shop.url, ['GET /socket', 'Connection: upgrade', 'Upgrade: websocket'])).toBe('401');
    expect(shop.reached).toHaveLength(before);
    const socket = ['Connection: upgrade', 'Upgrade: websocket', `Origin: ${shop.url}`, `Cookie: ${own}`];
    expect(await rawStatus(shop.url, ['GET /socket', ...socket])).toBe('101');
  });

  it('survives the rotation of the login secret, and ends when its secret is removed', async ({ harness }) => {
    const file = join(await harness.folder(), 'secrets');
    const first = '1'.repeat(40);
    const second = '2'.repeat(40);
    writeFileSync(file, `${first}\n`, { mode: 0o600 });
    const stack = await harness.stack({ fixedPorts: true, tables: `[policy]\nlogin_secret_file = "${file}"` });
    const { url } = await openLoginTunnel(harness, stack, { name: 'rotated' });
    const ann = new Browser();
    await ann.logIn(`${url}/`, ANN);
    const callback = await new Browser().toCallback(`${url}/`, ANN);
    const restartWith = async (...secrets: string[]): Promise<void> => {
      await stack.stop();
      writeFileSync(file, `${secrets.join('\n')}\n`);
      await stack.start();
      // Waits until the client has reconnected.
      await eventually(async () => expect((await askUrl(`${url}/`)).status).toBe(401), { timeoutMs: 30_000 });
    };
    const status = async (): Promise<number> => (await ann.send(`${url}/`)).status;
    expect(await status()).toBe(200);
    await restartWith(second, first);
    expect(await status()).toBe(200);
    await restartWith(second);
    expect(await status()).toBe(401);
    expect(verdict(await ann.open(callback))).toEqual(STATE);
    await restartWith(first, second);
    expect(await status()).toBe(200);
    expect(urlOf(stack, 'rotated')).toBe(url);
  });
});

describe.concurrent('a request with unusual headers', () => {
  it('is not signed in, reaches no service, and leaves the edge working', async ({ harness }) => {
    const stack = await harness.stack();
    const { url, reached } = await openLoginTunnel(harness, stack, { name: 'odd' });
    const ann = new Browser();
    await ann.logIn(`${url}/`, ANN);
    const own = cookieLine(ann, url);
    const [, value = ''] = own.split('=');
    const { host } = new URL(url);
    for (const [lines, status] of [
      [['GET /', `Cookie: ${'x'.repeat(1_000_000)}`], '431'],
      [['GET /', `Cookie: tunnel_login=${value.slice(0, -1)}`], '401'],
      [['GET /', `Cookie: TUNNEL_LOGIN=${value}`], '401'],
      [['GET /', `Cookie: __Host-tunnel_login=${value}`], '401'],
      [['GET /', `Cookie: x="; tunnel_login_00000000=${value}`], '401'],
      [['GET /', `X-Cookie: ${own}`], '401'],
      [['GET /', 'X-Tunnel-User: ann@example.com', 'X-Tunnel-Auth: login'], '401'],
      [['GET /', 'Connection: X-Tunnel-User', 'X-Tunnel-User: ann@example.com'], '401'],
      [[`GET http://${host}/`], '401'],
      [[`GET http://elsewhere.localhost/`, `Cookie: ${own}`], '404'],
      [['HEAD /', 'Accept: text/html'], '302'],
      [['HEAD /', 'Accept: */*'], '401'],
      [['POST /.tunnel/callback', 'Content-Length: 0'], '400'],
      [['GET /', 'Accept: text/html', 'Sec-Purpose: prefetch'], '401'],
    ] as const) {
      expect(await rawStatus(url, lines), lines.join(' ').slice(0, 80)).toBe(status);
    }
    expect(reached).toEqual([]);
    expect(await rawStatus(url, ['GET /in', 'Cookie: a=1', `cOOkie:  b=2;${own} `])).toBe('200');
    expect(await rawStatus(url, [`GET http://${host}/in`, `Cookie: ${own}`])).toBe('200');
    expect(reached.map(({ raw }) => raw.join()).join()).not.toContain(value);
    expect(reached[0]?.raw).toContain('a=1; b=2');
  });
});
