// The terminal of a run. Node.js writes to a terminal synchronously, so a single write to a terminal that does not read, for example after
// Ctrl-S or on a lost SSH connection, would stop all tunnels until the terminal reads again.
import type { TextOutput } from '../io/io.ts';

/** Maximum output queued while the terminal does not read. Further output is left out. */
export const TERMINAL_LAG_MAX_BYTES = 64 * 1024;

/** The handle below a terminal's stream. Node.js has no public function to write to a terminal in the background. */
interface TerminalHandle {
  readonly fd: number;
  setBlocking?(isBlocking: boolean): unknown;
}

/** Returns an output that writes to a terminal in the background. An output that is not a terminal is returned unchanged. */
export const neverWaiting = (output: TextOutput & { readonly _handle?: TerminalHandle }): TextOutput => {
  if (output.isTTY !== true) return output;
  const { _handle: handle } = output;
  // Node.js opens the terminal again if it can, with a new descriptor. The descriptors up to 2 are shared with the shell, whose own writes
  // would fail.
  if (handle !== undefined && handle.fd > 2) handle.setBlocking?.(false);
  return new BoundedOutput(output);
};

class BoundedOutput implements TextOutput {
  readonly isTTY = true;
  readonly #output: TextOutput;

  constructor(output: TextOutput) {
    this.#output = output;
  }

  get columns(): number | undefined {
    return this.#output.columns;
  }

  get rows(): number | undefined {
    return this.#output.rows;
  }

  get writableLength(): number {
    return this.#output.writableLength ?? 0;
  }

  write(text: string): void {
    if (this.writableLength <= TERMINAL_LAG_MAX_BYTES) this.#output.write(text);
  }
}
