// `tunnel-server check-config`: says whether a server would start with this config, without starting it.
import { loadTlsFiles } from '@tunnel/edge';
import type { Command } from 'commander';
import { EXIT_OK, EXIT_USAGE, faultOf, problemText } from '../problem-report.ts';
import { loadConfig, type ServerFlags, serverCommand } from './server-flags.ts';

interface CheckFlags extends ServerFlags {
  readonly json?: boolean;
}

interface Verdict {
  readonly exitCode: number;
  readonly text: string;
  readonly json: object;
}

export const judgeConfig = async (flags: ServerFlags, env: NodeJS.ProcessEnv): Promise<Verdict> => {
  try {
    await loadTlsFiles(loadConfig(flags, env).tls);
    return { exitCode: EXIT_OK, text: `ok: ${flags.config ?? 'built-in defaults'}`, json: { ok: true } };
  } catch (error) {
    const fault = faultOf(error);
    if (!fault) throw error;
    const { code, message, next } = fault;
    return { exitCode: EXIT_USAGE, text: problemText(fault), json: { ok: false, code, message, next } };
  }
};

export const checkConfig = (finish: (code: number) => void): Command =>
  serverCommand('check-config', 'Check a config file and say `ok`, or what is wrong with it.')
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', '\nExample:\n  tunnel-server check-config --config server.toml --json')
    .action(async (flags: CheckFlags) => {
      const { exitCode, text, json } = await judgeConfig(flags, process.env);
      if (flags.json === true) process.stdout.write(`${JSON.stringify(json)}\n`);
      else if (exitCode === EXIT_OK) process.stdout.write(`${text}\n`);
      else process.stderr.write(`tunnel-server: ${text}\n`);
      finish(exitCode);
    });
