// The service manager that started us is told when the client is ready for the first time, reloads, stops, and that it lives.
import { createServiceNotifier } from '@tunnel/runtime';
import { readiness } from '../../agent/readiness.rules.ts';
import type { Io } from '../../io/io.ts';
import type { RunHook, RunningClient, TunnelRun } from './running-client.ts';

export const serviceManager = (_plan: TunnelRun, io: Pick<Io, 'env' | 'clock'>): RunHook => {
  const manager = createServiceNotifier({ env: io.env, clock: io.clock });
  let running: RunningClient | null = null;
  let isReady = false;
  let isStopping = false;
  /** Once: a connection that is lost later is the client's to bring back, not the manager's. */
  const look = (): void => {
    if (isReady || isStopping || running === null || !readiness(running).ready) return;
    isReady = true;
    manager.ready();
  };
  const stopping = (): void => {
    if (!isStopping) manager.stopping();
    isStopping = true;
  };
  const reloaded = (): void => {
    if (isReady && !isStopping) manager.ready();
    else look();
  };
  return {
    onRunning: (client) => {
      running = client;
    },
    output: {
      onStatus: ({ type }) => (type === 'closing' ? stopping() : look()),
      // A start that waits for a tunnel stays a start, whatever is read meanwhile.
      onReloading: () => isReady && !isStopping && manager.reloading(),
      onReloaded: reloaded,
      onReloadRefused: reloaded,
      onRemoved: look,
      onEnd: stopping,
    },
    close: () => manager.close(),
  };
};
