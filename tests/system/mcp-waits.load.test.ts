// A thousand models that wait for a request at the platform: what they cost it, and what is left when they leave.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { UserPublic } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { INSPECTABLE, memoryProbeOf } from './inspector.fixture.ts';
import { MANY_LOGINS, Person } from './platform-test.fixture.ts';
import { type Harness, it } from './system-test.fixture.ts';
import { UsageReportingEdge } from './usage-reporting-edge.fixture.ts';

const ACCOUNTS = 50;
const CALLS_EACH = 20;
const WAITING_MAX_MB = 100;
const SOON = { timeoutMs: 60_000 };

it('1,000 waiting calls take the platform less than 100 MB, and leave nothing when their callers do', async ({
  harness,
}) => {
  const platform = await harness.stack({ command: 'platform', tables: MANY_LOGINS, env: INSPECTABLE });
  const probe = harness.use(await memoryProbeOf(platform.program));
  const edge = await startSilentEdge(harness);
  const link = await UsageReportingEdge.join(platform, edge.url);
  harness.use(link.keepBeating());
  const people = await Promise.all(Array.from({ length: ACCOUNTS }, () => Person.signUp(platform)));
  const models = await Promise.all(
    people.map(async (person) => {
      const [key, me] = [await person.newKey(), await person.get<UserPublic>('/auth/me')];
      return { key: key.token, tunnel: await link.tellOfLiving({ accountId: me.id, keyId: key.id }) };
    }),
  );
  const leaving = new AbortController();
  const wait = ({ key, tunnel }: (typeof models)[number], signal: AbortSignal): Promise<unknown> =>
    fetch(`${platform.run.platform_url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
        params: {
          name: 'wait_for_request',
          arguments: { tunnel, timeout_secs: 300 },
          _meta: { progressToken: 1 },
        },
      }),
      signal,
    }).catch(() => null);

  // The code is there, and so is what the first calls of all make once.
  const first = new AbortController();
  const trial = models.map((model) => wait(model, first.signal));
  await eventually(() => expect(edge.waiting()).toBe(ACCOUNTS), SOON);
  first.abort();
  await Promise.all(trial);
  await eventually(() => expect(edge.waiting()).toBe(0), SOON);
  const before = await probe.held();

  const calls = models.flatMap((model) => Array.from({ length: CALLS_EACH }, () => wait(model, leaving.signal)));
  await eventually(() => expect(edge.waiting()).toBe(ACCOUNTS * CALLS_EACH), SOON);
  const waiting = await probe.held();
  expect(waiting.residentMb - before.residentMb).toBeLessThan(WAITING_MAX_MB);
  leaving.abort();
  await Promise.all(calls);
  await eventually(() => expect(edge.waiting()).toBe(0), SOON);
}, 240_000);

/** An edge where nothing ever comes. */
const startSilentEdge = async (harness: Harness): Promise<{ url: string; waiting(): number }> => {
  let waiting = 0;
  const server = createServer((_, response) => {
    waiting += 1;
    response.once('close', () => {
      waiting -= 1;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  harness.use({
    close: async () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, waiting: () => waiting };
};
