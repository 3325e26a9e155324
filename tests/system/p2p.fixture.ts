// A publisher and a subscriber at the same edge, with a shared secret.
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import type { Harness } from './harness.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelEvent, TunnelProgram, TunnelRun } from './tunnel-program.fixture.ts';

export const SECRET = 'what both ends share, and nobody else';

export interface PeerRun extends Partial<Omit<TunnelRun, 'args'>> {
  readonly flags?: readonly string[];
  readonly secret?: string;
}

const start = async (harness: Harness, stack: Stack, args: readonly string[], run: PeerRun): Promise<TunnelProgram> => {
  const { flags = [], secret = SECRET, ...more } = run;
  const home = more.home ?? (await harness.folder());
  const file = join(home, 'secret');
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  const where = ['--server', stack.control, '--token-file', stack.tokenFile, '--secret-file', file];
  return harness.run(['p2p', ...args, '--json', ...where, ...flags], { ...more, home });
};

/** Runs `tunnel p2p publish NAME PORT --json` until the publisher is ready. */
export const publish = async (harness: Harness, stack: Stack, name: string, port: number, run: PeerRun = {}) => {
  const program = await start(harness, stack, ['publish', name, String(port)], run);
  const { tunnel_id: tunnelId } = await program.ready();
  return { program, tunnelId };
};

export const startConnect = (harness: Harness, stack: Stack, name: string, run: PeerRun = {}, listen = '0') =>
  start(harness, stack, ['connect', name, '--listen', listen], run);

/** Runs `tunnel p2p connect NAME --json` until the subscriber is ready. */
export const connectTo = async (harness: Harness, stack: Stack, name: string, run: PeerRun = {}) => {
  const program = await startConnect(harness, stack, name, run);
  const { listen } = await program.ready();
  return { program, port: Number(String(listen).split(':').at(-1)) };
};

export const lastPath = (program: TunnelProgram): TunnelEvent | undefined => program.events('path').at(-1);

export const becomesDirect = (...programs: readonly TunnelProgram[]): Promise<void> =>
  eventually(
    () => {
      for (const program of programs) expect(lastPath(program)).toMatchObject({ path: 'direct', reason: '' });
    },
    { timeoutMs: 15_000 },
  );

/** Opens a connection as a local program would. Resets do not fail the test. */
export const dial = (harness: Harness, port: number): Socket => {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.on('error', () => {});
  // libuv reports a reset right after the last bytes as an orderly end, and a half-open socket would then stay open forever.
  socket.on('end', () => socket.end());
  harness.use({
    close: async () => {
      socket.destroy();
    },
  });
  return socket;
};

/** Returns the peers of a tunnel, as listed by the edge. */
export const peersOf = async (stack: Stack, tunnelId: string) => {
  const answer = await stack.api(`/api/tunnels/${tunnelId}/peers`);
  return (await answer.json()) as { peers: Record<string, unknown>[]; total: number };
};
