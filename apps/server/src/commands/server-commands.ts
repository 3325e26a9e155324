// Commands that run a single part (`edge`, `platform` and `simulator`), and `check-config`, which checks whether a server would start.
import {
  type ConfiguredParts,
  type ConfigWarning,
  configWarnings,
  likelyParts,
  type ServerConfig,
} from '@tunnel/config/server';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { runPart } from '../parts/run-part.ts';
import { type ServerKind, ServerParts } from '../parts/server-parts.ts';
import { thisProcess } from '../process/host.ts';
import { EXIT_OK, EXIT_USAGE, faultOf, problemText } from '../process/problem-report.ts';
import { checkAcmeSettings } from '../run/acme-settings.ts';
import { type RunDeps, runServer } from '../run/run-server.ts';
import {
  backupFindings,
  configFileOf,
  JSON_OPTION,
  type JsonFlags,
  loadConfig,
  loadStackConfig,
  type ServerFlags,
  serverCommand,
} from './shared.ts';

interface PartFlags extends ServerFlags {
  /** Runs as a part of a stack, which sends all other settings over the IPC channel. */
  readonly supervised?: boolean;
}

const supervised = (): Option => new Option('--supervised', 'Run as a part of a stack').hideHelp();

const runAlone = (part: ServerKind, flags: ServerFlags): Promise<number> => {
  const config = loadConfig(flags, process.env, part === 'platform' ? { findings: backupFindings } : {});
  return runServer(part, config, thisProcess(), { make: (deps) => new ServerParts(part, config, deps) });
};

/** `tunnel-server edge`: runs an edge without a stack, either with a platform elsewhere, or with its admin token and [[auth.keys]]. */
export const edge = (finish: (code: number) => void): Command =>
  serverCommand('edge', 'Run only an edge')
    .addOption(supervised())
    .addHelpText('after', '\nExample:\n  $ tunnel-server edge --config /etc/tunnel/server.toml')
    .action(async (flags: PartFlags) => {
      finish(await (flags.supervised === true ? runPart('edge', thisProcess()) : runAlone('edge', flags)));
    });

/** `tunnel-server platform`: runs only the platform API. Edges on other machines connect with credentials. */
export const platform = (finish: (code: number) => void): Command =>
  serverCommand('platform', 'Run only the platform: API and dashboard')
    .addOption(supervised())
    .addHelpText('after', '\nExample:\n  $ tunnel-server platform --config /etc/tunnel/server.toml')
    .action(async (flags: PartFlags) => {
      finish(await (flags.supervised === true ? runPart('platform', thisProcess()) : runAlone('platform', flags)));
    });

interface SimulatorFlags extends JsonFlags {
  readonly port?: string;
  readonly webhookUrl?: string;
}

const httpUrlOf = (text: string): string => {
  if (/^https?:/.test(text) && URL.canParse(text)) return text;
  throw new InvalidArgumentError('Use a URL that begins with http:// or https://.');
};

/** `tunnel-server simulator`: runs only the payment simulator, for tests of programs that call the payment processor's API. */
export const simulator = (finish: (code: number) => void): Command =>
  serverCommand('simulator', 'Run only the payment simulator')
    .option('--port <port>', 'Port on 127.0.0.1 (default: any free port)')
    .option('--webhook-url <url>', 'URL for webhooks (default: webhooks are queued)', httpUrlOf)
    .option('--json', 'Print the URL and keys as one JSON object when ready')
    .addHelpText(
      'after',
      '\nExample:\n  $ tunnel-server simulator --port 4242 --data-dir ./simulated --webhook-url http://127.0.0.1:3000/webhook --json',
    )
    .action(async (flags: SimulatorFlags) => {
      const { port, webhookUrl, json: isJson = false } = flags;
      const billing = port === undefined ? {} : { simulator_port: Number(port) };
      const config = loadConfig(flags, process.env, { overrides: { platform: { billing } } });
      const given = webhookUrl === undefined ? {} : { webhookUrl };
      const make = (deps: RunDeps): ServerParts => new ServerParts('simulator', config, { ...deps, ...given });
      finish(await runServer('simulator', config, thisProcess(), { isJson, make }));
    });

