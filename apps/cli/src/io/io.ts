// Everything the program touches of the world around it, so that a test can stand in for all of it; and its own version.
import type { connect } from '@tunnel/client';
import type { Clock, SignalSource } from '@tunnel/runtime';

export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** Bytes that are written and that nobody has taken yet. */
  readonly writableLength?: number | undefined;
}

export interface TextInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean | undefined;
}

export interface Io {
  readonly stdin: TextInput;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  /** Settles when nobody reads stdout any more. */
  readonly stdoutClosed: Promise<void>;
  /** `last` is called before the words of a crash are written. */
  readonly beforeCrash: (last: () => void) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** What this computer is called. */
  readonly hostName: string;
  readonly cwd: string;
  readonly clock: Clock;
  readonly signals: SignalSource;
  readonly connect: typeof connect;
}

/** Put in by the bundler; sources that run unbundled (tests) have none. */
declare const __TUNNEL_VERSION__: string | undefined;

export const VERSION = typeof __TUNNEL_VERSION__ === 'string' ? __TUNNEL_VERSION__ : '0.0.0-dev';
