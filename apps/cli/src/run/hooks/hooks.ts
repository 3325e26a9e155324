// What goes with every run: one line each. A run knows none of them by name.
import type { Io } from '../../io/io.ts';
import { agentHook } from './agent.ts';
import { browser, qrCode } from './first-url.ts';
import { logFile } from './log-file.ts';
import type { RunHook, TunnelRun } from './running-client.ts';
import { serviceManager } from './service-manager.ts';

/** null: not wanted in this run. Throws a Fault for what cannot work. */
type MakeHook = (plan: TunnelRun, io: Io) => RunHook | null;

const HOOKS: readonly MakeHook[] = [
  // First: it takes out of the environment what the others' programs must not inherit.
  serviceManager,
  agentHook,
  logFile,
  qrCode,
  browser,
];

export const createHooks = (plan: TunnelRun, io: Io): RunHook[] => HOOKS.flatMap((make) => make(plan, io) ?? []);
