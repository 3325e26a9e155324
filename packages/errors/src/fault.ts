// Error class for every error shown to users. The message is public; `internal` and `cause` are only for logs.
import { CATALOGUE, type CatalogueEntry, type ErrorCode, isErrorCode } from './catalogue.ts';

export type FaultValues = Readonly<Record<string, string | number | boolean>>;

export interface FaultOptions {
  /** Detail for logs, never shown to users. */
  readonly internal?: string;
  readonly cause?: unknown;
  /** Replaces the text of the catalogue, for an error that was already described by another process. */
  readonly message?: string;
}

/** The symbol `util.inspect.custom`, obtained from the global registry so that the code also works in runtimes other than Node.js. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

export class Fault extends Error {
  readonly code: ErrorCode;
  readonly values: FaultValues;
  /**
   * Next step for the user, with the values filled in. An own property instead of a getter, so that the text is also printed for an
   * uncaught Fault.
   */
  readonly next: string;
  /**
   * Detail for logs. Declared without an initializer, so that the property is absent instead of undefined when an uncaught Fault is
   * printed.
   */
  declare readonly internal?: string;

  constructor(code: ErrorCode, values: FaultValues = {}, options: FaultOptions = {}) {
    super(
      options.message ?? fillText(CATALOGUE[code].text, values),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'Fault';
    this.code = code;
    this.values = values;
    this.next = fillText(CATALOGUE[code].next, values);
    if (options.internal !== undefined) this.internal = options.internal;
  }

  get entry(): CatalogueEntry {
    return CATALOGUE[this.code];
  }

  get status(): number {
    return this.entry.status;
  }

  get retryable(): boolean {
    return this.entry.retryable;
  }

  /** Returns the public properties of the fault, without details for logs. */
  toJSON(): object {
    const { code, message, next, retryable } = this;
    return { code, message, next, retryable };
  }

  /**
   * Formats the fault for printing, mainly in programs that embed the client: the next step follows the message, and details for logs are
   * omitted.
   */
  [INSPECT](_depth: number, options: unknown, inspect: (value: unknown, options: unknown) => string): string {
    const trace = (this.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line));
    const cause = this.cause === undefined ? [] : [`  [cause]: ${inspect(this.cause, options)}`];
    const next = this.next === '' ? [] : [`  ${this.next}`];
    return [`Fault [${this.code}]: ${this.message}`, ...next, ...trace, ...cause].join('\n');
  }

  /** Creates a Fault for an error reported by another process. Keeps the message, and the code if the code is in the catalogue. */
  static fromWire(code: string, message: string, values: FaultValues = {}): Fault {
    if (isErrorCode(code)) return new Fault(code, values, { message });
    return new Fault('INTERNAL', values, { message, internal: `from the wire: ${code}` });
  }

  /**
   * Converts a caught value to a Fault. A Fault is returned unchanged; any other value becomes INTERNAL, with the value as the cause for
   * logs.
   */
  static from(error: unknown): Fault {
    if (error instanceof Fault) return error;
    return new Fault(
      'INTERNAL',
      {},
      { cause: error, internal: error instanceof Error ? error.message : String(error) },
    );
  }
}

const fillText = (text: string, values: FaultValues): string =>
  text.replace(/\{(\w+)\}/g, (whole, key: string) => (Object.hasOwn(values, key) ? String(values[key]) : whole));
