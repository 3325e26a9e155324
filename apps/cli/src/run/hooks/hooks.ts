// The hooks of every run, one line per hook. The run does not know any hook by name.
import type { Io } from '../../io/io.ts';
import { agentHook } from './agent.ts';
import { browser, qrCode } from './first-url.ts';
import { logFile } from './log-file.ts';
import type { RunHook, TunnelRun } from './running-client.ts';
import { serviceManager } from './service-manager.ts';

/** Creates a hook of a run. Returns null if the run does not need the hook. Throws a Fault if the hook cannot work. */
type MakeHook = (plan: TunnelRun, io: Io) => RunHook | null;

const HOOKS: readonly MakeHook[] = [
  // First, because it removes environment variables that the programs started by other hooks must not inherit.
  serviceManager,
  agentHook,
  logFile,
  qrCode,
  browser,
];

export const createHooks = (plan: TunnelRun, io: Io): RunHook[] => HOOKS.flatMap((make) => make(plan, io) ?? []);
