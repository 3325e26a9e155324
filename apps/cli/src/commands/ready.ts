// `tunnel ready`: checks whether the tunnels requested at the client's start are open, for scripts and health checks.
import { Fault } from '@tunnel/errors';
import { Command, Option } from 'commander';
import { addClientFlag, type ClientFlags, chooseClient } from '../agent/choose-client.ts';
import { wholeNumber } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { listenForStop, pause } from '../io/until-stopped.ts';

interface ReadyFlags extends ClientFlags {
  readonly timeout: number;
}

const EXAMPLES = `
Examples:
  $ tunnel ready --timeout 30 && curl https://shop.example.com
  $ tunnel ready --client ~/.tunnel/config.yml`;

const LOOK_EVERY_MS = 200;

export const readyCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addClientFlag(new Command('ready').description('Check that a client and its tunnels are ready'))
    .addOption(
      new Option('--timeout <seconds>', 'Seconds to wait until ready').default(0).argParser(wholeNumber(0, 86_400)),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (flags: ReadyFlags) => {
      const reason = await waitUntilReady(flags, io);
      if (reason !== null) io.stderr.write(`tunnel: not ready: ${oneLine(reason)}\n`);
      finish(reason === null ? EXIT.endedAsAsked : EXIT.unexpected);
    });

/**
 * Waits until the client is ready. Returns null if the client is ready, otherwise the reason. A client that is not running yet may start
 * during the wait. An ambiguous choice between clients fails immediately, because waiting would not help.
 */
const waitUntilReady = async (flags: ReadyFlags, io: Io): Promise<string | null> => {
  const stop = listenForStop(io);
  const until = io.clock.monotonic() + flags.timeout * 1000;
  for (;;) {
    const reason = await whyNotReady(flags, io);
    const left = until - io.clock.monotonic();
    if (reason === null || left <= 0 || stop.aborted) return reason;
    await pause(Math.min(LOOK_EVERY_MS, left), stop, io);
  }
};

const whyNotReady = async (flags: ReadyFlags, io: Io): Promise<string | null> => {
  try {
    const client = await chooseClient(flags, io);
    const { json } = await client.ask({ path: '/ready' });
    const answer = json as { readonly ready: boolean; readonly reason?: string };
    return answer.ready ? null : (answer.reason ?? 'the client gave no reason');
  } catch (error) {
    if (error instanceof Fault && ABSENT.has(error.code)) return error.message;
    throw error;
  }
};

const ABSENT: ReadonlySet<string> = new Set(['CLIENT_NOT_RUNNING', 'CLIENT_NO_ANSWER']);
