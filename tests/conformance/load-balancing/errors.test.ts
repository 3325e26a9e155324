// Errors for visitors and clients if a group cannot serve or cannot be joined.
import { Agent } from 'node:http';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { askHttp, endpointOf, problemOf, readUntil } from '../../system/http-tunnels.fixture.ts';
import { Harness, it } from '../../system/in-process.fixture.ts';
import { fateOf, visit } from '../../system/visitor.fixture.ts';
import { fresh, GroupEdge, PATIENCE_MS } from './group-edge.fixture.ts';
import { endAfter, join, OFTEN, startNamed, untilHealthy } from './members.fixture.ts';
import { memberRequest, RawControl } from './raw-control.fixture.ts';
import { row } from './rows.fixture.ts';

const shared = new Harness();
let edge: GroupEdge;
beforeAll(async () => {
  edge = await GroupEdge.start(shared);
});
afterAll(() => shared.close());

const JSON_PLEASE = { headers: { accept: 'application/json' } };

/**
 * Returns the answer to a visitor who sends the text at once. On a busy machine the 300 ms limit can pass before the text arrives, so the
 * visit is retried.
 */
const fallbackAnswer = (port: number, words: string): Promise<string> =>
  eventually(
    async () => {
      const visitor = await visit(port);
      try {
        visitor.write(words);
        return await readUntil(visitor, /\r\n\r\n/);
      } finally {
        visitor.destroy();
      }
    },
    { timeoutMs: PATIENCE_MS },
  );

describe.concurrent('Errors', () => {
  it(row('Errors', 6), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const web = await raw.join(memberRequest(fresh()));
    const db = await raw.join(memberRequest(fresh(), { protocol: 'tcp' }));
    expect((await askHttp(endpointOf(web.public_url))).status).toBe(502);
    expect(await fallbackAnswer(db.assigned_port ?? 0, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 502 /,
    );
  });

  it(row('Errors', 6, 'a connection that was being served'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const { tunnel } = await join(harness, edge, { group, localPort: service.port, healthCheck: OFTEN });
    await untilHealthy(edge, group, 1);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const endpoint = endpointOf(tunnel.publicUrl);
    expect((await askHttp(endpoint, { agent })).status).toBe(200);
    service.up = false;
    await untilHealthy(edge, group, 0);
    expect((await askHttp(endpoint, { agent })).status).toBe(502);
    service.up = true;
    await untilHealthy(edge, group, 1);
    expect((await askHttp(endpoint, { agent })).status).toBe(200);
    agent.destroy();
  });

  it(row('Errors', 7), async ({ harness }) => {
    const group = fresh();
    const solo = fresh('solo');
    const raw = await RawControl.enter(harness, edge);
    await raw.join(memberRequest(group));
    await raw.join({ protocol: 'http', subdomain: solo });
    const told = async (request: Parameters<RawControl['refusal']>[0]) => (await raw.refusal(request)).message;
    expect(await told({ protocol: 'http', subdomain: group })).toBe(`subdomain '${group}' is already in use`);
    expect(await told({ protocol: 'http', subdomain: solo })).toBe(`subdomain '${solo}' is already in use`);
    expect(await told(memberRequest(group, { key: 'other' }))).toBe('group key does not match');
    expect(await told(memberRequest(solo))).toBe('group key does not match');
    expect(await told(memberRequest(group, { protocol: 'https' }))).toBe('group protocol does not match');
  });

  it(row('Errors', 7, 'the real client is told the same'), async ({ harness }) => {
    const group = fresh();
    const service = await startNamed(harness);
    const spec = { group, localPort: service.port };
    await join(harness, edge, spec);
    await expect(join(harness, edge, { ...spec, groupKey: 'other' })).rejects.toThrow('group key does not match');
    await expect(join(harness, edge, { ...spec, protocol: 'https' })).rejects.toThrow('group protocol does not match');
    const solo = { subdomain: group, localPort: service.port };
    await expect(join(harness, edge, solo)).rejects.toThrow(`subdomain '${group}' is already in use`);
  });
});

describe.concurrent('Contract', () => {
  it(row('Contract', 25), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const { public_url } = await raw.join(memberRequest(fresh()));
    const page = await askHttp(endpointOf(public_url), { headers: { accept: 'text/html' } });
    expect([page.status, page.headers['x-tunnel-error']]).toEqual([502, 'GROUP_UNHEALTHY']);
    expect(page.headers['content-type']).toMatch(/^text\/html/);
    expect(problemOf(await askHttp(endpointOf(public_url), JSON_PLEASE))).toMatchObject({
      status: 502,
      code: 'GROUP_UNHEALTHY',
      error: 'no healthy group member is available for this address',
    });
    const nobody = endpointOf(public_url.replace(/\/\/[^.]+/, '//nobody-here'));
    expect(problemOf(await askHttp(nobody, JSON_PLEASE))).toMatchObject({ status: 404, code: 'TUNNEL_NOT_FOUND' });
  });

  it(row('Contract', 26), async ({ harness }) => {
    const raw = await RawControl.enter(harness, edge);
    const { assigned_port: port = 0 } = await raw.join(memberRequest(fresh(), { protocol: 'tcp' }));
    for (const method of ['GET', 'POST', 'OPTIONS', 'CONNECT']) {
      const head = await fallbackAnswer(port, `${method} `);
      expect(head).toMatch(/^HTTP\/1\.1 502 /);
      expect(head).toMatch(/\r\nconnection: close\r\n/i);
      expect(head).toMatch(/\r\nx-tunnel-error: GROUP_UNHEALTHY\r\n/i);
    }
    // The visit is reset after silence, for a different protocol, and for bytes that only resemble an HTTP method.
    expect(await fateOf(port)).toBe('ECONNRESET');
    for (const words of [
      'SSH-2.0-OpenSSH_9.9\r\n',
      'GETTING / HTTP/1.1\r\n\r\n',
      'get / HTTP/1.1\r\n\r\n',
      '\x16\x03\x01',
    ]) {
      expect([words, await endAfter(port, words)]).toEqual([words, 'ECONNRESET']);
    }
  });
});
