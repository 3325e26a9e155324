// The output of a run. There are implementations for people at a terminal, for plain lines and for programs, and a combination of several
// outputs.
import type { Client, RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ReloadOutcome } from '@tunnel/tunnel-spec';
import type { ExitCode } from '../io/exit-codes.ts';

/** Request events that are shown. The start of a request is not. */
export type ShownRequest = Exclude<RequestEvent, { type: 'request-started' }>;

export interface RemovedTunnel {
  readonly name: string;
  /** Id of the removed tunnel. Empty if the edge had not answered yet. */
  readonly tunnelId: string;
  /** Cause of the removal: `tunnel remove`, or a config file that no longer has the tunnel. */
  readonly reason: 'removed' | 'reloaded';
}

export interface Output {
  /**
   * Called when the client has connected for the first time, before any tunnel is open. The client's session contains account and region.
   */
  onClient(client: Pick<Client, 'session'>): void;
  onStatus(event: StatusEvent): void;
  onRequest(event: ShownRequest): void;
  /** Called with the inspector's URL, before any tunnel is open. Null if an inspector is wanted but no port is free. */
  onInspector(url: string | null): void;
  /** Prints a notice of a hook of the run: whole lines, above any block that is redrawn in place. */
  onNotice(text: string, channel: 'stdout' | 'stderr'): void;
  /** Called before the config file is read again. onReloaded or onReloadRefused follows. */
  onReloading(): void;
  /** Called with the outcome after the config file has been read again and applied. */
  onReloaded(outcome: ReloadOutcome): void;
  /** Called with the reason if the changed config file is invalid. The running tunnels stay unchanged. */
  onReloadRefused(fault: Fault): void;
  onRemoved(removed: RemovedTunnel): void;
  /** Called when the run fails. The fault is also the last message on stderr. */
  onFailure(fault: Fault): void;
  /** Called when the run is asked to stop. `open` connections may finish first. */
  onDrain(open: number, seconds: number): void;
  onEnd(code: ExitCode, tunnels: readonly Tunnel[]): void;
}

/** Combines several outputs. Every method calls the same method of all outputs that have the method, in order. */
export const fanOut = (outputs: readonly Partial<Output>[]): Output => {
  // Called more often than all other methods, so only the outputs with the method are called, and no function is created per call.
  const requestOutputs = outputs.flatMap((output) => output.onRequest?.bind(output) ?? []);
  return {
    onClient: (client) => outputs.forEach((output) => output.onClient?.(client)),
    onStatus: (event) => outputs.forEach((output) => output.onStatus?.(event)),
    onRequest: (event) => {
      for (const onRequest of requestOutputs) onRequest(event);
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
  };
};

/** Shows the requests of a client. */
export const showRequests = (client: Pick<Client, 'onRequest'>, output: Pick<Output, 'onRequest'>): void => {
  client.onRequest((event) => {
    if (event.type !== 'request-started') output.onRequest(event);
  });
};
