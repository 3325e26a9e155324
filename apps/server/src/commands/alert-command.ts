// `tunnel-server alert test`: sends a test alert to the operator's webhook URL and prints the result.
import type { TestAlertEnd } from '@tunnel/edge';
import { systemClock } from '@tunnel/runtime';
import { Command } from 'commander';
import { VERSION } from '../bundle.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import { JSON_OPTION, type JsonFlags, loadConfig, serverCommand } from './shared.ts';

export const alert = (finish: (code: number) => void): Command =>
  new Command('alert').description("Test the operator's alert webhook").addCommand(
    serverCommand('test', 'Send a test alert to `[load_balancing] alert_webhook_url`; exit with 1 if delivery fails')
      .option(...JSON_OPTION)
      .addHelpText('after', '\nExample:\n  $ tunnel-server alert test --config server.toml')
      .action(async (flags: JsonFlags) => {
        const config = loadConfig(flags, process.env);
        const { sendTestAlert } = await import('@tunnel/edge');
        const end = await sendTestAlert(config, { clock: systemClock, version: VERSION });
        const isDelivered = end.outcome === 'delivered';
        finish(isDelivered ? EXIT_OK : EXIT_UNEXPECTED);
        if (flags.json === true) process.stdout.write(`${JSON.stringify(jsonOf(end))}\n`);
        else if (isDelivered) process.stdout.write(`${endText(end)}\n`);
        else process.stderr.write(`tunnel-server: ${endText(end)}\n`);
      }),
  );

export const endText = ({ host, outcome, status, reason, durationMs }: TestAlertEnd): string => {
  if (outcome === 'delivered') return `${host} accepted the test alert: status ${status} in ${durationMs} ms`;
  if (outcome === 'refused-status') return `${host} rejected the test alert: status ${status} in ${durationMs} ms`;
  return `cannot deliver the test alert to ${host}: ${reason}`;
};

const jsonOf = ({ durationMs, ...end }: TestAlertEnd): object => ({ ...end, duration_ms: durationMs });
