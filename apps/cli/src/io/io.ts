// All access of the program to the world around it, so that a test can replace any part, and the version of the program.
import type { connect } from '@tunnel/client';
import type { Clock, Logger, SignalSource } from '@tunnel/runtime';

export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  /** Bytes that the program has written to the output and that are not read yet. */
  readonly writableLength?: number | undefined;
}

export interface TextInput extends NodeJS.ReadableStream {
  readonly isTTY?: boolean | undefined;
}

export interface Io {
  readonly stdin: TextInput;
  readonly stdout: TextOutput;
  readonly stderr: TextOutput;
  /** Resolves when the reader of stdout has closed the pipe. */
  readonly stdoutClosed: Promise<void>;
  /** Registers a function to call before the message of a crash is printed. */
  readonly beforeCrash: (last: () => void) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Host name of this computer. */
  readonly hostName: string;
  readonly cwd: string;
  readonly clock: Clock;
  /** Log of the client's internals. Silent unless TUNNEL_DEBUG=1 is set. */
  readonly logger: Logger;
  readonly signals: SignalSource;
  readonly connect: typeof connect;
  /** Returns the URL of the platform that this computer uses, for links to its documentation. Null if no platform is known. */
  readonly platformUrl: () => string | null;
}

/** Version of the program, defined by the bundler. Undefined for sources that run unbundled, such as tests. */
declare const __TUNNEL_VERSION__: string | undefined;

export const VERSION = typeof __TUNNEL_VERSION__ === 'string' ? __TUNNEL_VERSION__ : '0.0.0-dev';
