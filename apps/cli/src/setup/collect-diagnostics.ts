// Input of `tunnel doctor` from outside the client library (config file, API key, account), and the diagnosis with this input.
import { statSync } from 'node:fs';
import {
  type ClientSpec,
  type ConfigFacts,
  type Diagnosis,
  type DoctorOptions,
  examine,
  type KeyFileFacts,
  type PlatformFacts,
} from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import { LoginFile } from '../api/login-file.ts';
import { PlatformLogin } from '../api/platform-login.ts';
import { defaultConfigPath, type LoadedConfig, loadConfig } from '../config/file.ts';
import type { ServerFlags } from '../config/flags.ts';
import { planLocalTunnels } from '../config/plan.ts';
import { findToken, resolveServer } from '../config/settings.ts';
import { type Io, VERSION } from '../io/io.ts';
import { faultOf } from '../io/problem-report.ts';

export interface Examined {
  /** Address of the server. Null if the config file is unreadable, because the server is then unknown. */
  readonly server: string | null;
  readonly diagnosis: Diagnosis;
}

export const collectDiagnostics = async (
  flags: ServerFlags,
  io: Io,
  options: Pick<DoctorOptions, 'bandwidth' | 'onBegin' | 'signal'>,
): Promise<Examined> => {
  const { config, facts } = readConfig(flags, io);
  const { keyFile, token } = readKey(flags, config, facts, io);
  const server = facts.state === 'invalid' ? null : resolveServer(flags, config, io);
  const diagnosis = await examine({
    ...options,
    config: facts,
    keyFile,
    connect: server === null ? null : { ...server, token, agent: `tunnel/${VERSION} doctor`, clock: io.clock },
    tunnels: tunnelsOf(config),
    platform: () => askPlatform(flags, io),
  });
  return { server: server?.server ?? null, diagnosis };
};

/** Returns the single object printed by `tunnel doctor --json`. */
export const examinedFields = ({ server, diagnosis: { ok, checks } }: Examined) => ({ ok, server, checks });

const readConfig = (
  flags: ServerFlags,
  io: Io,
): { readonly config: LoadedConfig | null; readonly facts: ConfigFacts } => {
  const file = flags.config ?? defaultConfigPath(io);
  try {
    const config = loadConfig(flags.config, io);
    if (config === null) return { config, facts: { state: 'absent', file } };
    const tunnels = Object.keys(config.values.tunnels).length;
    return { config, facts: { state: 'read', file: config.path, tunnels } };
  } catch (error) {
    const fault = faultOf(error);
    if (fault === undefined) throw error;
    return { config: null, facts: { state: 'invalid', file, problem: fault.message } };
  }
};

const readKey = (
  flags: ServerFlags,
  config: LoadedConfig | null,
  facts: ConfigFacts,
  io: Io,
): { readonly keyFile: KeyFileFacts; readonly token: Secret } => {
  const none = new Secret('');
  // The unreadable config file may define the API key, so the search for a key is skipped.
  if (facts.state === 'invalid') return { keyFile: { state: 'missing' }, token: none };
  try {
    const { token, source, file } = findToken(flags, config, io);
    const keyFile = { state: 'found', source: file === null ? source : `${source} ${file}`, file } as const;
    return { keyFile: { ...keyFile, mode: file === null ? null : modeOf(file) }, token };
  } catch (error) {
    if (!(error instanceof Fault) || error.code === 'CLIENT_USAGE') throw error;
    const isMissing = error.code === 'CLIENT_KEY_MISSING';
    return { keyFile: isMissing ? { state: 'missing' } : { state: 'unreadable', problem: error.message }, token: none };
  }
};

/** Returns the mode of a file. Returns null on Windows, which has no Unix file modes. */
const modeOf = (file: string): number | null => (process.platform === 'win32' ? null : statSync(file).mode);

const tunnelsOf = (config: LoadedConfig | null): readonly ClientSpec[] =>
  config === null ? [] : planLocalTunnels(Object.entries(config.values.tunnels));

const askPlatform = async (flags: ServerFlags, io: Io): Promise<PlatformFacts> => {
  const url = new LoginFile(io).read()?.platform.url;
  if (url === undefined) return { state: 'no-login' };
  try {
    await PlatformLogin.open(io, flags).call((client) => client.me());
    return { state: 'reached', url };
  } catch (error) {
    const fault = Fault.from(error);
    return fault.status === 401 ? { state: 'session-over', url } : { state: 'away', url, problem: fault.message };
  }
};