interface CheckFlags extends JsonFlags {
  /** Part to check the configuration for. If absent, derived from the config file. */
  readonly for?: ConfiguredParts;
  /** Treats warnings about the configuration as errors. */
  readonly strict?: boolean;
  /** Keys of the config file with accepted warnings, even with `strict`. */
  readonly allow?: readonly string[];
}

interface Verdict {
  readonly exitCode: number;
  /** Result of checking a config file: `ok` with the file, or the error message. */
  readonly text: string;
  readonly warnings: readonly ConfigWarning[];
  readonly json: object;
}

export const judgeConfig = async (flags: CheckFlags, env: NodeJS.ProcessEnv): Promise<Verdict> => {
  try {
    const { config, parts } = configToCheck(flags, env);
    checkAcmeSettings(config, parts);
    const { checkPolicyConfig, checkTls } = await import('@tunnel/edge');
    await checkTls(config);
    const ofRules = parts === 'platform' ? [] : checkPolicyConfig(config);
    const warnings = [...configWarnings(config, parts), ...ofRules];
    const failing = warnings.filter(({ key }) => flags.allow?.includes(key) !== true);
    const ok = flags.strict !== true || failing.length === 0;
    const text = ok ? `ok: ${configFileOf(flags, env) ?? 'built-in defaults'}` : strictText(failing);
    return { exitCode: ok ? EXIT_OK : EXIT_USAGE, text, warnings, json: { ok, warnings } };
  } catch (error) {
    const fault = faultOf(error);
    if (!fault) throw error;
    const { code, message, next } = fault;
    const json = { ok: false, code, message, next };
    return { exitCode: EXIT_USAGE, text: problemText(fault), warnings: [], json };
  }
};

/**
 * Returns the error message for warnings with `--strict`. Names the flag to accept the warnings, because some are intended, such as test
 * payments on a server that charges no fees.
 */
const strictText = (failing: readonly ConfigWarning[]): string =>
  `--strict treats warnings as errors; to accept these warnings, add --allow ${[...new Set(failing.map(({ key }) => key))].join(' ')}`;

/** Loads the configuration in the same way as the command that runs the checked parts. */
const configToCheck = (
  flags: CheckFlags,
  env: NodeJS.ProcessEnv,
): { readonly config: ServerConfig; readonly parts: ConfiguredParts } => {
  const alone = loadConfig(flags, env);
  const parts = flags.for ?? likelyParts(alone);
  return { config: parts === 'stack' ? loadStackConfig(flags, env) : alone, parts };
};

export const checkConfig = (finish: (code: number) => void): Command =>
  serverCommand('check-config', 'Check a config file for errors and likely mistakes')
    .addOption(
      new Option('--for <part>', 'Command to check for (default: edge with a platform_url, otherwise stack)').choices([
        ...['stack', 'edge', 'platform'],
      ]),
    )
    .option('--strict', 'Treat warnings as errors')
    .option('--allow <keys...>', 'Accept warnings for these keys')
    .option(...JSON_OPTION)
    .addHelpText('after', '\nExample:\n  $ tunnel-server check-config --config server.toml --strict')
    .action(async (flags: CheckFlags) => {
      const { exitCode, text, warnings, json } = await judgeConfig(flags, process.env);
      finish(exitCode);
      if (flags.json === true) return void process.stdout.write(`${JSON.stringify(json)}\n`);
      for (const warning of warnings) process.stderr.write(`warning: ${warning.text}\n`);
      if (exitCode === EXIT_OK) process.stdout.write(`${text}\n`);
      else process.stderr.write(`tunnel-server: ${text}\n`);
    });
