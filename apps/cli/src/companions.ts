// What goes with every run: one line each. A run knows none of them by name.
import { agentCompanion } from './agent/agent-companion.ts';
import { browser, qrCode } from './companions/first-url.ts';
import { logFile } from './companions/log-file.ts';
import { serviceManager } from './companions/service-manager.ts';
import type { Io } from './io.ts';
import type { Companion, TunnelRun } from './running-client.ts';

/** null: not wanted in this run. Throws a Fault for what cannot work. */
type MakeCompanion = (plan: TunnelRun, io: Io) => Companion | null;

const COMPANIONS: readonly MakeCompanion[] = [
  // First: it takes out of the environment what the others' programs must not inherit.
  serviceManager,
  agentCompanion,
  logFile,
  qrCode,
  browser,
];

export const companionsOf = (plan: TunnelRun, io: Io): Companion[] =>
  COMPANIONS.flatMap((make) => make(plan, io) ?? []);
