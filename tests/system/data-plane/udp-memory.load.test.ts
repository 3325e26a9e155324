// Tests of the memory that visitors of a UDP tunnel cost the edge, without garbage: active flows, and a flood of addresses with a single
// datagram per address.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { eventually, startUdpEcho } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness } from '../harness.fixture.ts';
import { type HeldMemory, INSPECTABLE, type MemoryProbe, memoryProbeOf } from '../inspector.fixture.ts';
import { it } from '../system-test.fixture.ts';
import { flowsOf } from '../udp-visitor.fixture.ts';

const HOST = '127.0.0.1';
const TIMEOUT_MS = 120_000;
const AT_A_TIME = 16;
const WARM_UP = 500;
const LIVING = 3000;
const LIVING_BYTES_MAX = 3000;
const FLOOD = 30_000;
const FLOOD_MB_MAX = 40;

/** On Linux every address of 127.0.0.0/8 is local. On other systems visitors differ only by port. */
const isLinux = process.platform === 'linux';
const addressOf = (n: number): string => (isLinux ? `127.${64 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}` : HOST);

const visitorOf = async (n: number): Promise<Socket> => {
  const socket = createSocket('udp4').bind(0, addressOf(n));
  socket.on('error', () => {});
  await once(socket, 'listening');
  return socket;
};

/** Sends a question until a response arrives, and then a second question, which confirms the flow. */
const converse = async (n: number, port: number): Promise<void> => {
  const socket = await visitorOf(n);
  let heard = 0;
  socket.on('message', () => {
    heard += 1;
  });
  for (const word of [1, 2]) {
    socket.send('a question', port, HOST);
    let patience = 0;
    await eventually(
      () => {
        patience += 1;
        if (patience % 50 === 0) socket.send('a question', port, HOST);
        expect(heard).toBeGreaterThanOrEqual(word);
      },
      { timeoutMs: 30_000 },
    );
  }
  socket.close();
};

const sayOneWord = async (n: number, port: number): Promise<void> => {
  const socket = await visitorOf(n);
  await new Promise<void>((resolve) => socket.send('a word of nobody', port, HOST, () => resolve()));
  socket.close();
};

const all = async (from: number, to: number, visit: (n: number) => Promise<void>): Promise<void> => {
  let next = from;
  const visitInTurn = async (): Promise<void> => {
    for (let n = next++; n < to; n = next++) await visit(n);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, visitInTurn));
};

/** Waits until the memory figures stop changing, and returns the last figures. */
const settled = async (probe: MemoryProbe): Promise<HeldMemory> => {
  let last = { residentMb: 0, referredMb: 0 };
  await eventually(
    async () => {
      const before = last;
      last = await probe.held();
      expect(Math.abs(last.residentMb - before.residentMb)).toBeLessThan(0.5);
      expect(Math.abs(last.referredMb - before.referredMb)).toBeLessThan(0.5);
    },
    { timeoutMs: 20_000, intervalMs: 500 },
  );
  return last;
};

interface Subject {
  readonly port: number;
  readonly probe: MemoryProbe;
  readonly flowCount: () => Promise<number>;
}

const start = async (harness: Harness, udp: string): Promise<Subject> => {
  const limits = 'connections_per_address = 50000';
  const stack = await harness.stack({ env: INSPECTABLE, limits, tables: `[udp]\npath = "carrier"\n${udp}` });
  const echo = harness.use(await startUdpEcho());
  const { tunnel_id: id, assigned_port: port } = await (await harness.udp(stack, echo.port)).ready();
  const probe = harness.use(await memoryProbeOf(stack.program));
  return { port, probe, flowCount: async () => (await flowsOf(stack, id)).total };
};

describe('memory of the edge', () => {
  it('an active UDP flow costs under 3 KB', { timeout: TIMEOUT_MS }, async ({ harness }) => {
    const { port, probe, flowCount } = await start(harness, 'new_flows_per_second = 0\nidle_secs = 3600');
    await all(0, WARM_UP, (n) => converse(n, port));
    const before = await settled(probe);
    await all(WARM_UP, WARM_UP + LIVING, (n) => converse(n, port));
    const after = await settled(probe);
    expect(await flowCount()).toBe(WARM_UP + LIVING);
    for (const of of ['residentMb', 'referredMb'] as const)
      expect(((after[of] - before[of]) * 1e6) / LIVING).toBeLessThan(LIVING_BYTES_MAX);
  });

  it('a UDP flood from 30,000 addresses costs under 40 MB', { timeout: TIMEOUT_MS }, async ({ harness }) => {
    const { port, probe, flowCount } = await start(harness, '');
    await all(0, WARM_UP, (n) => sayOneWord(n, port));
    const before = await settled(probe);
    await all(WARM_UP, WARM_UP + FLOOD, (n) => sayOneWord(n, port));
    const living = await flowCount();
    const after = await settled(probe);
    // Without new flows the test would prove no bound.
    expect(living).toBeGreaterThan(WARM_UP);
    for (const of of ['residentMb', 'referredMb'] as const) expect(after[of] - before[of]).toBeLessThan(FLOOD_MB_MAX);
  });
});
