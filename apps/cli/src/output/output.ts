// How a run is shown. One implementation for people at a terminal, one for plain lines, one for programs; and all of them at once.
import type { Client, RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { ExitCode } from '../io/exit-codes.ts';

export interface RemovedTunnel {
  readonly name: string;
  /** Empty: the edge had not answered. */
  readonly tunnelId: string;
  /** Who wanted it: `tunnel remove`, or the file that no longer has it. */
  readonly reason: 'removed' | 'reloaded';
}

export interface Output {
  /** The client that runs, connected for the first time: its session says whose it is, and where. Before any tunnel is open. */
  onClient(client: Pick<Client, 'session'>): void;
  onStatus(event: StatusEvent): void;
  onRequest(event: RequestEvent): void;
  /** Where requests can be looked at; null: it was wanted, and no port is free. Before any tunnel is open. */
  onInspector(url: string | null): void;
  /** What goes with the run has to say this: whole lines, above whatever is drawn again in place. */
  onNotice(text: string, channel: 'stdout' | 'stderr'): void;
  /** The config file is being read again; one of the next two follows. */
  onReloading(): void;
  /** The config file was read again, and this came of it. */
  onReloaded(outcome: ReloadOutcome): void;
  /** It was read again and is not good: nothing has changed. */
  onReloadRefused(fault: Fault): void;
  onRemoved(removed: RemovedTunnel): void;
  /** The run fails with this; it is also the last word on the error channel. */
  onFailure(fault: Fault): void;
  /** Asked to stop; `open` connections may finish first. */
  onDrain(open: number, seconds: number): void;
  onEnd(code: ExitCode, tunnels: readonly Tunnel[]): void;
}

/** Tells each of them what it wants to know, in their order. */
export const fanOut = (outputs: readonly Partial<Output>[]): Output => ({
  onClient: (client) => outputs.forEach((output) => output.onClient?.(client)),
  onStatus: (event) => outputs.forEach((output) => output.onStatus?.(event)),
  // Oftener than all others: no function is made for it.
  onRequest: (event) => {
    for (const output of outputs) output.onRequest?.(event);
  },
  onInspector: (url) => outputs.forEach((output) => output.onInspector?.(url)),
  onNotice: (text, channel) => outputs.forEach((output) => output.onNotice?.(text, channel)),
  onReloading: () => outputs.forEach((output) => output.onReloading?.()),
  onReloaded: (outcome) => outputs.forEach((output) => output.onReloaded?.(outcome)),
  onReloadRefused: (fault) => outputs.forEach((output) => output.onReloadRefused?.(fault)),
  onRemoved: (removed) => outputs.forEach((output) => output.onRemoved?.(removed)),
  onFailure: (fault) => outputs.forEach((output) => output.onFailure?.(fault)),
  onDrain: (open, seconds) => outputs.forEach((output) => output.onDrain?.(open, seconds)),
  onEnd: (code, tunnels) => outputs.forEach((output) => output.onEnd?.(code, tunnels)),
});
