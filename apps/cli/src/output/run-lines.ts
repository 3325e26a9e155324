// Lines of a run without a terminal. The start is printed with the first open tunnel: if that tunnel is rejected, people should read only
// the error.
import type { Client, StatusEvent } from '@tunnel/client';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { BatchedLines } from './batched-lines.ts';
import { inspectorText, type LineIo, LineOutput, moreRequestsText } from './lines.ts';
import { tunnelPage } from './live-block.ts';
import { fanOut, type Output } from './output.ts';

/** Creates the output of a run without a terminal, with the lines of requests in batches. */
export const runLines = (io: Pick<Io, 'stdout' | 'stderr' | 'clock' | 'beforeCrash'> & LineIo): Output => {
  const lines = new BatchedLines(io, { droppedText: (count) => `${moreRequestsText(count)}\n` });
  const timed = { stdout: lines.stdout, stderr: lines.stderr, clock: io.clock, platformUrl: io.platformUrl };
  return fanOut([new RunLines(timed, (line) => lines.add(line)), { onEnd: () => lines.close() }]);
};

export class RunLines extends LineOutput {
  readonly #stdout: Io['stdout'];
  #client: Pick<Client, 'session'> | null = null;
  #inspector: { readonly url: string | null } | null = null;
  #state: 'connecting' | 'held' | 'told' = 'connecting';

  constructor(io: LineIo, printRequest?: (line: string) => unknown) {
    super(io, printRequest);
    this.#stdout = io.stdout;
  }

  override onClient(client: Pick<Client, 'session'>): void {
    this.#client = client;
  }

  override onStatus(event: StatusEvent): void {
    if (event.type === 'connected') this.#state = 'held';
    if (event.type === 'connected' || event.type === 'closing' || event.type === 'closed') return;
    const isRefused = (event.type === 'tunnel-error' || event.type === 'peer-error') && event.final;
    if (!isRefused) this.#tellStart();
    super.onStatus(event);
    if (event.type !== 'tunnel-opened') return;
    const page = tunnelPage(this.#client?.session ?? null, event.tunnel.tunnelId);
    if (page !== null) this.#stdout.write(`dashboard: ${oneLine(page)}\n`);
  }

  override onInspector(url: string | null): void {
    this.#inspector = { url };
    if (this.#state === 'told') super.onInspector(url);
  }

  #tellStart(): void {
    if (this.#state !== 'held') return;
    this.#state = 'told';
    const { account = null, plan = null, regionId = '' } = this.#client?.session ?? {};
    const region = oneLine(regionId);
    const parts = [
      'connected',
      ...(account === null ? [] : [`as ${oneLine(account)} (${oneLine(plan ?? '')} plan)`]),
      ...(region === '' ? [] : [`in region ${region}`]),
    ];
    this.#stdout.write(`${parts.join(' ')}\n`);
    if (this.#inspector !== null) this.#stdout.write(`${inspectorText(this.#inspector.url)}\n`);
  }
}
