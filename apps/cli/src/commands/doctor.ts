// `tunnel doctor`: looks at everything between a local service and its visitors, and says what is in the way.
import { statSync } from 'node:fs';
import { type ConfigFacts, examine, type KeyFileFacts, type PlatformFacts, type TunnelSpec } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { onSignals, Secret } from '@tunnel/runtime';
import { Command } from 'commander';
import { LoginFile, PlatformLogin } from '../api/platform-login.ts';
import { EXIT, type ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { addServerFlags, type ServerFlags } from '../flags.ts';
import { type Io, VERSION } from '../io.ts';
import { diagnosisText, Progress } from '../output/doctor.ts';
import { faultOf } from '../problem-report.ts';
import { defaultConfigPath, findToken, type LoadedConfig, loadConfig, resolveServer } from '../settings.ts';
import { planOf } from './start.ts';

interface DoctorFlags extends ServerFlags {
  readonly json?: boolean;
  readonly bandwidth: boolean;
}

export const doctorCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addServerFlags(
    new Command('doctor')
      .description('Find out why tunnels do not work')
      .option('--no-bandwidth', 'Do not measure the bandwidth')
      .option('--json', 'Print one JSON object'),
  )
    .addHelpText('after', '\nExamples:\n  $ tunnel doctor --server tunnels.example.com:443 --no-bandwidth')
    .action(async (flags: DoctorFlags) => {
      const { config, facts } = readConfig(flags, io);
      const { keyFile, token } = readKey(flags, config, facts, io);
      const server = facts.state === 'invalid' ? null : resolveServer(flags, config, io);
      const stop = new AbortController();
      onSignals({
        ...{ signals: ['SIGINT', 'SIGTERM'], sameWithinMs: 0, clock: io.clock, source: io.signals },
        ...{ onFirst: (signal) => stop.abort(signal), onSecond: () => {} },
      });
      const progress = new Progress(io);
      const diagnosis = await examine({
        ...{ config: facts, keyFile, bandwidth: flags.bandwidth, signal: stop.signal },
        connect: server === null ? null : { ...server, token, agent: `tunnel/${VERSION} doctor`, clock: io.clock },
        tunnels: tunnelsOf(config),
        platform: () => askPlatform(flags, io),
        onBegin: (id, done, total) => flags.json !== true && progress.show(id, done, total),
      });
      progress.clear();
      const shown = server?.server ?? 'the edge';
      if (flags.json === true) {
        const { ok, checks } = diagnosis;
        io.stdout.write(`${JSON.stringify({ ok, server: server?.server ?? null, checks })}\n`);
      } else io.stdout.write(diagnosisText(diagnosis, { server: shown, isStopped: stop.signal.aborted }, io));
      if (stop.signal.aborted) finish(exitCodeOfSignal(stop.signal.reason as NodeJS.Signals));
      else finish(diagnosis.ok ? EXIT.endedAsAsked : EXIT.unexpected);
    });

const readConfig = (
  flags: DoctorFlags,
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
  flags: DoctorFlags,
  config: LoadedConfig | null,
  facts: ConfigFacts,
  io: Io,
): { readonly keyFile: KeyFileFacts; readonly token: Secret } => {
  const none = new Secret('');
  // It may have been named there; not looked at then.
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

/** Windows has no such modes. */
const modeOf = (file: string): number | null => (process.platform === 'win32' ? null : statSync(file).mode);

const tunnelsOf = (config: LoadedConfig | null): readonly TunnelSpec[] =>
  config === null ? [] : planOf(Object.entries(config.values.tunnels)).tunnels;

const askPlatform = async (flags: DoctorFlags, io: Io): Promise<PlatformFacts> => {
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
