// `tunnel requests`: prints the captured requests of a live tunnel, and with -f also new requests.
import { CAPTURE_LIST_LIMIT, CAPTURES_KEPT_MAX, type CapturedRequest } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { Command, Option } from 'commander';
import {
  type AccountFlags,
  type AccountTunnels,
  addAccountFlags,
  type LiveTunnel,
  openAccountTunnels,
} from '../api/account-tunnels.ts';
import { chooseTunnel } from '../api/choose-tunnel.ts';
import { FLAG_GROUPS, wholeNumber } from '../config/flags.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { misuse, problemLines } from '../io/problem-report.ts';
import { listenForStop, pause } from '../io/until-stopped.ts';
import { CLI_LIMITS } from '../limits.ts';
import { CapturedLines, liveTunnelLines } from '../output/live-tunnels.ts';
import { listLook } from './list.ts';

/**
 * Maximum remembered ids of requests already printed by `tunnel requests -f`. An edge keeps fewer requests, so no request is printed
 * twice.
 */
const REQUESTS_SEEN_MAX = 1000;

interface RequestListFlags extends AccountFlags {
  readonly lines: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
<tunnel> is an id, name, label or URL from \`tunnel list\`.

Times are measured at the edge, from the first byte of the request to the last
byte of the response. \`tunnel logs\` shows the time your service took.

Examples:
  $ tunnel requests web
  $ tunnel requests web -f
  $ tunnel requests web --json | jq 'select(.status >= 500) | .id'`;

export const requestsCommand = (io: Io, finish: (code: ExitCode) => void): Command =>
  addAccountFlags(
    new Command('requests')
      .description('Show captured requests of a tunnel, oldest first')
      .argument('<tunnel>', 'Id, name, label or URL of the tunnel')
      .optionsGroup(FLAG_GROUPS.output)
      .addOption(
        new Option('-n, --lines <n>', `Number of recent requests to show, up to ${CAPTURES_KEPT_MAX}`)
          .default(20)
          .argParser(wholeNumber(0, CAPTURES_KEPT_MAX)),
      )
      .option('-f, --follow', 'Keep printing new requests until Ctrl-C')
      .option('--json', 'Print one JSON object per line'),
  )
    .addHelpText('after', EXAMPLES)
    .action(async (wanted: string, { lines, follow, json, ...flags }: RequestListFlags) => {
      const source = openAccountTunnels(flags, io);
      const choice = chooseTunnel(await source.live(), wanted);
      if (choice.kind === 'several') {
        const list = liveTunnelLines(choice.tunnels, listLook(io)).map((line) => `  ${line}`);
        io.stderr.write(`${[...problemLines(choice.fault), ...list].join('\n')}\n`);
        return finish(exitCodeOf(choice.fault));
      }
      const { tunnel_id: id, protocol } = choice.tunnel;
      if (protocol !== 'http') {
        throw misuse(`'${wanted}' is a ${protocol} tunnel: only http tunnels capture requests.`);
      }
      const columns = new CapturedLines();
      const print = (requests: readonly CapturedRequest[]): void => {
        const text = json === true ? requests.map((one) => JSON.stringify(one)) : columns.lines(requests, listLook(io));
        for (const line of text) io.stdout.write(`${line}\n`);
      };
      const shown = new ShownRequests(print);
      // With --follow, all captured requests are fetched, so that earlier requests do not count as new.
      const most = follow === true ? CAPTURES_KEPT_MAX : Math.max(lines, CAPTURE_LIST_LIMIT.min);
      const first = await source.requests(id, most);
      shown.show(first.slice(0, lines), first);
      if (follow === true) await followRequests(source, id, shown, io);
      else if (first.length === 0 && json !== true) io.stdout.write(`${nothingText(choice.tunnel)}\n`);
      finish(EXIT.endedAsAsked);
    });

const TOO_MANY = 'tunnel: note: some requests are not shown, because the edge keeps only the latest.';

/** Returns the text for a tunnel without captured requests. With --no-capture, requests arrive but are not captured. */
const nothingText = ({ request_count: count }: LiveTunnel): string =>
  count === 0 ? 'No requests yet' : 'Capture is off for this tunnel.';

/** Prints new requests until the user stops the command, or until an error that a retry cannot fix. */
const followRequests = async (source: AccountTunnels, id: string, shown: ShownRequests, io: Io): Promise<void> => {
  const stop = listenForStop(io);
  let isLost = false;
  while (!stop.aborted) {
    try {
      let last = await source.requests(id, CAPTURE_LIST_LIMIT.default);
      // No request of the list is known, so even more requests may have arrived since the last query.
      if (shown.isGap(last, CAPTURE_LIST_LIMIT.default)) {
        last = await source.requests(id, CAPTURES_KEPT_MAX);
        if (shown.isGap(last, CAPTURES_KEPT_MAX)) io.stderr.write(`${TOO_MANY}\n`);
      }
      shown.show(last);
      isLost = false;
    } catch (error) {
      const fault = Fault.from(error);
      if (!fault.retryable || (fault.code === 'INTERNAL' && fault.cause !== undefined)) throw error;
      if (!isLost && !stop.aborted) io.stderr.write(`${problemLines(fault)[0]}; retrying\n`);
      isLost = true;
    }
    await pause(CLI_LIMITS.REQUESTS_LOOK_EVERY_MS, stop, io);
  }
};

/** Prints every finished request once, oldest first. */
export class ShownRequests {
  readonly #print: (requests: readonly CapturedRequest[]) => void;
  /** Ids of printed requests, oldest first. */
  readonly #seen = new Set<string>();

  constructor(print: (requests: readonly CapturedRequest[]) => void) {
    this.#print = print;
  }

  /** Prints the finished requests from a list sorted newest first. `known` also contains listed requests that are not to be printed. */
  show(requests: readonly CapturedRequest[], known = requests): void {
    const isOver = (request: CapturedRequest): boolean => request.duration_ms !== null;
    this.#print(requests.filter((request) => isOver(request) && !this.#seen.has(request.id)).reverse());
    for (const { id } of known.filter(isOver)) this.#seen.add(id);
    for (const id of this.#seen) {
      if (this.#seen.size <= REQUESTS_SEEN_MAX) break;
      this.#seen.delete(id);
    }
  }

  /**
   * Returns true if requests may be missing between the known requests and the list. `limit` is the requested length of the list. While
   * no request is known, only a full list can be incomplete.
   */
  isGap(requests: readonly CapturedRequest[], limit: number): boolean {
    const isFull = requests.length >= limit || this.#seen.size > 0;
    return isFull && requests.length > 0 && requests.every(({ id }) => !this.#seen.has(id));
  }
}
