// `tunnel-server health`: checks a running server, for containers and monitoring scripts.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { checkHealth } from '../health/health.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { loadConfig, type ServerFlags, serverCommand } from './shared.ts';

/** Shorter than the usual interval of health checks, 10 s, so that a slow check never overlaps the next check. */
const DEFAULT_TIMEOUT_SECS = 5;
const MAX_TIMEOUT_SECS = 300;

interface HealthFlags extends ServerFlags {
  readonly timeout: number;
}

const seconds = (text: string): number => {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MAX_TIMEOUT_SECS) return value;
  throw new InvalidArgumentError(`Use a number of seconds, at most ${MAX_TIMEOUT_SECS}.`);
};

export const health = (finish: (code: number) => void): Command =>
  serverCommand('health', 'Check that every part of the running server responds; exit with 1 otherwise')
    .option('--timeout <secs>', 'Time limit in seconds', seconds, DEFAULT_TIMEOUT_SECS)
    .addHelpText('after', '\nExample:\n  $ tunnel-server health --config /etc/tunnel/server.toml')
    .action(async (flags: HealthFlags) => {
      const { data_dir, server, platform } = loadConfig(flags, process.env);
      const { isHealthy, line } = await checkHealth({
        dataDir: resolve(data_dir),
        hosts: { edge: server.domain, platform: new URL(platform.public_url).hostname },
        timeoutMs: Math.ceil(flags.timeout * 1000),
      });
      finish(isHealthy ? EXIT_OK : EXIT_UNEXPECTED);
      if (isHealthy) process.stdout.write(`${line}\n`);
      else process.stderr.write(`tunnel-server: ${line}\n`);
    });
