// How a run is shown. One implementation for people at a terminal, one for plain lines, one for programs.
import type { RequestEvent, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import type { ExitCode } from '../exit-codes.ts';

export interface Output {
  onStatus(event: StatusEvent): void;
  onRequest(event: RequestEvent): void;
  /** Where requests can be looked at; null: it was wanted, and no port is free. Before any tunnel is open. */
  onInspector(url: string | null): void;
  /** The run fails with this; it is also the last word on the error channel. */
  onFailure(fault: Fault): void;
  /** Asked to stop; `open` connections may finish first. */
  onDrain(open: number, seconds: number): void;
  onEnd(code: ExitCode, tunnels: readonly Tunnel[]): void;
}
