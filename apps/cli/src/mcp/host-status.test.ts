import { expect, it } from 'vitest';
import { makeTestIo } from '../io/io.fixture.ts';
import type { RunningClient } from '../run/hooks/running-client.ts';
import { hostStatus } from './host-status.ts';

it('the MCP status shows the measured latency to the edge with one decimal, and null before', async () => {
  const session = { id: 'ses_1', regionId: 'local', latencyMs: null as number | null, carriers: 2 };
  const running = {
    plan: { config: null, settings: { server: 'edge.example:443' } },
    since: 0,
    state: 'connected',
    client: { session },
    tunnels: [],
  } as unknown as RunningClient;
  const away = (): never => {
    throw new Error('not asked');
  };
  const sources = {
    io: makeTestIo({ home: '/nowhere' }),
    running,
    allow: [],
    edge: away,
    edgeUrl: away,
    account: away,
  };
  expect(await hostStatus(sources)).toMatchObject({ client: { latency_ms: null } });
  session.latencyMs = 12.345;
  expect(await hostStatus(sources)).toMatchObject({ client: { latency_ms: 12.3 } });
});
