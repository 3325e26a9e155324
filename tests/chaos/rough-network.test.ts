// Visitors come continuously while the network under the tunnel breaks repeatedly, in every way that the relay supports.

import { connectSocket, type SocketEnd } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import {
  deterministicBytes,
  eventually,
  FastClock,
  type Relay,
  rethrow,
  seededRandom,
  startEchoServer,
  startRelay,
} from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { itWith } from '../system/in-process.fixture.ts';
import { sendAndReadAll } from '../system/visitor.fixture.ts';

const VISITORS = 10;
const VISITS_EACH = 12;
const VISITS_BETWEEN_BREAKS = 10;
const BYTES = deterministicBytes(500_000, 12);
/**
 * Much longer than any visit takes. The wait for a carrier and the detection of a dead carrier take two seconds each on the clock below.
 */
const VISIT_TIMEOUT_MS = 60_000;

const it = itWith({ clock: new FastClock(12.5) });

type Outcome = 'whole' | 'reset' | 'truncated' | 'corrupted' | 'hung';

/** Dials the port, and retries while the tunnel is away and rejects visitors. */
const dial = (port: number): Promise<SocketEnd> =>
  eventually(() => connectSocket({ host: '127.0.0.1', port, timeoutMs: 5000, clock: systemClock }), {
    timeoutMs: VISIT_TIMEOUT_MS,
  });

/** Sends bytes to an echo service and returns the outcome. Uses the product's socket end, because Node.js reports some resets as an end. */
const visit = async (port: number, bytes: number): Promise<Outcome> => {
  const end = await dial(port);
  return new Promise((resolve) => {
    let received = 0;
    let sent = 0;
    const late = setTimeout(() => finish('hung'), VISIT_TIMEOUT_MS);
    const finish = (outcome: Outcome): void => {
      clearTimeout(late);
      end.reset({ code: 'cancelled', text: 'the visit is over' });
      resolve(outcome);
    };
    const send = (): void => {
      while (sent < bytes) {
        const from = sent;
        sent = Math.min(bytes, sent + 50_000);
        if (!end.write(BYTES, from, sent, false)) return;
      }
      end.end();
    };
    end.read({
      onData: (chunk, start, stop) => {
        if (BYTES.compare(chunk, start, stop, received, received + stop - start) !== 0) finish('corrupted');
        received += stop - start;
        return true;
      },
      onDrain: send,
      onEnd: () => finish(received === bytes ? 'whole' : 'truncated'),
      onReset: () => finish('reset'),
      abandon: rethrow,
    });
    send();
  });
};

/**
 * Returns ways to break the network. Mild ways are more frequent, because a client that loses all its connections waits longer before
 * each attempt.
 */
const breaks = (relay: Relay, random: () => number): (() => void)[] => {
  const carriers = () => relay.connections.filter(({ opening }) => opening.startsWith('GET /_carrier'));
  const control = () => relay.connections.find(({ opening }) => opening.startsWith('GET /_control'));
  const anyCarrier = () => carriers().at(Math.floor(random() * carriers().length));
  const slower = (): void => {
    relay.delayMs = Math.floor(random() * 30);
  };
  return [
    slower,
    () => anyCarrier()?.reset(),
    // Visitors of a lost carrier wait until the carrier is found dead after 25 s, so a single loss is enough.
    () => anyCarrier()?.lose(),
    () => control()?.reset(),
    slower,
    () => anyCarrier()?.reset(),
    () => carriers().forEach((carrier) => carrier.reset()),
    () => relay.cut(),
  ];
};

describe('a tunnel on a network that breaks repeatedly', () => {
  it('serves every visit completely or resets it: no visit is corrupted, truncated without a reset, or left hanging', {
    timeout: 180_000,
  }, async ({ harness }) => {
    const random = seededRandom(2024);
    const echo = harness.use(await startEchoServer());
    const stack = await harness.stack();
    const relay = harness.use(await startRelay({ target: { port: stack.controlPort } }));
    const tunnel = await harness.tcp(stack, echo.port, { server: `127.0.0.1:${relay.port}` });
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    const sessionId = (await stack.tunnel(id))?.session_id;

    const left = breaks(relay, random);
    const outcomes: Outcome[] = [];
    await Promise.all(
      Array.from({ length: VISITORS }, async () => {
        for (let visits = 0; visits < VISITS_EACH; visits += 1) {
          outcomes.push(await visit(port, 1 + Math.floor(random() * BYTES.length)));
          if (outcomes.length % VISITS_BETWEEN_BREAKS === 0) left.shift()?.();
        }
      }),
    );
    expect(left).toEqual([]);
    const count = (kind: Outcome): number => outcomes.filter((outcome) => outcome === kind).length;
    expect([count('corrupted'), count('truncated'), count('hung')]).toEqual([0, 0, 0]);
    // Most visits are not affected by any break.
    expect(count('whole')).toBeGreaterThan(outcomes.length / 3);

    // After the breaks, the tunnel works as before, and no connection is left over.
    relay.delayMs = 0;
    await eventually(
      async () => expect((await sendAndReadAll(port, Buffer.from('calm')).catch(String)).toString()).toBe('calm'),
      { timeoutMs: 60_000 },
    );
    expect(await stack.tunnels()).toMatchObject([{ tunnel_id: id, assigned_port: port, session_id: sessionId }]);
    await eventually(
      async () =>
        expect([
          await stack.metric('tunnel_active_connections'),
          await stack.metric('tunnel_active_streams'),
          echo.openConnections,
        ]).toEqual([0, 0, 0]),
      { timeoutMs: 40_000 },
    );
  });
});
