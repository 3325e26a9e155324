// Attacks on the control socket of a running client: its resource use stays limited, and its tunnels keep working.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { askClient, followClient } from '../../agent/agent-client.ts';
import { CLI_LIMITS } from '../../limits.ts';
import { AgentTrial } from './agent.fixture.ts';
import { AGENT_BODY_MAX_BYTES, AGENT_CONNECTIONS_MAX } from './agent.ts';
import { AGENT_FOLLOWERS_MAX } from './agent-routes.ts';

let trial: AgentTrial;

beforeEach(async () => {
  trial = await AgentTrial.begin([31_800, 31_899]);
});
afterEach(() => trial.close());

/** Sends bytes to the control socket, and returns the whole answer once the client has closed the connection. */
const throwAt = (bytes: string | Buffer, isWhole = true): Promise<string> =>
  new Promise((resolve) => {
    const socket = trial.dial({ path: trial.socketPath });
    let said = '';
    socket.on('data', (part) => (said += String(part)));
    socket.on('close', () => resolve(said));
    if (isWhole) socket.end(bytes);
    else socket.write(bytes);
  });

/** Lowers limits for clients started by this test, until the test ends. */
const shorten = (limits: Partial<Record<keyof typeof CLI_LIMITS, number>>): void => {
  const before = { ...CLI_LIMITS };
  Object.assign(CLI_LIMITS, limits);
  onTestFinished(() => void Object.assign(CLI_LIMITS, before));
};

const openSockets = (): number => trial.sockets.filter(({ closed }) => !closed).length;

describe('the control socket of a client under attack', () => {
  it('refuses garbage and invalid requests, and the tunnel keeps working', async () => {
    const { port } = await trial.startTcp();
    const garbage = [Buffer.alloc(4096, 0xff), '\0\0\0', 'GET\r\n\r\n', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`];
    for (const bytes of garbage) expect(await throwAt(bytes)).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    const calls: [string, number][] = [
      ['GET /nothing HTTP/1.1\r\n\r\n', 404],
      ['GET // HTTP/1.1\r\n\r\n', 404],
      ['GET /toString HTTP/1.1\r\n\r\n', 404],
      ['GET /__proto__/x HTTP/1.1\r\n\r\n', 404],
      ['PATCH /status HTTP/1.1\r\n\r\n', 405],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 3\r\n\r\n{]}', 400],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 4\r\n\r\nnull', 400],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 15\r\n\r\n{"proto":"tcp"}', 400],
      ['DELETE /tunnels/%zz HTTP/1.1\r\n\r\n', 400],
      ['GET /logs?lines=-1 HTTP/1.1\r\n\r\n', 400],
      ['GET /status HTTP/1.1\r\nhost: evil.example\r\n\r\n', 200],
    ];
    for (const [text, status] of calls) expect(await throwAt(text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await trial.visit(port);
  });

  it('refuses an invalid tunnel spec with CLIENT_USAGE', async () => {
    await trial.startTcp();
    const base = { protocol: 'tcp', name: 'x', localPort: 80 };
    const odd: object[] = [
      { ...base, hostHeader: 5 },
      { ...base, healthCheck: [] },
      { ...base, healthCheck: { type: {} } },
      { ...base, localPort: '80' },
      { ...base, protocol: 'p2p', p2pName: 'x' },
      // Keys of config.yml and keys of the library cannot be mixed.
      { ...base, local_host: '127.0.0.1' },
      { proto: 'tcp', name: 'x', localPort: 80 },
      { ...base, name: '' },
      { ...base, surprise: true },
      [],
    ];
    for (const json of odd) {
      const refused = await askClient(trial.socketPath, { method: 'POST', path: '/tunnels', json }, systemClock).catch(
        (error: unknown) => error,
      );
      expect(refused).toMatchObject({ code: 'CLIENT_USAGE' });
    }
  });

  it('refuses a body above 256 KiB with 413, by Content-Length and by bytes', async () => {
    await trial.startTcp();
    const bytes = AGENT_BODY_MAX_BYTES + 1;
    expect(await throwAt(`POST /tunnels HTTP/1.1\r\ncontent-length: ${bytes}\r\n\r\n`, false)).toMatch(
      /^HTTP\/1\.1 413 /,
    );
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`;
    expect(
      await throwAt(`POST /tunnels HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(5)}`, false),
    ).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('limits 1,000 connections with slow bodies and cuts them off, and the tunnel keeps working', async () => {
    // The limits are enforced by timers of Node's HTTP server, which ignore a fake clock.
    shorten({ AGENT_REQUEST_TIMEOUT_MS: 500, AGENT_LOOK_EVERY_MS: 100 });
    const { port } = await trial.startTcp();
    for (let index = 0; index < 1000; index += 1) {
      const socket = trial.dial({ path: trial.socketPath }).resume();
      if (index % 2 === 0) socket.write('POST /tunnels HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{');
    }
    await trial.visit(port);
    await eventually(() => expect(openSockets()).toBeLessThanOrEqual(AGENT_CONNECTIONS_MAX + 1));
    // A command waits until the slow connections have been cut off and a connection is available again.
    expect(await trial.statuses()).toHaveLength(1);
    await eventually(() => expect(openSockets()).toBe(0), { timeoutMs: 15_000 });
    await trial.visit(port);
  });

  it('limits the number of followers, and still answers other commands', async () => {
    await trial.startTcp();
    const stop = new AbortController();
    const follow = (): Promise<unknown> =>
      followClient(trial.socketPath, { path: '/events', signal: stop.signal }, () => {}, systemClock).catch(
        (error: unknown) => error,
      );
    const following = Array.from({ length: AGENT_FOLLOWERS_MAX }, follow);
    await eventually(async () => expect(await follow()).toMatchObject({ code: 'API_STREAMS_BUSY' }));
    expect(await trial.statuses()).toHaveLength(1);
    stop.abort();
    await Promise.all(following);
  });

  it('leaves no tunnel behind when a command gives up', async () => {
    const { io } = await trial.startTcp();
    await trial.edge.stop({ drainMs: 0 });
    await eventually(() => expect(io.events().at(-1)).toMatchObject({ event: 'reconnecting' }));
    const stop = new AbortController();
    const json = { protocol: 'tcp', name: 'late', localPort: 80 };
    const call = { method: 'POST', path: '/tunnels', json, isSlow: true, signal: stop.signal } as const;
    const adding = askClient(trial.socketPath, call, systemClock);
    await eventually(async () =>
      expect((await trial.statuses())[0]?.tunnels[1]).toMatchObject({ name: 'late', state: 'opening' }),
    );
    stop.abort();
    await expect(adding).rejects.toThrow();
    await eventually(async () => expect((await trial.statuses())[0]?.tunnels).toHaveLength(1));
  });

  it('is the only file in its folder', async () => {
    await trial.startTcp();
    expect(readdirSync(join(trial.home.path, '.tunnel', 'run'))).toEqual([`${process.pid}.sock`]);
  });
});
