// Reports to the service manager that started the client: first readiness, reloads, the stop, and regular watchdog messages.
import { createServiceNotifier } from '@tunnel/runtime';
import { readiness } from '../../agent/readiness.rules.ts';
import type { Io } from '../../io/io.ts';
import type { RunHook, RunningClient, TunnelRun } from './running-client.ts';

export const serviceManager = (_plan: TunnelRun, io: Pick<Io, 'env' | 'clock'>): RunHook => {
  const manager = createServiceNotifier({ env: io.env, clock: io.clock });
  let running: RunningClient | null = null;
  let isReady = false;
  let isStopping = false;
  /** Reports readiness once. The client, not the service manager, restores a connection lost later. */
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
      // A reload before the first readiness is not reported, so that the service manager still waits for the start.
      onReloading: () => isReady && !isStopping && manager.reloading(),
      onReloaded: reloaded,
      onReloadRefused: reloaded,
      onRemoved: look,
      onEnd: stopping,
    },
    close: () => manager.close(),
  };
};
